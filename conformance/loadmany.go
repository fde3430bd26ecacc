package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var loaderCases = []Case{
	{Name: "of runs that are loaded together each is as if it were loaded alone", Clauses: "S43", Needs: Loader, run: loaderAlike},
	{Name: "each of the runs that are loaded together is of one moment", Clauses: "S43, S27", Needs: Loader, run: loaderMoment},
	{Name: "events of runs that were loaded together are the caller's own, each time", Clauses: "S43, S17", Needs: Loader, run: loaderOwn},
	{Name: "of runs that were loaded together one may be deleted while its events are ranged over", Clauses: "S43, S27", Needs: Loader, run: loaderDeleted},
	{Name: "what keeps all runs from being loaded is the outcome of each", Clauses: "S43, S18, S23", Needs: Loader, run: loaderEnded},
}

// loadAll loads runs by the capability, each of which must exist.
func (t *T) loadAll(s store.Store, loads []store.RunCursor) []loaded {
	t.Helper()
	got := capabilities(s).Loader.LoadAll(t.Context(), loads)
	require.Len(t, got, len(loads), "S43: there is one outcome for each")
	all := make([]loaded, len(got))
	for i := range got {
		require.NoError(t, got[i].Err, "S43: load of %q as one of %d", loads[i].RunID, len(loads))
		all[i] = t.read(got[i].History, loads[i].RunID)
	}
	return all
}

// cursors are some of everything that may be asked for of a run with branches up to 3.
func cursors() []store.Cursor {
	return []store.Cursor{
		{}, {All: true}, {NoEvents: true}, {After: 3}, {After: 100000}, {Tail: 1}, {Tail: 4}, {Tail: 100000}, {Tail: 5, All: true}, {After: 12, Tail: 4},
		{AfterMessage: 1}, {AfterMessage: 2, NoEvents: true}, {AfterMessage: 100000}, {Branch: ptr(int32(0))}, {Branch: ptr(int32(1)), Tail: 3},
	}
}

func loaderAlike(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.tree(s) // "r"
	// More than is read in one piece, in events and in bytes.
	t.long(s, "long", 700)
	wide := t.run(s, "wide")
	for i := range 5 {
		e := step(fmt.Sprint("large", i))
		e.Payload = bytes.Repeat([]byte{byte(i), 0, 0xff}, 20000)
		wide.must(s, wide.append(e, step(fmt.Sprint("small", i))))
	}
	rich := t.run(s, "rich", func(r *store.Run) { r.Attributes = map[string]string{"a": "1", "b": "\"x\", {y}"} })
	for i := range 3 {
		t.must(s, send(signal("rich", fmt.Sprint(i))), send(signal("r", fmt.Sprint(i))))
	}
	rich.must(s, rich.append(step("one")))
	ids := []string{"rich", "r", "long", "wide", "rich"}
	for i := range 120 {
		id := fmt.Sprintf("many %d, \"%c\"", i, 'a'+i%26)
		w := t.run(s, id)
		w.must(s, w.append(step(id)))
		ids = append(ids, id)
	}
	for _, reader := range []store.Store{s, t.handle(d)} {
		var loads []store.RunCursor
		for i, id := range ids {
			for j, c := range cursors() {
				if i < 5 || i%len(cursors()) == j {
					loads = append(loads, store.RunCursor{RunID: id, Cursor: c})
				}
			}
		}
		for i, got := range t.loadAll(reader, loads) {
			want := t.load(reader, loads[i].RunID, loads[i].Cursor)
			require.Equal(t, want, got, "S43: load %d of %d, of run %q with %+v", i, len(loads), loads[i].RunID, loads[i].Cursor)
		}
		// What is not there is in nobody's way.
		for i := 0; i < len(loads); i += 7 {
			loads[i].RunID = fmt.Sprint("missing ", i)
		}
		loads[7].RunID = "\xff\x00"
		got := capabilities(reader).Loader.LoadAll(t.Context(), loads)
		require.Len(t, got, len(loads))
		for i := range got {
			if i%7 == 0 {
				require.ErrorIs(t, got[i].Err, store.ErrNotFound, "S43: a run that does not exist, %d of %d", i, len(loads))
				continue
			}
			require.NoError(t, got[i].Err, "S43: beside runs that do not exist")
			require.Equal(t, loads[i].RunID, got[i].History.Run.ID, "S43: outcomes are in order")
		}
	}
	require.Empty(t, capabilities(s).Loader.LoadAll(t.Context(), nil), "S43: no runs are no outcomes")
}

