package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var runCases = []Case{
	{Name: "a created run reads back as it was written", Clauses: "S1, S4", run: runReadsBack},
	{Name: "a reason that is no text is kept as one", Clauses: "S4", run: runReasons},
	{Name: "a run may have any text as its id", Clauses: "S4", run: runOddIDs},
	{Name: "a second creation of another run under the id is refused and named", Clauses: "S8", run: runExists},
	{Name: "of many concurrent creations one wins", Clauses: "S1, S8", run: runCreateRace},
	{Name: "a run that is not there is not found", Clauses: "S8", run: runNotFound},
	{Name: "a run can be born claimed", Clauses: "S1, S20", run: runBornClaimed},
	{Name: "each field of a row patch changes that field alone", Clauses: "S10", run: runPatch},
	{Name: "attributes are replaced as a set, cleared, or kept", Clauses: "S10", run: runAttributes},
	{Name: "a row patch under another epoch is fenced", Clauses: "S10", run: runPatchFenced},
	{Name: "the store says when a row changed last", Clauses: "S24", run: runUpdatedAt},
	{Name: "concurrent row patches under one epoch are whole", Clauses: "S1, S10", run: runPatchRace},
}

// fullRun sets every field that a creator may choose.
func fullRun(r *store.Run) {
	r.InitialVersion, r.Version = "v0", "v1"
	r.Parent, r.ParentKey, r.ForkedFrom = "parent", "items[3]/child", "origin"
	r.InputHash = [16]byte{1, 2, 3, 0, 255}
	r.Queue, r.Partition, r.Dedup = "mail", "tenant 7", "once"
	r.Trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.Code, r.Reason, r.Recoverable = "code", "reason ü \u2028 \\ \"", true
	r.Generation, r.Resumes, r.Strikes = 3, 4, 2
	r.Priority, r.Paused, r.ArchivedSeq = -5, true, 1
	r.StartedAt, r.WakeAt, r.DeadlineAt = r.CreatedAt+1, r.CreatedAt+1_000_001, r.CreatedAt+3_600_000_007
	r.Attributes = map[string]string{"customer": "Zoë 🚚", "empty": "", "quote": `a'b"c\d%_`}
}

func runReadsBack(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	for _, status := range []store.Status{store.Pending, store.Waiting, store.Interrupted} {
		id := "run-" + string(status)
		before := t.now()
		c, _ := t.create(id, fullRun, func(r *store.Run) {
			r.Status, r.Dedup, r.Owner, r.Branch, r.CancelAsked, r.Seen, r.EndedAt = status, id, "somebody", 3, true, 8, r.CreatedAt+9
		})
		t.must(s, c)
		for _, reader := range []store.Store{s, other} {
			got := t.all(reader, id)
			require.Equal(t, stored(c), got.Events, "the first event")
			want := *c.Create
			want.Last = &stored(c)[0]
			want.UpdatedAt = got.Run.UpdatedAt // the store sets it
			require.Equal(t, want, got.Run, "the row")
			require.Empty(t, got.Branches)
			require.Empty(t, got.Inbox)
		}
		if d.Advance == nil {
			require.Less(t, max(before.Sub(t.row(s, id).UpdatedAt), t.row(s, id).UpdatedAt.Sub(before)), time.Hour, "UpdatedAt is about now")
		}
	}
}

func runReasons(t *T) {
	s := t.open()
	const torn = "till \x00 Monday \xff"
	clean := store.CleanText(torn)
	w := t.run(s, "r", func(r *store.Run) { r.Reason = torn })
	check := func(when string) {
		t.Helper()
		require.Equal(t, clean, t.row(s, "r").Reason, "S4: what store.CleanText makes of it, %s", when)
		require.Equal(t, clean, t.list(s, store.Filter{})[0].Reason, "S4: what store.CleanText makes of it, %s", when)
	}
	check("of a creation")
	w.must(s, w.patch(store.RowPatch{Reason: ptr("")}))
	w.must(s, w.patch(store.RowPatch{Reason: ptr(torn)}))
	check("of a row patch")
	w.must(s, w.patch(store.RowPatch{Reason: ptr("")}))
	c := w.append(step("a"))
	c.Row, c.Branch = &store.RowPatch{Reason: ptr(torn)}, &store.Branch{N: 1, Reason: torn, CreatedAt: t.now()}
	w.must(s, c)
	check("of a change with an event")
	require.Equal(t, clean, t.load(s, "r", store.Cursor{}).Branches[0].Reason, "S4: what store.CleanText makes of it, of a branch")
}

