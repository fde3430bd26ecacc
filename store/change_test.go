package store_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

func event(seq int64) store.Event { return store.Event{Seq: seq, Type: store.StepCompleted, Key: "k"} }

func plain() store.Change {
	return store.Change{RunID: "r", Expect: store.Expect{Epoch: 5}, Events: []store.Event{event(2), event(3)}}
}

func creation() store.Change {
	return store.Change{
		RunID: "r", Expect: store.Expect{Absent: true}, Events: []store.Event{event(1)},
		Create: &store.Run{ID: "r", Status: store.Pending, Epoch: 5},
	}
}

func of(c store.Change, edit func(*store.Change)) store.Change {
	edit(&c)
	return c
}

func ptr[T any](v T) *T { return &v }

func TestPlainIsAnAppendAndNothingElse(t *testing.T) {
	c := plain()
	require.True(t, c.Plain())
	for name, edit := range map[string]func(*store.Change){
		"no run": func(c *store.Change) { c.RunID = "" }, "no events": func(c *store.Change) { c.Events = nil },
		"create": func(c *store.Change) { c.Create = &store.Run{} }, "row": func(c *store.Change) { c.Row = &store.RowPatch{} },
		"branch": func(c *store.Change) { c.Branch = &store.Branch{} }, "send": func(c *store.Change) { c.Send = []store.Message{{}} },
		"start": func(c *store.Change) { c.Start = []store.Change{{}} }, "hold": func(c *store.Change) { c.Hold = []string{"k"} },
		"release": func(c *store.Change) { c.Release = true }, "yield": func(c *store.Change) { c.Yield = true },
		"absent": func(c *store.Change) { c.Expect.Absent = true }, "take": func(c *store.Change) { c.Expect.TakeEpoch = true },
		"no cancel": func(c *store.Change) { c.Expect.NoCancel = true }, "inbox": func(c *store.Change) { c.Expect.Inbox = ptr(int64(0)) }, "statuses": func(c *store.Change) { c.Expect.Statuses = store.Statuses() },
	} {
		c := of(plain(), edit)
		require.False(t, c.Plain(), name)
	}
	// A field that is added to Change or Expect has to be looked at by Plain. Of these, Sent is empty
	// if Send is.
	require.Equal(t, 12, reflect.TypeFor[store.Change]().NumField())
	require.Equal(t, 6, reflect.TypeFor[store.Expect]().NumField())
}

func TestEventEpochs(t *testing.T) {
	epochs := func(c store.Change) string {
		s := ""
		for i := range c.Events {
			s += fmt.Sprint(c.EventEpoch(i), " ")
		}
		return s + fmt.Sprint("row ", c.RowEpoch())
	}
	yield := func(c *store.Change) { c.Yield = true }
	take := func(c *store.Change) { c.Expect.TakeEpoch = true }
	both := func(c *store.Change) { c.Yield, c.Expect.TakeEpoch = true, true }
	none := func(c *store.Change) { c.Events = nil }
	require.Equal(t, "5 5 row 5", epochs(plain()))
	require.Equal(t, "5 6 row 6", epochs(of(plain(), yield)))
	require.Equal(t, "6 6 row 6", epochs(of(plain(), take)))
	require.Equal(t, "6 7 row 7", epochs(of(plain(), both)))
	require.Equal(t, "row 5", epochs(of(plain(), none)))
	require.Equal(t, "row 6", epochs(of(of(plain(), none), take)))
	require.Equal(t, "5 row 5", epochs(creation()))
	require.Equal(t, "6 row 6", epochs(of(creation(), yield)))
	require.Equal(t, "5 row 5", epochs(of(creation(), func(c *store.Change) { c.Expect.Epoch = 99 })), "of a creation the run's own epoch counts")
}

func TestValidateAcceptsWhatAStoreCanDo(t *testing.T) {
	for name, c := range map[string]store.Change{
		"plain": plain(), "creation": creation(),
		"created with more": of(creation(), func(c *store.Change) { c.Events = append(c.Events, event(2)); c.Yield, c.Hold = true, []string{"k"} }),
		"row alone":         {RunID: "r", Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}},
		"end":               of(plain(), func(c *store.Change) { c.Row, c.Yield = &store.RowPatch{Status: ptr(store.Failed)}, true }),
		"messages alone":    {Send: []store.Message{{To: "r", Kind: store.KindSignal, ID: "1"}}},
		"starts alone":      {Start: []store.Change{creation()}},
		"everything allowed": of(plain(), func(c *store.Change) {
			c.Send = []store.Message{{To: "r", Kind: "k", ID: "1"}}
			c.Start = []store.Change{creation()}
		}),
		"longest key": of(plain(), func(c *store.Change) { c.Events[0].Key = strings.Repeat("k", store.MaxKey) }),
	} {
		require.NoError(t, c.Validate(store.DefaultLimits()), name)
	}
}

