package conformance

import (
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var requestCases = []Case{
	{Name: "a request is carried out and answered, once", Clauses: "S38", Needs: Requests, hook: hookRequests, run: requestOnce},
	{Name: "a request reaches the engine as it was inserted", Clauses: "S38", Needs: Requests, hook: hookRequests, run: requestReads},
	{Name: "a request that is refused has its reason and no effect", Clauses: "S38, S39", Needs: Requests, hook: hookRequests, run: requestRefused},
	{Name: "requests of one run are carried out in their order", Clauses: "S38", Needs: Requests, hook: hookRequests, run: requestOrder},
	{Name: "of many drains at once one answers a request", Clauses: "S38", Needs: Requests, hook: hookRequests, run: requestRaces},
	{Name: "a drain takes no more than it is to, and goes on behind", Clauses: "S39", Needs: Requests, hook: hookRequests, run: requestPages},
	{Name: "a start is left to those who have its code, for a time", Clauses: "S39", Needs: Requests, hook: hookRequests, run: requestServed},
	{Name: "a request that is too large keeps none from being answered", Clauses: "S39", Needs: Requests, hook: hookRequests, run: requestLarge},
	{Name: "a drain whose form fails again and again answers the others", Clauses: "S39", Needs: Requests, hook: hookRequests, run: requestPoison},
	{Name: "requests are deleted that were answered long ago, and no others", Clauses: "S38", Needs: Requests, hook: hookRequests, run: requestDropped},
	{Name: "a closed store answers no requests", Clauses: "S23", Needs: Requests, hook: hookRequests, run: requestClosed},
}

// RequestTable is the table of requests as a program reaches it that speaks SQL.
type RequestTable struct {
	// Insert inserts rows in one transaction, with the statements of a program, and
	// returns their numbers. An empty field of a request is NULL.
	Insert func(rows ...store.Request) (nos []int64, err error)
	// Answer reads what became of a row; ok is false if there is no such row.
	Answer func(no int64) (a RequestAnswer, ok bool, err error)
}

// RequestAnswer is what a row says of its request.
type RequestAnswer struct {
	Done               bool
	RunID, Code, Error string
}

// formed is the Change of a request, as an engine could form it.
func (t *T) formed(r store.Request) (store.Change, error) {
	if r.Input != "" && !json.Valid([]byte(r.Input)) {
		return store.Change{}, fmt.Errorf("the input is no JSON: %w", store.ErrInvalid)
	}
	switch r.Kind {
	case store.RequestStart:
		id := r.RunID
		if id == "" {
			id = fmt.Sprintf("%s-%d", r.Workflow, r.No)
		}
		c, _ := t.create(id, func(run *store.Run) {
			run.Workflow, run.Version, run.Queue, run.Partition, run.Dedup = r.Workflow, r.Version, r.Queue, r.Partition, r.Dedup
			run.Priority, run.WakeAt, run.InputHash = r.Priority, r.WakeAt, md5.Sum([]byte(r.Input))
		})
		return store.Change{Start: []store.Change{c}}, nil
	case store.RequestSignal:
		id := r.ID
		if id == "" {
			id = fmt.Sprint("request ", r.No)
		}
		return send(store.Message{To: r.RunID, Kind: store.KindSignal, Name: r.Name, ID: id, At: 1, Payload: []byte(r.Input)}), nil
	case store.RequestCancel:
		return send(store.Message{To: r.RunID, Kind: store.KindCancel, ID: fmt.Sprint("cancel ", r.No), At: 1}), nil
	}
	return store.Change{}, fmt.Errorf("request of kind %q: %w", r.Kind, store.ErrInvalid)
}

// drains answers the requests of all workflows until there are none that can be
// answered, and returns the answers.
func (t *T) drains(s store.Store) []store.Answer {
	t.Helper()
	var all []store.Answer
	d := store.Drain{Max: 100, Form: t.formed}
	for {
		got, err := capabilities(s).Requests.DrainRequests(t.Context(), d)
		require.NoError(t, err)
		all = append(all, got.Answers...)
		require.True(t, got.Last == 0 || got.Last > d.After, "S39: Last grows")
		if d.After = got.Last; d.After == 0 {
			return all
		}
	}
}

func (t *T) insert(d *Data, rows ...store.Request) []int64 {
	t.Helper()
	nos, err := d.Requests.Insert(rows...)
	require.NoError(t, err, "inserting requests")
	require.Len(t, nos, len(rows))
	return nos
}

func (t *T) answer(d *Data, no int64) RequestAnswer {
	t.Helper()
	a, ok, err := d.Requests.Answer(no)
	require.NoError(t, err)
	require.True(t, ok, "request %d is there", no)
	return a
}

func startOf(id string) store.Request {
	return store.Request{Kind: store.RequestStart, RunID: id, Workflow: "mail", Input: `{"to":"ann"}`}
}

func signalTo(id, value string) store.Request {
	return store.Request{Kind: store.RequestSignal, RunID: id, Name: "go", Input: value}
}

func requestOnce(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.run(s, "there")
	require.Empty(t, t.drains(s))
	anonymous := startOf("")
	anonymous.Queue = "q"
	nos := t.insert(d, startOf("r"), signalTo("there", `"now"`), store.Request{Kind: store.RequestCancel, RunID: "there", Reason: "no"}, anonymous)
	require.True(t, slices.IsSorted(nos))
	require.False(t, t.answer(d, nos[0]).Done)
	answers := t.drains(s)
	require.Len(t, answers, 4, "S38: all are answered")
	made := answers[3].RunID
	for i, a := range answers {
		require.NoError(t, a.Err)
		require.Equal(t, nos[i], a.Request.No, "S38: in the order of their numbers")
		want := RequestAnswer{Done: true, RunID: []string{"r", "there", "there", made}[i]}
		require.Equal(t, want, t.answer(d, nos[i]))
		require.Equal(t, want.RunID, a.RunID)
	}
	for _, reader := range []store.Store{s, other} {
		require.Equal(t, store.Pending, t.row(reader, "r").Status)
		require.Len(t, t.all(reader, "r").Events, 1)
		require.Equal(t, "q", t.row(reader, made).Queue)
		there := t.all(reader, "there")
		require.Len(t, there.Inbox, 2)
		require.Equal(t, `"now"`, string(there.Inbox[0].Payload))
		require.True(t, there.Run.CancelAsked)
	}
	before := t.dump(s)
	for _, again := range []store.Store{s, other} {
		require.Empty(t, t.drains(again), "S38: once")
	}
	require.Equal(t, before, t.dump(s), "S38: once")
}

func requestReads(t *T) {
	d := t.fresh()
	s := t.handle(d)
	odd := "ünïcode 🚚 'quoted' \"twice\" \\ {}"
	rows := []store.Request{
		{
			Kind: store.RequestStart, RunID: odd, Workflow: "W", Version: "v2", Queue: "q", Partition: odd, Dedup: "d", Priority: -1 << 31, WakeAt: 253_402_300_799_999_999,
			Attributes: `{"a":"` + "b" + `"}`, Headers: `{"h":""}`, Input: strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000),
		},
		{Kind: store.RequestStart, Workflow: "mail", Priority: 1<<31 - 1},
		{Kind: store.RequestSignal, RunID: odd, Name: odd, ID: "i", Input: " 1 "},
		{Kind: store.RequestCancel, RunID: odd, Reason: odd},
	}
	earliest := store.TimeOf(time.Now().Add(-time.Hour))
	nos := t.insert(d, rows...)
	var got []store.Request
	drained, err := capabilities(s).Requests.DrainRequests(t.Context(), store.Drain{Max: 10, Form: func(r store.Request) (store.Change, error) {
		got = append(got, r)
		return t.formed(r)
	}})
	require.NoError(t, err)
	require.Len(t, drained.Answers, 4)
	require.Len(t, got, 4)
	for i := range rows {
		require.Equal(t, drained.Answers[i].Request, got[i])
		require.Greater(t, got[i].CreatedAt, earliest, "S38: a request knows when it was inserted")
		rows[i].No, got[i].CreatedAt = nos[i], 0
		require.Equal(t, rows[i], got[i])
	}
}