func oddTexts() []string {
	return []string{
		"a", " ", "order-42", "Ärger über 100 %", "emoji 👩‍👩‍👧 🚚", "a/b/c", "a'b\"c`d", `back\slash`, "per%cent_under*star?", "a--b;drop",
		"?1 $1 :x @y", "UPPER", "upper", "e\u0301 and é", "\u200b\u2028\ufeff", "\u202eright to left", "NULL", "0", "{}", "[a]",
		strings.Repeat("x", store.MaxRunID), strings.Repeat("🚚", store.MaxRunID/4),
	}
}

func runOddIDs(t *T) {
	s := t.open()
	for _, id := range oddTexts() {
		w := t.run(s, id, func(r *store.Run) { r.Attributes = map[string]string{id: id} })
		w.must(s, w.append(step(id)))
		t.must(s, send(signal(id, id)))
		got := t.load(s, id, store.Cursor{})
		require.Equal(t, id, got.Run.ID)
		require.Equal(t, map[string]string{id: id}, got.Run.Attributes)
		require.Equal(t, id, got.Events[1].Key)
		require.Equal(t, id, got.Inbox[0].ID)
		require.Equal(t, []string{id}, ids(t.list(s, store.Filter{IDs: []string{id}})), "an id matches itself alone")
		require.Equal(t, []string{id}, ids(t.list(s, store.Filter{Attributes: map[string]string{id: id}})))
	}
	require.Len(t, t.list(s, store.Filter{}), len(oddTexts()))
}

func runExists(t *T) {
	s := t.open()
	t.run(s, "r").steps(s, 2)
	before := t.dump(s)
	c, _ := t.create("r", func(r *store.Run) { r.Workflow = "other" })
	err := t.commit(s, c)
	require.ErrorIs(t, err, store.ErrExists)
	var exists *store.ExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, "r", exists.RunID)
	require.Equal(t, before, t.dump(s), "S1: the refused creation changed nothing")
}

func runCreateRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const rounds, clients = 5, 8
	for round := range rounds {
		id := fmt.Sprintf("r%d", round)
		changes := make([]store.Change, clients)
		for i := range changes {
			changes[i], _ = t.create(id, func(r *store.Run) { r.Attributes = map[string]string{"by": fmt.Sprint(i)} })
		}
		errs := make([]error, clients)
		t.together(clients, func(i int) { errs[i] = one(t.Context(), handles[i%2], changes[i]) })
		winner := -1
		for i, err := range errs {
			if err == nil {
				require.Equal(t, -1, winner, "S8: one creation wins")
				winner = i
			} else {
				require.ErrorIs(t, err, store.ErrExists)
			}
		}
		require.GreaterOrEqual(t, winner, 0, "S8: one creation wins")
		got := t.all(handles[0], id)
		require.Equal(t, fmt.Sprint(winner), got.Run.Attributes["by"])
		require.Equal(t, stored(changes[winner]), got.Events)
	}
}

func runNotFound(t *T) {
	s := t.open()
	_, w := t.create("absent")
	_, err := s.Load(t.Context(), "absent", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound, "load")
	require.ErrorIs(t, t.commit(s, w.append(step("a"))), store.ErrNotFound, "append")
	require.ErrorIs(t, t.commit(s, w.patch(store.RowPatch{Priority: ptr(int32(1))})), store.ErrNotFound, "row patch")
	require.ErrorIs(t, t.commit(s, w.end(store.Completed)), store.ErrNotFound, "completion")
	take := w.append(step("a"))
	take.Expect.TakeEpoch = true
	require.ErrorIs(t, t.commit(s, take), store.ErrNotFound, "taking the epoch")
	require.ErrorIs(t, t.commit(s, send(signal("absent", "1"))), store.ErrNotFound, "signal")
	require.ErrorIs(t, t.commit(s, send(store.Message{To: "absent", Kind: store.KindCancel, ID: "1"})), store.ErrNotFound, "cancel")
	n, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"absent"}})
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, t.list(s, store.Filter{}))
}

