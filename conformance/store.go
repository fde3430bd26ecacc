package conformance

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/store"
)

var storeCases = []Case{
	{Name: "data opened again is the same", Clauses: "S4", run: storeReopen},
	{Name: "a closed store says so", Clauses: "S23", run: storeClosed},
	{Name: "closing one handle leaves the others usable", Clauses: "S4, S23", run: storeHandles},
	{Name: "closing in the middle of work loses nothing that was acknowledged", Clauses: "S4, S23", run: storeCloseBusy},
	{Name: "many may open new data at once", Clauses: "S4", run: storeOpenRace},
	{Name: "all methods may be called at once", Clauses: "S1, S19", run: storeBusy},
	{Name: "damage is found and stays where it is", Clauses: "S4", hook: hookCorrupt, run: storeCorrupt},
	{Name: "data of a newer program is refused", Clauses: "S23", hook: hookFuture, run: storeFuture},
}

func storeReopen(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	t.shelf(s)
	t.tree(s)
	c, w := t.full(s, "full")
	w.must(s, c)
	w = t.run(s, "big")
	w.must(s, w.append(store.Event{Type: store.StepCompleted, Payload: noise(300_000)}))
	require.NoError(t, s.Close())
	s, err = d.Open()
	require.NoError(t, err)
	before := t.dump(s)
	require.Len(t, before, 24+1+3+1)
	require.NoError(t, s.Close())
	s = t.handle(d)
	require.Equal(t, before, t.dump(s), "S4: as it was, event for event")
	require.ErrorIs(t, t.tryHold(s, "full key"), store.ErrOccupied, "keys too")
	w.steps(s, 1)
}

func storeClosed(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	w := t.run(s, "r")
	t.beat(s, "a")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "a second Close is no error")
	closed := func(what string, err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrClosed, what)
	}
	created, _ := t.create("new")
	errs := s.Commit(t.Context(), []store.Change{w.append(step("a")), created, send(signal("r", "1"))})
	require.Len(t, errs, 3)
	for _, err := range errs {
		closed("Commit", err)
	}
	closed("Commit", one(t.Context(), s, w.end(store.Cancelled)))
	_, err = s.Load(t.Context(), "r", store.Cursor{})
	closed("Load", err)
	_, err = s.List(t.Context(), store.Filter{})
	closed("List", err)
	_, err = s.Count(t.Context(), store.Filter{}, "")
	closed("Count", err)
	_, err = s.Claim(t.Context(), claimOf("a"))
	closed("Claim", err)
	_, err = s.Beat(t.Context(), store.Executor{ID: "a", Lease: longLease})
	closed("Beat", err)
	_, err = s.Executors(t.Context())
	closed("Executors", err)
	_, err = s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}, Force: true})
	closed("Delete", err)
	require.Len(t, t.all(t.handle(d), "r").Events, 1)
}

func storeHandles(t *T) {
	d := t.fresh()
	var w *writer
	for i := range 4 {
		s, err := d.Open()
		require.NoError(t, err)
		if w == nil {
			w = t.run(s, "r")
		}
		other := t.handle(d)
		w.steps(s, 2)
		require.NoError(t, s.Close())
		w.steps(other, 2)
		require.Len(t, t.all(other, "r").Events, 1+4*(i+1))
	}
}

func storeCloseBusy(t *T) {
	d := t.fresh()
	for round := range 4 {
		s, err := d.Open()
		require.NoError(t, err)
		const clients = 4
		writers := make([]*writer, clients)
		for i := range writers {
			writers[i] = t.run(s, fmt.Sprintf("r%d.%d", round, i))
		}
		pending := make([]store.Change, clients)
		var started sync.WaitGroup
		started.Add(clients)
		var closed atomic.Bool
		t.together(clients+1, func(i int) {
			if i == clients {
				started.Wait()
				if err := s.Close(); err != nil {
					t.Errorf("S23: Close: %v", err)
				}
				closed.Store(true)
				return
			}
			for n := 0; ; n++ {
				c := writers[i].append(step(fmt.Sprint(n)))
				late := closed.Load()
				err := one(t.Context(), s, c)
				if n == 0 {
					started.Done()
				}
				if err == nil && late {
					t.Errorf("S23: the store was closed and still writes")
					return
				}
				if err != nil {
					if !isOneOf(err, store.ErrClosed, store.ErrUnknown) {
						t.Errorf("S23: %v", err)
					}
					pending[i] = c
					return
				}
				writers[i].done(c)
			}
		})
		s = t.handle(d)
		for i, w := range writers {
			head := int64(len(t.all(s, w.id).Events))
			require.GreaterOrEqual(t, head, w.seq, "S4: acknowledged and lost")
			require.LessOrEqual(t, head, w.seq+1)
			w.must(s, pending[i]) // S6: whether it succeeded or not
			require.Len(t, t.all(s, w.id).Events, int(w.seq))
		}
	}
}

