package conformance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/store"
)

var loadCases = []Case{
	{Name: "a row, its attributes and its last event are of one moment", Clauses: "S27", run: loadMoment},
	{Name: "a range over a run that is deleted meanwhile does not end in silence", Clauses: "S27", run: loadDeleted},
	{Name: "events are written while events are ranged over", Clauses: "S27", run: loadWrites},
	{Name: "a range that is broken off holds nothing", Clauses: "S27", run: loadBroken},
	{Name: "a range ends with its context and with the store", Clauses: "S18, S23, S27", run: loadEnded},
	{Name: "what was given is the caller's again", Clauses: "S17", run: loadGiven},
	{Name: "what was returned is the caller's own", Clauses: "S17", run: loadReturned},
}

// loadMoment makes each Change write one number everywhere while others read and list.
func loadMoment(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	writers := []*writer{t.run(s, "a"), t.run(s, "b")}
	// Until both readers have read often enough during the writing.
	const rounds, most, reads = 30, 3000, 25
	var read [3]atomic.Int32
	done := make(chan struct{})
	differs := func(r store.Run, how string) bool {
		n := r.Priority
		want := map[string]string{"n": fmt.Sprint(n), fmt.Sprint("only ", n): "x"}
		if n == 0 {
			want = nil
		}
		if r.Last == nil || r.Last.Seq != int64(n)+1 || !maps.Equal(r.Attributes, want) {
			t.Errorf("S27: %s: the row is %d, with attributes %v and last event %s", how, n, r.Attributes, show(r.Last))
			return true
		}
		return false
	}
	t.together(3, func(i int) {
		if i == 0 {
			defer close(done)
			for n := 1; n <= rounds || n <= most && min(read[1].Load(), read[2].Load()) < reads; n++ {
				for _, w := range writers {
					c := w.append(step(fmt.Sprint(n)))
					c.Row = &store.RowPatch{Priority: ptr(int32(n)), Attributes: map[string]string{"n": fmt.Sprint(n), fmt.Sprint("only ", n): "x"}}
					if err := one(t.Context(), s, c); err != nil {
						t.Errorf("S1: write %d: %v", n, err)
						return
					}
					w.done(c)
				}
			}
			return
		}
		for {
			if i == 1 {
				h, err := other.Load(t.Context(), "a", store.Cursor{NoEvents: true})
				if err != nil || differs(h.Run, "Load") {
					t.checkErr("load", err)
					return
				}
			} else {
				p, err := s.List(t.Context(), store.Filter{WithLast: true})
				if err != nil || len(p.Runs) != 2 || differs(p.Runs[0], "List") || differs(p.Runs[1], "List") {
					t.checkErr("list", err)
					return
				}
			}
			read[i].Add(1)
			select {
			case <-done:
				return
			default:
			}
		}
	})
}

// checkErr is for goroutines, which cannot require.
func (t *T) checkErr(what string, err error) {
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// long creates a run with n events.
func (t *T) long(s store.Store, id string, n int) *writer {
	t.Helper()
	w := t.run(s, id)
	for w.seq < int64(n) {
		var events []store.Event
		for range min(500, n-int(w.seq)) {
			events = append(events, step("s"))
		}
		w.must(s, w.append(events...))
	}
	return w
}

func loadDeleted(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	for _, n := range []int{3, 4000} {
		for _, at := range []int{1, n / 2} {
			id := fmt.Sprintf("r%d.%d", n, at)
			t.long(s, id, n)
			h, err := s.Load(t.Context(), id, store.Cursor{All: true})
			require.NoError(t, err)
			read, failed := 0, false
			for _, err := range h.Events {
				if err != nil {
					failed = true
					break
				}
				if read++; read == at {
					t.within("a deletion waits for one who ranges over the events", func(ctx context.Context) error {
						_, err := other.Delete(ctx, store.Deletion{RunIDs: []string{id}, Force: true})
						return err
					})
				}
			}
			if !failed {
				require.Equal(t, n, read, "S27: the run was deleted after %d of %d events, and the range ends in silence", at, n)
			}
			// Before it is ranged over.
			t.long(s, id, n)
			h, err = s.Load(t.Context(), id, store.Cursor{All: true})
			require.NoError(t, err)
			_, err = other.Delete(t.Context(), store.Deletion{RunIDs: []string{id}, Force: true})
			require.NoError(t, err)
			read, failed = 0, false
			for _, err := range h.Events {
				if failed = err != nil; failed {
					break
				}
				read++
			}
			if !failed {
				require.Equal(t, n, read, "S27: the run of %d events was deleted before the range, which ends in silence", n)
			}
		}
	}
}

// within does something for which a broken store would wait for ever.
func (t *T) within(what string, do func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), t.patience()/2)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := fmt.Errorf("it did not come back")
		defer func() { done <- err }()
		t.guard(func() { err = do(ctx) })
	}()
	select {
	case err := <-done:
		require.NoError(t, err, "S27: %s", what)
	case <-ctx.Done():
		require.Fail(t, "S27: "+what)
	}
}