func runBornClaimed(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.beat(s, "b")
	w := t.run(s, "r", func(r *store.Run) { r.Owner, r.Status = "a", store.Running })
	require.Equal(t, "a", t.row(s, "r").Owner)
	require.Empty(t, t.claim(s, "b", "r"), "S20: its owner lives")
	w.steps(s, 2)
}

// patches sets one field each, to a value no other field has.
func patches(now store.Time) []store.RowPatch {
	return []store.RowPatch{
		{Version: ptr("v9")}, {Status: ptr(store.Running)}, {Code: ptr("c")}, {Reason: ptr("r ü 🚚")}, {Recoverable: ptr(true)},
		{Branch: ptr(int32(7))}, {Generation: ptr(int32(8))}, {Strikes: ptr(int32(9))}, {Priority: ptr(int32(-10))}, {Seen: ptr(int64(11))},
		{CancelAsked: ptr(true)}, {Paused: ptr(true)}, {ArchivedSeq: ptr(int64(12))}, {StartedAt: ptr(now + 13)}, {EndedAt: ptr(now + 14)},
		{WakeAt: ptr(now + 15)}, {DeadlineAt: ptr(now + 16)}, {Attributes: map[string]string{"k": "v"}},
	}
}

func runPatch(t *T) {
	s := t.open()
	w := t.run(s, "r")
	require.Len(t, patches(1), reflect.TypeFor[store.RowPatch]().NumField(), "the suite knows every field of RowPatch")
	want := t.row(s, "r")
	for _, p := range patches(t.now()) {
		w.must(s, w.patch(p))
		got := t.row(s, "r")
		p.Apply(&want)
		want.UpdatedAt = got.UpdatedAt
		require.Equal(t, want, got, "after %+v", p)
	}
	// Back to nothing: a pointer to the zero value is a value.
	w.must(s, w.patch(store.RowPatch{
		Version: ptr(""), Code: ptr(""), Reason: ptr(""), Recoverable: ptr(false), Branch: ptr(int32(0)), Generation: ptr(int32(0)),
		Strikes: ptr(int32(0)), Priority: ptr(int32(0)), Seen: ptr(int64(0)), CancelAsked: ptr(false), Paused: ptr(false), ArchivedSeq: ptr(int64(0)),
		StartedAt: ptr(store.Time(0)), EndedAt: ptr(store.Time(0)), WakeAt: ptr(store.Time(0)), DeadlineAt: ptr(store.Time(0)), Attributes: map[string]string{},
	}))
	got := t.row(s, "r")
	require.Equal(t, store.Run{
		ID: "r", Workflow: workflow, InitialVersion: version, Status: store.Running, Epoch: want.Epoch,
		CreatedAt: want.CreatedAt, UpdatedAt: got.UpdatedAt, Last: want.Last,
	}, got)
}

func runAttributes(t *T) {
	s := t.open()
	w := t.run(s, "r", func(r *store.Run) { r.Attributes = map[string]string{"a": "1", "b": "2"} })
	other := t.run(s, "s", func(r *store.Run) { r.Attributes = map[string]string{"a": "1"} })
	w.must(s, w.patch(store.RowPatch{Attributes: map[string]string{"b": "3", "c": ""}}))
	require.Equal(t, map[string]string{"b": "3", "c": ""}, t.row(s, "r").Attributes)
	require.Equal(t, []string{"s"}, ids(t.list(s, store.Filter{Attributes: map[string]string{"a": "1"}})), "a replaced attribute is not found any more")
	w.must(s, w.patch(store.RowPatch{Priority: ptr(int32(1))}))
	require.Equal(t, map[string]string{"b": "3", "c": ""}, t.row(s, "r").Attributes, "nil keeps them")
	w.must(s, w.patch(store.RowPatch{Attributes: map[string]string{}}))
	require.Empty(t, t.row(s, "r").Attributes, "an empty map clears them")
	require.Equal(t, map[string]string{"a": "1"}, t.row(s, other.id).Attributes, "those of another run stay")
}