func requestRefused(t *T) {
	d := t.fresh()
	s := t.handle(d)
	w := t.run(s, "ended", func(r *store.Run) { r.Status, r.Owner = store.Running, "me" })
	w.must(s, w.end(store.Completed))
	t.must(s, func() store.Change {
		c, _ := t.create("taken", func(r *store.Run) { r.Workflow = "other" })
		return c
	}())
	t.run(s, "deduped", func(r *store.Run) { r.Queue, r.Dedup = "q", "d" })
	before := t.dump(s)
	bad, deduped := startOf("bad"), startOf("another")
	bad.Input = `{"to":`
	deduped.Queue, deduped.Dedup = "q", "d"
	long := startOf(strings.Repeat("x", store.MaxRunID+1))
	for _, c := range []struct {
		r    store.Request
		code string
	}{
		{bad, store.RequestInvalid},
		{startOf("taken"), store.RequestConflict},
		{deduped, store.RequestConflict},
		{long, store.RequestInvalid},
		{signalTo("nobody", "1"), store.RequestNotFound},
		{signalTo("ended", "1"), store.RequestEnded},
		{store.Request{Kind: store.RequestCancel, RunID: "nobody"}, store.RequestNotFound},
	} {
		// Between two that are carried out, in one drain.
		nos := t.insert(d, startOf("first "+c.code+c.r.RunID[:3]), c.r, startOf("last "+c.code+c.r.RunID[:3]))
		answers := t.drains(s)
		require.Len(t, answers, 3, "S39: %s %.20s", c.r.Kind, c.r.RunID)
		a := t.answer(d, nos[1])
		require.True(t, a.Done)
		require.Equal(t, c.code, a.Code, "S38: %s", a.Error)
		require.NotEmpty(t, a.Error, "S38: the reason for people")
		require.Error(t, answers[1].Err)
		for _, i := range []int{0, 2} {
			require.Equal(t, RequestAnswer{Done: true, RunID: answers[i].RunID}, t.answer(d, nos[i]), "S39: those beside it are carried out")
			require.Equal(t, 1, t.remove(s, true, answers[i].RunID), "S39: those beside it are carried out")
		}
		require.Equal(t, before, t.dump(s), "S38: %s has no effect", c.r.Kind)
	}
}