func loadWrites(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	const n = 1200
	w := t.long(s, "r", n)
	mate := t.run(s, "mate")
	h, err := s.Load(t.Context(), "r", store.Cursor{All: true})
	require.NoError(t, err)
	read := 0
	for e, err := range h.Events {
		require.NoError(t, err)
		read++
		require.Equal(t, int64(read), e.Seq, "S27: in order, none missing")
		if read%400 != 1 || read > n {
			continue
		}
		for i, st := range []store.Store{s, other} {
			for _, w := range []*writer{w, mate} {
				c := w.append(step(fmt.Sprint("while ", read, i)))
				t.within("a writer waits for one who ranges over the events", func(ctx context.Context) error { return one(ctx, st, c) })
				w.done(c)
			}
		}
		t.within("a reader waits for one who ranges over the events", func(ctx context.Context) error {
			_, err := s.Load(ctx, "r", store.Cursor{NoEvents: true})
			return err
		})
	}
	require.GreaterOrEqual(t, read, n, "S27: all that were there")
}

func loadBroken(t *T) {
	s := t.open()
	w := t.long(s, "r", 1500)
	for range 150 {
		h, err := s.Load(t.Context(), "r", store.Cursor{})
		require.NoError(t, err)
		for e, err := range h.Events {
			require.NoError(t, err)
			if e.Seq == 2 {
				break
			}
		}
	}
	c := w.append(step("after"))
	t.within("ranges that were broken off hold up a writer", func(ctx context.Context) error { return one(ctx, s, c) })
	t.within("ranges that were broken off hold up a reader", func(ctx context.Context) error {
		h, err := s.Load(ctx, "r", store.Cursor{Tail: 1})
		if err != nil {
			return err
		}
		for _, err := range h.Events {
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func loadEnded(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.long(s, "r", 4000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, err := s.Load(ctx, "r", store.Cursor{})
	require.NoError(t, err)
	read := 0
	var last error
	for _, err := range h.Events {
		if last = err; err != nil {
			break
		}
		if read++; read == 10 {
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled, "S27: the context ended after 10 of 4000 events, and %d were read", read)
	for _, err := range h.Events {
		last = err
		break
	}
	require.ErrorIs(t, last, context.Canceled, "S27: ranged over again")

	closing, err := d.Open()
	require.NoError(t, err)
	h, err = closing.Load(t.Context(), "r", store.Cursor{})
	require.NoError(t, err)
	require.NoError(t, closing.Close())
	last = nil
	for _, err := range h.Events {
		if last = err; err != nil {
			break
		}
	}
	if !t.h.has(SingleProcess) { // there the handle stays open for the others
		require.ErrorIs(t, last, store.ErrClosed, "S23: events of a store that is closed")
	}
}

// loadGiven overwrites everything that it passed in, as soon as the call has returned.
func loadGiven(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "other")
	created, w := t.create("r", fullRun, func(r *store.Run) {
		r.ID, r.Status, r.Paused, r.Workflow, r.Version, r.Dedup = "r", store.Waiting, false, workflow, version, ""
		r.Attributes = map[string]string{"a": "1", "b": "2"}
	})
	w.must(s, created)
	change := w.append(store.Event{Type: store.StepCompleted, Key: "k", Data: []byte(`{"n":1}`), Payload: []byte("payload")})
	change.Row = &store.RowPatch{Attributes: map[string]string{"a": "3"}}
	change.Send = []store.Message{{To: "other", Kind: store.KindSignal, ID: "1", Data: []byte(`{"m":1}`), Payload: []byte("message")}}
	change.Hold = []string{"desk"}
	spoil := func(b []byte) {
		for i := range b {
			b[i] = 'X'
		}
	}
	first := stored(created)
	first[0].Payload = bytes.Clone(first[0].Payload)
	spoil(created.Events[0].Payload)
	created.Create.Attributes["a"], created.Create.Attributes["new"] = "spoilt", "x"
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, t.row(s, "r").Attributes, "S17: the map of a Create is the caller's again")
	require.Equal(t, first, t.all(s, "r").Events, "S17: the payload of a Create is the caller's again")

	want := stored(change)
	want[0].Data, want[0].Payload = bytes.Clone(want[0].Data), bytes.Clone(want[0].Payload)
	message := change.Send[0]
	message.Data, message.Payload, message.Seq = bytes.Clone(message.Data), bytes.Clone(message.Payload), 1
	w.must(s, change)
	spoil(change.Events[0].Data)
	spoil(change.Events[0].Payload)
	spoil(change.Send[0].Data)
	spoil(change.Send[0].Payload)
	change.Row.Attributes["a"], change.Hold[0] = "spoilt", "lamp"
	for _, reader := range []store.Store{s, t.handle(d)} {
		got := t.all(reader, "r")
		require.Equal(t, want, got.Events[len(got.Events)-1:], "S17: the bytes of an event are the caller's again")
		require.Equal(t, map[string]string{"a": "3"}, got.Run.Attributes, "S17: the map of a RowPatch is the caller's again")
		require.Equal(t, []store.Message{message}, t.all(reader, "other").Inbox, "S17: the bytes of a message are the caller's again")
	}
	require.ErrorIs(t, t.tryHold(s, "desk"), store.ErrOccupied, "S17: the keys are the caller's again")
	checkpointsGiven(t, d, s, w)

	served := []store.Served{{Workflow: workflow, Versions: []string{version}}}
	_, err := s.Beat(t.Context(), store.Executor{ID: "a", Lease: longLease, Serves: served})
	require.NoError(t, err)
	served[0].Versions[0], served[0] = "spoilt", store.Served{Workflow: "spoilt"}
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, serves, all[0].Serves, "S17: what is served is the caller's again")
	claim := claimOf("a", "r")
	claim.Data = []byte(`{"by":"a"}`)
	runs, err := s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	spoil(claim.Data)
	require.Equal(t, `{"by":"a"}`, string(t.row(s, "r").Last.Data), "S17: the data of a claim are the caller's again")
}

// checkpointsGiven does so with the usual checkpoints, which are nothing but events: a caller uses all
// of their memory for the next one.
func checkpointsGiven(t *T, d *Data, s store.Store, w *writer) {
	for n := 1; n <= 2; n++ {
		plain := w.append([]store.Event{step("plain"), step("and another")}[:n]...)
		want := stored(plain)
		for i := range want {
			want[i].Payload = bytes.Clone(want[i].Payload)
		}
		w.must(s, plain)
		for i := range plain.Events {
			clear(plain.Events[i].Payload)
		}
		clear(plain.Events)
		for _, reader := range []store.Store{s, t.handle(d)} {
			got := t.all(reader, "r").Events
			require.Equal(t, want, got[len(got)-n:], "S17: the events of a checkpoint are the caller's again")
		}
	}
}

// loadReturned overwrites everything that was returned to it.
func loadReturned(t *T) {
	s := t.open()
	w := t.run(s, "r", func(r *store.Run) { r.Attributes = map[string]string{"a": "1"} })
	c := w.append(step("a"))
	c.Send, c.Branch = []store.Message{signal("r", "1")}, &store.Branch{N: 1, Cutoff: 1, Reason: "why", CreatedAt: t.now()}
	w.must(s, c)
	t.beat(s, "a")
	before := t.dump(s)
	spoil := func(r store.Run) {
		if r.Attributes != nil {
			r.Attributes["a"] = "spoilt"
		}
		if r.Last != nil {
			r.Last.Seq = 99
			clear(r.Last.Payload)
			clear(r.Last.Data)
		}
	}
	h, err := s.Load(t.Context(), "r", store.Cursor{All: true})
	require.NoError(t, err)
	spoil(h.Run)
	h.Branches[0].Reason, h.Inbox[0].ID = "spoilt", "spoilt"
	clear(h.Inbox[0].Payload)
	for e, err := range h.Events {
		require.NoError(t, err)
		clear(e.Payload)
	}
	p, err := s.List(t.Context(), store.Filter{WithLast: true})
	require.NoError(t, err)
	spoil(p.Runs[0])
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	all[0].Serves[0].Versions[0] = "spoilt"
	all, err = s.Executors(t.Context())
	require.NoError(t, err)
	require.Equal(t, serves, all[0].Serves, "S17: an executor that was returned is the caller's own")
	require.Equal(t, before, t.dump(s), "S17: what was returned is the caller's own")
	runs := t.claim(s, "a", "r")
	require.Len(t, runs, 1)
	before = t.dump(s)
	spoil(runs[0])
	require.Equal(t, before, t.dump(s), "S17: a claimed run is the caller's own")
}