// loaderMoment makes each Change write one number everywhere while others load.
func loaderMoment(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	writers := []*writer{t.run(s, "a"), t.run(s, "b")}
	const rounds, most, reads = 30, 3000, 25
	var read atomic.Int32
	var stopped atomic.Bool
	done := make(chan struct{})
	t.together(2, func(i int) {
		if i == 0 {
			defer close(done)
			for n := 1; n <= rounds || n <= most && read.Load() < reads; n++ {
				for read.Load() < int32(n*reads/most) && !stopped.Load() {
					time.Sleep(10 * time.Microsecond) // or all is written before the first look
				}
				for _, w := range writers {
					c := w.append(step(fmt.Sprint(n)))
					c.Row = &store.RowPatch{Priority: ptr(int32(n)), Attributes: map[string]string{"n": fmt.Sprint(n)}}
					c.Send = []store.Message{signal(w.id, fmt.Sprint(n))}
					if err := one(t.Context(), s, c); err != nil {
						t.Errorf("S1: write %d: %v", n, err)
						return
					}
					w.done(c)
				}
			}
			return
		}
		defer stopped.Store(true)
		for {
			for _, l := range capabilities(other).Loader.LoadAll(t.Context(), []store.RunCursor{{RunID: "a"}, {RunID: "b"}, {RunID: "a", Cursor: store.Cursor{Tail: 1}}}) {
				if l.Err != nil {
					t.Errorf("S43: %v", l.Err)
					return
				}
				r := &l.History.Run
				n := int64(r.Priority)
				last := int64(0)
				for e, err := range l.History.Events {
					t.checkErr("range", err)
					last = e.Seq
				}
				if r.Last == nil || r.Last.Seq != n+1 || last != n+1 || n > 0 && r.Attributes["n"] != fmt.Sprint(n) || r.Inbox != n || int64(len(l.History.Inbox)) != n {
					t.Errorf("S43: the row is of change %d, with attributes %v, last event %s, event %d as the last one of the range, and %d of %d messages", n, r.Attributes, show(r.Last), last, len(l.History.Inbox), r.Inbox)
					return
				}
			}
			read.Add(1)
			select {
			case <-done:
				return
			default:
			}
		}
	})
}

func loaderOwn(t *T) {
	s := t.open()
	for _, id := range []string{"a", "b"} {
		w := t.run(s, id)
		for i := range 4 {
			w.must(s, w.append(store.Event{Type: store.StepCompleted, Key: fmt.Sprint(i), Data: []byte(`{"n":1}`), Payload: []byte("payload of " + id)}))
		}
	}
	want := map[string]loaded{"a": t.load(s, "a", store.Cursor{}), "b": t.load(s, "b", store.Cursor{})}
	got := capabilities(s).Loader.LoadAll(t.Context(), []store.RunCursor{{RunID: "a"}, {RunID: "b"}, {RunID: "a"}})
	require.Len(t, got, 3)
	for _, l := range got {
		require.NoError(t, l.Err)
		require.Equal(t, want[l.History.Run.ID], t.read(l.History, l.History.Run.ID), "S43: the first range")
		for e, err := range l.History.Events {
			require.NoError(t, err)
			clear(e.Payload)
			clear(e.Data)
			break
		}
		clear(l.History.Run.Last.Payload)
		again := t.read(l.History, l.History.Run.ID)
		require.Equal(t, want[l.History.Run.ID].Events, again.Events, "S17: a later range after what was handed out was overwritten, and a range broken off")
	}
}

func loaderDeleted(t *T) {
	s := t.open()
	for _, n := range []int{3, 1500} {
		for _, id := range []string{"kept", "gone"} {
			t.long(s, fmt.Sprint(id, n), n)
		}
		loads := []store.RunCursor{{RunID: fmt.Sprint("gone", n), Cursor: store.Cursor{All: true}}, {RunID: fmt.Sprint("kept", n), Cursor: store.Cursor{All: true}}}
		got := capabilities(s).Loader.LoadAll(t.Context(), loads)
		require.Len(t, got, 2)
		t.remove(s, true, loads[0].RunID)
		for i, l := range got {
			require.NoError(t, l.Err)
			read, failed := 0, false
			for _, err := range l.History.Events {
				if failed = err != nil; failed {
					break
				}
				read++
			}
			if i == 1 || !failed {
				require.False(t, failed, "S43: the run was not deleted")
				require.Equal(t, n, read, "S27: a run of %d events was deleted before the range, which ends in silence", n)
			}
		}
	}
}

func loaderEnded(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "a")
	t.run(s, "b")
	loads := []store.RunCursor{{RunID: "a"}, {RunID: "missing"}, {RunID: "b"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, l := range capabilities(s).Loader.LoadAll(ctx, loads) {
		require.ErrorIs(t, l.Err, context.Canceled, "S43: the context has ended, outcome %d", i)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for range 200 {
		for i, l := range capabilities(s).Loader.LoadAll(ctx, loads) {
			missing := i == 1 && errors.Is(l.Err, store.ErrNotFound)
			require.True(t, missing || l.Err == nil || errors.Is(l.Err, context.DeadlineExceeded), "S18: outcome %d is %v", i, l.Err)
		}
	}
	if t.h.has(SingleProcess) {
		return // there the handle stays open for the others
	}
	closed, err := d.Open()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for i, l := range capabilities(closed).Loader.LoadAll(t.Context(), loads) {
		require.ErrorIs(t, l.Err, store.ErrClosed, "S23: outcome %d of a store that is closed", i)
	}
}