// Each of these is refused for one reason; the rest of it is in order.
func TestValidateRefusesWhatNoStoreCanDo(t *testing.T) {
	for name, c := range map[string]store.Change{
		"empty": {}, "no run, events": {Events: []store.Event{event(2)}}, "no run, row": {Row: &store.RowPatch{}}, "no run, hold": {Hold: []string{"k"}},
		"no run, release": {Release: true}, "no run, yield": {Yield: true}, "no run, branch": {Branch: &store.Branch{}}, "no run, create": {Create: &store.Run{}},
		"bad id":                  of(plain(), func(c *store.Change) { c.RunID = "a\n" }),
		"create without absent":   of(creation(), func(c *store.Change) { c.Expect = store.Expect{Epoch: 1} }),
		"absent without create":   of(creation(), func(c *store.Change) { c.Create = nil }),
		"create under another id": of(creation(), func(c *store.Change) { c.Create = &store.Run{ID: "s", Status: store.Pending, Epoch: 5} }),
		"create without epoch":    of(creation(), func(c *store.Change) { c.Create = &store.Run{ID: "r", Status: store.Pending} }),
		"create without status":   of(creation(), func(c *store.Change) { c.Create = &store.Run{ID: "r", Epoch: 5} }),
		"create without event":    of(creation(), func(c *store.Change) { c.Events = nil }),
		"create with row":         of(creation(), func(c *store.Change) { c.Row = &store.RowPatch{} }),
		"create that takes":       of(creation(), func(c *store.Change) { c.Expect.TakeEpoch = true }),
		"create at event 2":       of(creation(), func(c *store.Change) { c.Events = []store.Event{event(2)} }),
		"no epoch":                of(plain(), func(c *store.Change) { c.Expect.Epoch = 0 }),
		"yield without event":     {RunID: "r", Expect: store.Expect{Epoch: 1}, Yield: true},
		"unknown status":          of(plain(), func(c *store.Change) { c.Row = &store.RowPatch{Status: ptr(store.Status("done"))} }),
		"code too long":           of(plain(), func(c *store.Change) { c.Row = &store.RowPatch{Code: ptr(strings.Repeat("c", store.MaxName+1))} }),
		"create with a long code": of(creation(), func(c *store.Change) { r := *c.Create; r.Code = strings.Repeat("c", store.MaxName+1); c.Create = &r }),
		"end without yield":       of(plain(), func(c *store.Change) { c.Row = &store.RowPatch{Status: ptr(store.Completed)} }),
		"append at event 1":       of(plain(), func(c *store.Change) { c.Events = []store.Event{event(1)} }),
		"append at event 0":       of(plain(), func(c *store.Change) { c.Events = []store.Event{event(0)} }),
		"gap":                     of(plain(), func(c *store.Change) { c.Events = []store.Event{event(2), event(4)} }),
		"repeated":                of(plain(), func(c *store.Change) { c.Events = []store.Event{event(2), event(2)} }),
		"no type":                 of(plain(), func(c *store.Change) { c.Events = []store.Event{{Seq: 2}} }),
		"key too long": of(plain(), func(c *store.Change) {
			c.Events = []store.Event{{Seq: 2, Type: "t", Key: strings.Repeat("k", store.MaxKey+1)}}
		}),
		"message to nobody":     {Send: []store.Message{{Kind: "k", ID: "1"}}},
		"message without kind":  {Send: []store.Message{{To: "r", ID: "1"}}},
		"message without id":    {Send: []store.Message{{To: "r", Kind: "k"}}},
		"start of an append":    {Start: []store.Change{plain()}},
		"start of nothing":      {Start: []store.Change{{}}},
		"start that sends":      {Start: []store.Change{of(creation(), func(c *store.Change) { c.Send = []store.Message{{To: "r", Kind: "k", ID: "1"}} })}},
		"start that starts":     {Start: []store.Change{of(creation(), func(c *store.Change) { c.Start = []store.Change{creation()} })}},
		"start that is invalid": {Start: []store.Change{of(creation(), func(c *store.Change) { c.Events = []store.Event{{Seq: 1}} })}},
	} {
		err := c.Validate(store.DefaultLimits())
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
}

func TestValidateRefusesWhatIsTooLarge(t *testing.T) {
	limits := store.Limits{Payload: 100, Batch: 1000}
	for name, c := range map[string]store.Change{
		"payload":      of(plain(), func(c *store.Change) { c.Events[0].Payload = make([]byte, 101) }),
		"data":         of(plain(), func(c *store.Change) { c.Events[1].Data = make([]byte, 101) }),
		"message":      {Send: []store.Message{{To: "r", Kind: "k", ID: "1", Payload: make([]byte, 101)}}},
		"message data": {Send: []store.Message{{To: "r", Kind: "k", ID: "1", Data: make([]byte, 101)}}},
		"start":        {Start: []store.Change{of(creation(), func(c *store.Change) { c.Events[0].Payload = make([]byte, 101) })}},
	} {
		err := c.Validate(limits)
		require.ErrorIs(t, err, store.ErrTooLarge, name)
		var tl *store.TooLargeError
		require.ErrorAs(t, err, &tl)
		require.Equal(t, []int{101, 100}, []int{tl.Size, tl.Limit}, name)
	}
	many := plain()
	for seq := int64(4); seq < 20; seq++ {
		e := event(seq)
		e.Payload = make([]byte, 100)
		many.Events = append(many.Events, e)
	}
	err := many.Validate(limits)
	var tl *store.TooLargeError
	require.ErrorAs(t, err, &tl)
	require.Equal(t, []any{"r", "", 1000}, []any{tl.RunID, tl.Key, tl.Limit}, "the change as a whole")
	exact := of(plain(), func(c *store.Change) { c.Events[0].Payload, c.Events[0].Data = make([]byte, 100), make([]byte, 100) })
	require.NoError(t, exact.Validate(limits))
}

func TestSizeCountsAllThatIsStored(t *testing.T) {
	c := plain()
	base := c.Size()
	c.Events[0].Payload, c.Events[1].Data = make([]byte, 1000), make([]byte, 100)
	require.Equal(t, base+1100, c.Size())
	c.Send = []store.Message{{Payload: make([]byte, 500), Data: make([]byte, 50)}}
	require.GreaterOrEqual(t, c.Size(), base+1650)
	started := creation()
	started.Events[0].Payload = make([]byte, 2000)
	before := c.Size()
	c.Start = []store.Change{started}
	require.Equal(t, before+started.Size(), c.Size())
}

func TestSameStart(t *testing.T) {
	base := store.Run{ID: "r", Workflow: "w", InputHash: [16]byte{1}, Parent: "p", ParentKey: "k", Version: "1", Status: store.Pending}
	other := base
	other.Version, other.Status, other.CreatedAt, other.Attributes = "2", store.Completed, 9, map[string]string{"a": "b"}
	require.True(t, store.SameStart(&base, &other), "what changes later does not count")
	for name, edit := range map[string]func(*store.Run){
		"workflow": func(r *store.Run) { r.Workflow = "v" }, "input": func(r *store.Run) { r.InputHash[15] = 1 },
		"parent": func(r *store.Run) { r.Parent = "" }, "parent key": func(r *store.Run) { r.ParentKey = "k#2" },
	} {
		other := base
		edit(&other)
		require.False(t, store.SameStart(&base, &other), name)
	}
}

// Every field of a patch, by reflection, so that a new one is not forgotten.
func TestRowPatchApply(t *testing.T) {
	full := store.RowPatch{Attributes: map[string]string{"a": "b"}}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Pointer {
			continue
		}
		value := reflect.New(f.Type().Elem())
		switch e := value.Elem(); e.Kind() {
		case reflect.String:
			e.SetString("set")
		case reflect.Bool:
			e.SetBool(true)
		default:
			e.SetInt(int64(i + 1))
		}
		f.Set(value)
	}
	var r store.Run
	full.Apply(&r)
	row := reflect.ValueOf(r)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		want := reflect.Indirect(v.Field(i)).Interface()
		require.Equal(t, want, row.FieldByName(name).Interface(), name)
	}
	kept := r
	(&store.RowPatch{}).Apply(&r)
	(*store.RowPatch)(nil).Apply(&r)
	require.Equal(t, kept, r, "nil fields, and a nil patch, change nothing")
	(&store.RowPatch{Attributes: map[string]string{}, Code: ptr("")}).Apply(&r)
	require.Empty(t, r.Attributes)
	require.Empty(t, r.Code)
}

func TestTimes(t *testing.T) {
	require.Zero(t, store.TimeOf(time.Time{}))
	require.True(t, store.Time(0).Time().IsZero())
	at := time.Date(2026, 11, 21, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	got := store.TimeOf(at)
	require.Equal(t, at.Truncate(time.Microsecond).UTC(), got.Time())
	require.Equal(t, got+1, got.Add(1999*time.Nanosecond))
	require.Equal(t, 90*time.Minute, got.Add(90*time.Minute).Sub(got))
	require.Equal(t, -time.Microsecond, store.Time(1).Sub(2))
}

func TestServes(t *testing.T) {
	served := []store.Served{{Workflow: "a", Versions: []string{"1"}}, {Workflow: "b"}, {Workflow: "a", Versions: []string{"2", ""}}}
	for key, want := range map[[2]string]bool{
		{"a", "1"}: true, {"a", "2"}: true, {"a", ""}: true, {"a", "3"}: false, {"b", "1"}: false, {"b", ""}: false, {"c", "1"}: false,
	} {
		require.Equal(t, want, store.Serves(served, key[0], key[1]), "%v", key)
	}
}