func requestOrder(t *T) {
	d := t.fresh()
	s := t.handle(d)
	var rows []store.Request
	for i := range 3 {
		id := fmt.Sprint("r", i)
		rows = append(rows, startOf(id), signalTo(id, "0"), signalTo(id, "1"))
	}
	early := signalTo("late", "1")
	rows = append(rows, early, startOf("late"), signalTo("late", "2"))
	nos := t.insert(d, rows...)
	// A drain that takes little, and one that takes starts alone, leave what must
	// wait.
	_, err := capabilities(s).Requests.DrainRequests(t.Context(), store.Drain{After: nos[0], Max: 100, Form: t.formed})
	require.NoError(t, err)
	require.False(t, t.answer(d, nos[1]).Done, "S38: not before what comes before it")
	require.True(t, t.answer(d, nos[3]).Done)
	t.drains(s)
	for i := range 3 {
		inbox := t.all(s, fmt.Sprint("r", i)).Inbox
		require.Len(t, inbox, 2, "S38: a start, and what follows it")
		require.Equal(t, "01", string(inbox[0].Payload)+string(inbox[1].Payload), "S38: in their order")
	}
	require.Equal(t, store.RequestNotFound, t.answer(d, nos[9]).Code, "S38: before the start that comes after it")
	require.Len(t, t.all(s, "late").Inbox, 1)
}

func requestRaces(t *T) {
	d := t.fresh()
	const handles, runs, each = 4, 20, 10
	var rows []store.Request
	for i := range each {
		for r := range runs {
			id := fmt.Sprint("r", r)
			if i == 0 {
				rows = append(rows, startOf(id))
			} else {
				rows = append(rows, signalTo(id, fmt.Sprint(i)))
			}
		}
	}
	var open []store.Store
	for range handles {
		open = append(open, t.handle(d))
	}
	nos := t.insert(d, rows...)
	var mu sync.Mutex
	answered := map[int64]int{}
	var failed error
	t.together(handles, func(i int) {
		for deadline := time.Now().Add(t.patience()); time.Now().Before(deadline); {
			got, err := capabilities(open[i]).Requests.DrainRequests(t.Context(), store.Drain{Max: 7, Form: t.formed})
			mu.Lock()
			failed = errors.Join(failed, err)
			for _, a := range got.Answers {
				answered[a.Request.No]++
				failed = errors.Join(failed, a.Err)
			}
			over := len(answered) == len(nos) || failed != nil
			mu.Unlock()
			if over {
				return
			}
		}
	})
	require.NoError(t, failed)
	require.Len(t, answered, len(nos), "S38: all are answered")
	for no, n := range answered {
		require.Equal(t, 1, n, "S38: request %d is answered once", no)
	}
	for r := range runs {
		inbox := t.all(open[0], fmt.Sprint("r", r)).Inbox
		require.Len(t, inbox, each-1, "S38: each is carried out once")
		for i := range inbox {
			require.Equal(t, fmt.Sprint(i+1), string(inbox[i].Payload), "S38: in their order")
		}
	}
}

func requestPages(t *T) {
	d := t.fresh()
	s := t.handle(d)
	var rows []store.Request
	for i := range 10 {
		rows = append(rows, startOf(fmt.Sprint("r", i)))
	}
	nos := t.insert(d, rows...)
	requests := capabilities(s).Requests
	none, err := requests.DrainRequests(t.Context(), store.Drain{Form: t.formed})
	require.NoError(t, err)
	require.Equal(t, store.Drained{}, none)
	got, err := requests.DrainRequests(t.Context(), store.Drain{Max: 3, Form: t.formed})
	require.NoError(t, err)
	require.Len(t, got.Answers, 3, "S39: no more than Max")
	require.Equal(t, nos[2], got.Last)
	got, err = requests.DrainRequests(t.Context(), store.Drain{After: nos[6], Max: 10, Form: t.formed})
	require.NoError(t, err)
	require.Len(t, got.Answers, 3, "S39: behind After")
	require.Zero(t, got.Last, "S39: there is nothing behind")
	require.Len(t, t.list(s, store.Filter{}), 6)
	require.Len(t, t.drains(s), 4)
}