func runPatchFenced(t *T) {
	s := t.open()
	stale := t.run(s, "r")
	t.beat(s, "a")
	require.Len(t, t.claim(s, "a"), 1)
	before := t.dump(s)
	require.ErrorIs(t, t.commit(s, stale.patch(store.RowPatch{Priority: ptr(int32(1))})), store.ErrFenced, "the epoch before")
	ahead := *stale
	ahead.epoch += 2
	require.ErrorIs(t, t.commit(s, ahead.patch(store.RowPatch{Priority: ptr(int32(1))})), store.ErrFenced, "an epoch to come")
	require.Equal(t, before, t.dump(s), "S10: nothing changed")
}

func runPatchRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	w := t.run(handles[0], "r")
	var failed atomic.Int32
	t.together(8, func(i int) {
		for n := range 5 {
			v := fmt.Sprintf("%d.%d", i, n)
			p := store.RowPatch{Code: &v, Reason: &v, Attributes: map[string]string{"v": v}}
			if err := one(t.Context(), handles[i%2], w.patch(p)); err != nil {
				failed.Add(1)
				t.Errorf("S10: patch %s under the right epoch: %v", v, err)
			}
		}
	})
	r := t.row(handles[0], "r")
	require.Equal(t, r.Code, r.Reason, "S1: one patch, not parts of two")
	require.Equal(t, map[string]string{"v": r.Code}, r.Attributes, "S1: one patch, not parts of two")
}

// isOneOf reports whether err is any of these.
func isOneOf(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// runUpdatedAt compares with the store's own clock, which a heartbeat returns.
func runUpdatedAt(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "peer")
	var w *writer
	last := store.Time(0)
	changes := func(what, id string, act func()) {
		t.Helper()
		if d.Advance != nil {
			d.Advance(time.Second)
		}
		from := t.beat(s, "watch").Now
		act()
		to := t.beat(s, "watch").Now
		got := t.row(s, id).UpdatedAt
		require.GreaterOrEqual(t, got, last, "S24: UpdatedAt goes back with %s", what)
		require.True(t, from <= got && got <= to, "S24: UpdatedAt is %d after %s, which happened between %d and %d by the store's clock", got, what, from, to)
		last = got
	}
	changes("the creation", "r", func() { w = t.run(s, "r", func(r *store.Run) { r.UpdatedAt = 1 }) })
	changes("a row patch", "r", func() { w.must(s, w.patch(store.RowPatch{Priority: ptr(int32(1))})) })
	changes("a patch with an event", "r", func() {
		c := w.append(step("a"))
		c.Row = &store.RowPatch{Status: ptr(store.Running)}
		w.must(s, c)
	})
	changes("a message", "r", func() { t.must(s, send(signal("r", "1"))) })
	t.beat(s, "a")
	changes("a claim", "r", func() { w = t.at(t.claim(s, "a", "r")[0]) })
	if d.Advance != nil {
		d.Advance(time.Second)
	}
	w.steps(s, 3)
	require.Equal(t, last, t.row(s, "r").UpdatedAt, "S24: a plain checkpoint leaves the row as it is")
	plain := w.append(step("b"))
	t.must(s, plain, t.run(s, "mate").append(step("b")))
	w.done(plain)
	require.Equal(t, last, t.row(s, "r").UpdatedAt, "S24: in a batch, too")
	changes("a yield", "r", func() {
		c := w.append(step("c"))
		c.Yield = true
		w.must(s, c)
	})
	changes("a taken epoch", "r", func() {
		c := w.append(step("d"))
		c.Expect.TakeEpoch = true
		w.must(s, c)
	})
	changes("an end", "r", func() { w.must(s, w.end(store.Cancelled)) })
	require.NotEmpty(t, ids(t.list(s, store.Filter{UpdatedFrom: last, UpdatedTo: last + 1})), "S24: it is found by its time")
}