func storeOpenRace(t *T) {
	d := t.fresh()
	const clients = 4
	handles, errs := make([]store.Store, clients), make([]error, clients)
	t.together(clients, func(i int) { handles[i], errs[i] = d.Open() })
	for i, err := range errs {
		require.NoError(t, err, "opening handle %d", i)
	}
	for i, s := range handles {
		t.run(s, fmt.Sprint("r", i))
	}
	for _, s := range handles {
		require.Len(t, t.list(s, store.Filter{}), clients)
		require.NoError(t, s.Close())
	}
}

func storeBusy(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const clients, rounds = 6, 6
	t.together(clients, func(i int) {
		s, executor := handles[i%2], fmt.Sprint("e", i)
		for n := range rounds {
			id := fmt.Sprintf("r%d.%d", i, n)
			c, w := t.create(id, func(r *store.Run) { r.Attributes = map[string]string{"client": fmt.Sprint(i)} })
			fail := func(what string, err error) bool {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				return err != nil
			}
			_, err := s.Beat(t.Context(), store.Executor{ID: executor, Lease: longLease, Serves: serves})
			if fail("beat", err) || fail("create", one(t.Context(), s, c)) {
				return
			}
			if fail("append", one(t.Context(), s, w.append(step("a")))) {
				return
			}
			runs, err := s.Claim(t.Context(), claimOf(executor, id))
			if fail("claim", err) {
				return
			}
			if len(runs) != 1 {
				t.Errorf("S19: nobody else wants %s, but the claim took %d", id, len(runs))
				return
			}
			w = t.at(runs[0])
			c = w.end(store.Completed)
			c.Send = []store.Message{{To: fmt.Sprintf("r%d.%d", (i+1)%clients, n), Kind: store.KindSignal, ID: id, IfLive: true}}
			if fail("end", one(t.Context(), s, c)) {
				return
			}
			_, err = s.List(t.Context(), store.Filter{Attributes: map[string]string{"client": fmt.Sprint(i)}, Limit: 3})
			fail("list", err)
			_, err = s.Count(t.Context(), store.Filter{}, store.ByStatus)
			fail("count", err)
			h, err := s.Load(t.Context(), id, store.Cursor{})
			if fail("load", err) {
				return
			}
			for _, err := range h.Events {
				fail("events", err)
			}
			if n%2 == 1 {
				_, err = s.Delete(t.Context(), store.Deletion{RunIDs: []string{id}})
				fail("delete", err)
			}
			_, err = s.Executors(t.Context())
			fail("executors", err)
		}
	})
	require.Equal(t, map[string]int64{"completed": clients * rounds / 2}, t.count(handles[0], store.Filter{}, store.ByStatus))
}

func storeCorrupt(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	w := t.run(s, "damaged")
	w.steps(s, 4)
	t.run(s, "sound").steps(s, 4)
	require.NoError(t, s.Close())
	require.NoError(t, d.Corrupt("damaged", 3))
	s = t.handle(d)
	require.Error(t, verify(t, s, "damaged"), "the damage is found")
	require.NoError(t, verify(t, s, "sound"), "the other run is as it was")
	t.exempt(d)
}

// verify reads a run and returns what is wrong with its events.
func verify(t *T, s store.Store, id string) error {
	h, err := s.Load(t.Context(), id, store.Cursor{All: true})
	if err != nil {
		return err
	}
	var sum uint32
	var seq int64
	for e, err := range h.Events {
		if err != nil {
			return err
		}
		seq++
		if e.Seq != seq || store.Seal(id, sum, &e) != e.Sum {
			return fmt.Errorf("event %d of %s is not as it was sealed", seq, id)
		}
		sum = e.Sum
	}
	return nil
}

func storeFuture(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	t.run(s, "r")
	require.NoError(t, s.Close())
	require.NoError(t, d.Future())
	t.exempt(d)
	s, err = d.Open()
	if err == nil {
		err = errors.Join(errors.New("it was opened"), s.Close())
	}
	require.ErrorIs(t, err, store.ErrSchema)
	var schema *store.SchemaError
	require.ErrorAs(t, err, &schema)
	require.Greater(t, schema.Have, schema.Know)
}