func requestServed(t *T) {
	d := t.fresh()
	s := t.handle(d)
	other := startOf("other")
	other.Workflow = "bill"
	nos := t.insert(d, other, signalTo("other", "1"), startOf("mine"))
	requests := capabilities(s).Requests
	drain := store.Drain{Max: 10, Serves: []string{"mail", "x"}, Leave: time.Hour, Form: t.formed}
	got, err := requests.DrainRequests(t.Context(), drain)
	require.NoError(t, err)
	require.Len(t, got.Answers, 1, "S39: the start of another workflow is left, with what follows it")
	require.Equal(t, "mine", got.Answers[0].RunID)
	require.True(t, got.Left)
	require.False(t, t.answer(d, nos[0]).Done)
	drain.Serves = []string{"bill"}
	got, err = requests.DrainRequests(t.Context(), drain)
	require.NoError(t, err)
	require.Len(t, got.Answers, 2, "S39: it is for those who have its code")
	again := startOf("again")
	again.Workflow = "bill"
	t.insert(d, again)
	drain.Serves, drain.Leave = nil, 0
	t.eventually("S39: a start is left no longer than Leave", func() bool {
		got, err = requests.DrainRequests(t.Context(), drain)
		require.NoError(t, err)
		return len(got.Answers) == 1
	})
}

func requestLarge(t *T) {
	d := t.fresh()
	s := t.handle(d)
	huge, big := startOf("huge"), signalTo("small", "")
	huge.Input = `"` + strings.Repeat("x", s.Limits().Batch) + `"`
	big.Input = huge.Input[:s.Limits().Payload] + `"`
	nos := t.insert(d, huge, startOf("small"), big, signalTo("small", "2"))
	require.Len(t, t.drains(s), 4)
	for i, code := range []string{store.RequestTooLarge, "", store.RequestTooLarge, ""} {
		a := t.answer(d, nos[i])
		require.Equal(t, code, a.Code, "S39: %s", a.Error)
		require.True(t, a.Done)
	}
	require.Len(t, t.all(s, "small").Inbox, 1)
}

func requestPoison(t *T) {
	d := t.fresh()
	s := t.handle(d)
	nos := t.insert(d, startOf("a"), startOf("bad"), startOf("b"))
	got, err := capabilities(s).Requests.DrainRequests(t.Context(), store.Drain{Max: 10, Form: func(r store.Request) (store.Change, error) {
		c, err := t.formed(r)
		if r.RunID == "bad" {
			c.Start[0].Events = nil // which no store takes
		}
		return c, err
	}})
	require.NoError(t, err)
	require.Len(t, got.Answers, 3)
	require.Equal(t, store.RequestInvalid, t.answer(d, nos[1]).Code)
	require.Equal(t, []string{"a", "b"}, sortedIDs(t.list(s, store.Filter{})), "S39: the others are carried out")
}

func requestDropped(t *T) {
	d := t.fresh()
	s := t.handle(d)
	var rows []store.Request
	for i := range 5 {
		rows = append(rows, startOf(fmt.Sprint("r", i)))
	}
	nos := t.insert(d, rows...)
	requests := capabilities(s).Requests
	_, err := requests.DrainRequests(t.Context(), store.Drain{Max: 4, Form: t.formed})
	require.NoError(t, err)
	drop := func(before store.Time, limit int) int {
		n, err := requests.DropRequests(t.Context(), before, limit)
		require.NoError(t, err)
		return n
	}
	require.Zero(t, drop(store.TimeOf(time.Now().Add(-time.Hour)), 10), "not answered before that")
	later := store.TimeOf(time.Now().Add(1000 * time.Hour))
	require.Zero(t, drop(later, 0))
	require.Equal(t, 3, drop(later, 3))
	_, ok, err := d.Requests.Answer(nos[0])
	require.NoError(t, err)
	require.False(t, ok, "the oldest first")
	require.True(t, t.answer(d, nos[3]).Done)
	require.Equal(t, 1, drop(later, 10), "S38: an open request stays")
	require.False(t, t.answer(d, nos[4]).Done)
	require.Len(t, t.drains(s), 1)
	require.Len(t, t.list(s, store.Filter{}), 5)
}

func requestClosed(t *T) {
	s, err := t.fresh().Open()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = capabilities(s).Requests.DrainRequests(t.Context(), store.Drain{Max: 1, Form: t.formed})
	require.ErrorIs(t, err, store.ErrClosed)
	_, err = capabilities(s).Requests.DropRequests(t.Context(), 1, 1)
	require.ErrorIs(t, err, store.ErrClosed)
}
