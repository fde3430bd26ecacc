package conformance

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var keyCases = []Case{
	{Name: "an exclusive key is held by one run", Clauses: "S11", run: keyHeld},
	{Name: "keys are taken all or none", Clauses: "S1, S11", run: keyAllOrNone},
	{Name: "keys are freed by a release and by a deletion", Clauses: "S11", run: keyFreed},
	{Name: "a release comes before what the same change takes", Clauses: "S11, S25", run: keySwapped},
	{Name: "keys and dedup values are taken to the letter", Clauses: "S11, S12", run: keyLiteral},
	{Name: "a run that exists is found before its keys are looked at", Clauses: "S8, S11", run: keyExisting},
	{Name: "a failed run takes its keys again with the act that reopens it", Clauses: "S1, S11", run: keyReopened},
	{Name: "of many that want one key one gets it", Clauses: "S11", run: keyRace},
	{Name: "one unfinished run has a dedup value in a queue", Clauses: "S12", run: keyDedup},
	{Name: "a dedup value is free when its run has ended or is deleted", Clauses: "S12", run: keyDedupFreed},
	{Name: "a failed run does not come back beside its successor", Clauses: "S12", run: keyDedupRevived},
	{Name: "of many with one dedup value one is created", Clauses: "S12", run: keyDedupRace},
}

// holding returns a Change that takes keys with an event.
func (w *writer) holding(keys ...string) store.Change {
	c := w.append(step("hold"))
	c.Hold = keys
	return c
}

func keyHeld(t *T) {
	d := t.fresh()
	s := t.handle(d)
	a, b := t.run(s, "a"), t.run(s, "b")
	a.must(s, a.holding("desk", "lamp ü 🚚"))
	a.must(s, a.holding("desk", "chair")) // its own key is no obstacle
	for _, key := range []string{"desk", "lamp ü 🚚", "chair"} {
		err := t.commit(t.handle(d), b.holding(key))
		require.ErrorIs(t, err, store.ErrOccupied)
		var occupied *store.OccupiedError
		require.ErrorAs(t, err, &occupied)
		require.Equal(t, store.OccupiedError{RunID: "b", Key: key, Holder: "a"}, *occupied)
	}
	rowOnly := b.patch(store.RowPatch{Priority: ptr(int32(1))})
	rowOnly.Hold = []string{"desk"}
	require.ErrorIs(t, t.commit(s, rowOnly), store.ErrOccupied)
	require.Zero(t, t.row(s, "b").Priority)
	created, _ := t.create("c")
	created.Hold = []string{"desk"}
	require.ErrorIs(t, t.commit(s, created), store.ErrOccupied)
	_, err := s.Load(t.Context(), "c", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound)
	b.must(s, b.holding("Desk")) // another key
}

func keyAllOrNone(t *T) {
	s := t.open()
	a, b := t.run(s, "a"), t.run(s, "b")
	a.must(s, a.holding("two"))
	require.ErrorIs(t, t.commit(s, b.holding("one", "two", "three")), store.ErrOccupied)
	require.Len(t, t.all(s, "b").Events, 1)
	for _, key := range []string{"one", "three"} {
		require.NoError(t, t.tryHold(s, key), "S11: %q was not taken", key)
	}
}

func keyFreed(t *T) {
	s := t.open()
	w := t.run(s, "a", func(r *store.Run) { r.Status = store.Running })
	other := t.run(s, "other")
	other.must(s, other.holding("kept"))
	w.must(s, w.holding("x", "y"))
	c := w.append(step("release"))
	c.Release = true
	w.must(s, c)
	require.NoError(t, t.tryHold(s, "x"))
	require.NoError(t, t.tryHold(s, "y"))
	require.ErrorIs(t, t.tryHold(s, "kept"), store.ErrOccupied, "those of another run stay")

	w.must(s, w.holding("x", "y"))
	swap := w.holding("z") // releases what it had, and takes another
	swap.Release = true
	w.must(s, swap)
	require.NoError(t, t.tryHold(s, "x"))
	require.ErrorIs(t, t.tryHold(s, "z"), store.ErrOccupied)

	w.must(s, w.end(store.Failed)) // releases
	require.NoError(t, t.tryHold(s, "z"))

	for _, id := range []string{"deleted", "deleted ended"} {
		held := t.run(s, id, func(r *store.Run) { r.Status = store.Running })
		held.must(s, held.holding(id))
		if id == "deleted ended" {
			end := held.end(store.Completed)
			end.Release = false
			held.must(s, end)
			require.ErrorIs(t, t.tryHold(s, id), store.ErrOccupied, "an end without Release keeps the key")
		}
		_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{id}, Force: true})
		require.NoError(t, err)
		require.NoError(t, t.tryHold(s, id))
	}
}

func keyExisting(t *T) {
	s := t.open()
	first := t.run(s, "r", func(r *store.Run) { r.Status = store.Running })
	first.must(s, first.end(store.Completed))
	other := t.run(s, "other")
	other.must(s, other.holding("desk"))
	again, _ := t.create("r")
	again.Hold = []string{"desk"}
	err := t.commit(s, again)
	require.ErrorIs(t, err, store.ErrExists, "S8: whoever asks for the run is told that it is there")
	require.NotErrorIs(t, err, store.ErrOccupied)
	t.must(s, store.Change{Start: []store.Change{again}}) // the same run again: nothing to do, and no key to take
}

func keyReopened(t *T) {
	s := t.open()
	w := t.run(s, "r", func(r *store.Run) { r.Status = store.Running })
	w.must(s, w.holding("desk", "lamp"))
	w.must(s, w.end(store.Failed))
	other := t.run(s, "other")
	other.must(s, other.holding("lamp"))

	reopen := w.append(store.Event{Type: store.WorkflowInterrupted})
	reopen.Expect.TakeEpoch, reopen.Yield = true, true
	reopen.Row = &store.RowPatch{Status: ptr(store.Interrupted), EndedAt: ptr(store.Time(0))}
	reopen.Hold = []string{"desk", "lamp"}
	before := t.dump(s)
	require.ErrorIs(t, t.commit(s, reopen), store.ErrOccupied)
	require.Equal(t, before, t.dump(s), "S1: neither the event nor the status")
	require.NoError(t, t.tryHold(s, "desk"), "S11: all or none")

	free := other.append(step("free"))
	free.Release = true
	other.must(s, free)
	w.must(s, reopen)
	require.Equal(t, store.Interrupted, t.row(s, "r").Status)
	for _, key := range reopen.Hold {
		require.ErrorIs(t, t.tryHold(s, key), store.ErrOccupied)
	}
	t.must(s, reopen) // S6: sent again, it counts as done
}

func keyRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const clients, rounds = 6, 6
	writers := make([]*writer, clients)
	for i := range writers {
		writers[i] = t.run(handles[0], fmt.Sprint("r", i))
	}
	for round := range rounds {
		// In different orders, so that a store that locks key by key would deadlock.
		one1, one2 := fmt.Sprint("x", round), fmt.Sprint("y", round)
		changes, errs := make([]store.Change, clients), make([]error, clients)
		for i, w := range writers {
			changes[i] = w.holding(one1, one2)
			if i%2 == 1 {
				changes[i] = w.holding(one2, one1)
			}
		}
		t.together(clients, func(i int) { errs[i] = one(t.Context(), handles[i%2], changes[i]) })
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				writers[i].done(changes[i])
				continue
			}
			require.ErrorIs(t, err, store.ErrOccupied, "S11: client %d", i)
		}
		require.Equal(t, 1, won, "S11: one gets both keys")
	}
}

func deduped(queue, value string) func(*store.Run) {
	return func(r *store.Run) { r.Queue, r.Dedup = queue, value }
}

func keyDedup(t *T) {
	s := t.open()
	t.run(s, "first", deduped("q", "once"))
	for range 2 {
		c, _ := t.create("second", deduped("q", "once"))
		err := t.commit(s, c)
		require.ErrorIs(t, err, store.ErrExists)
		var exists *store.ExistsError
		require.ErrorAs(t, err, &exists)
		require.Equal(t, "first", exists.RunID, "S12: it names the run that stands in the way")
	}
	_, err := s.Load(t.Context(), "second", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound)
	t.run(s, "other queue", deduped("", "once"))
	t.run(s, "other value", deduped("q", "Once"))
	t.run(s, "none", deduped("q", ""))
	t.run(s, "none either", deduped("q", ""))
	a, _ := t.create("a", deduped("q", "both"))
	b, _ := t.create("b", deduped("q", "both"))
	require.ErrorIs(t, t.commit(s, store.Change{Start: []store.Change{a, b}}), store.ErrExists, "S12: also within one change")
	c, _ := t.create("c", deduped("q", "apart"))
	d, _ := t.create("d", deduped("r", "apart"))
	require.NoError(t, t.commit(s, store.Change{Start: []store.Change{c, d}}), "values are per queue within one change, too")
	errs := s.Commit(t.Context(), []store.Change{a, b})
	require.NotEqual(t, errs[0] == nil, errs[1] == nil, "S12: also within one batch")
	require.ErrorIs(t, errors.Join(errs...), store.ErrExists)
}

func keyDedupFreed(t *T) {
	s := t.open()
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled} {
		w := t.run(s, string(status), func(r *store.Run) { r.Status, r.Dedup = store.Running, "once" })
		w.must(s, w.append(step("a")))
		c, _ := t.create("too early", deduped("", "once"))
		require.ErrorIs(t, t.commit(s, c), store.ErrExists)
		w.must(s, w.end(status))
	}
	t.run(s, "next", deduped("", "once"))
	require.Equal(t, 1, t.remove(s, false, string(store.Completed)))
	early, _ := t.create("too early", deduped("", "once"))
	require.ErrorIs(t, t.commit(s, early), store.ErrExists, "S12: with a run that had ended, the value of its successor does not go")
	_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"next"}, Force: true})
	require.NoError(t, err)
	w := t.run(s, "last", deduped("", "once"))
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Interrupted)}))
	c, _ := t.create("too early", deduped("", "once"))
	require.ErrorIs(t, t.commit(s, c), store.ErrExists, "an interrupted run has not ended")
}

func keyDedupRevived(t *T) {
	s := t.open()
	w := t.run(s, "failed", func(r *store.Run) { r.Status, r.Dedup = store.Running, "once" })
	w.must(s, w.end(store.Failed))
	successor := t.run(s, "successor", func(r *store.Run) { r.Status, r.Dedup = store.Running, "once" })
	before := t.dump(s)
	revive := w.append(step("resume"))
	revive.Row = &store.RowPatch{Status: ptr(store.Interrupted)}
	err := t.commit(s, revive)
	require.ErrorIs(t, err, store.ErrExists)
	var exists *store.ExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, "successor", exists.RunID)
	require.Equal(t, before, t.dump(s))
	successor.must(s, successor.end(store.Completed))
	w.must(s, revive)
	c, _ := t.create("third", deduped("", "once"))
	require.ErrorIs(t, t.commit(s, c), store.ErrExists, "it counts again")
}

func keyDedupRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const clients = 6
	for round := range 4 {
		value := fmt.Sprint("once", round)
		changes, errs := make([]store.Change, clients), make([]error, clients)
		for i := range changes {
			changes[i], _ = t.create(fmt.Sprintf("r%d.%d", round, i), deduped("q", value))
		}
		t.together(clients, func(i int) { errs[i] = one(t.Context(), handles[i%2], changes[i]) })
		won := 0
		for i, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, store.ErrExists, "S12: client %d", i)
		}
		require.Equal(t, 1, won, "S12: one is created")
	}
}

func keySwapped(t *T) {
	s := t.open()
	w := t.run(s, "r")
	w.must(s, w.holding("a", "b"))
	c := w.holding("b", "c")
	c.Release = true
	for _, alone := range []bool{true, false} {
		if alone {
			w.must(s, c)
		} else {
			again := w.holding("c", "b") // as a member of a batch, too
			again.Release = true
			t.must(s, again, t.run(s, "other").append(step("a")))
			w.done(again)
		}
		require.NoError(t, t.tryHold(s, "a"), "S25: what is held afterwards is what Hold lists")
		for _, key := range []string{"b", "c"} {
			require.ErrorIs(t, t.tryHold(s, key), store.ErrOccupied, "S25: %q is held after a change that releases and takes it", key)
		}
	}
}

// keyLiteral uses texts that a store might confuse.
func keyLiteral(t *T) {
	s := t.open()
	w := t.run(s, "r")
	alike := []string{"desk", "desk ", " desk", "Desk", "desk\u00a0", "de\u0301sk", "d\u00e9sk", "desk%", "desk_", "desk\\", "desk'"}
	w.must(s, w.holding(alike[0]))
	for i, text := range alike[1:] {
		require.NoError(t, t.tryHold(s, text), "S11: %q is another key than those before", text)
		t.run(s, fmt.Sprint("q", i), deduped(text, "once"))
	}
	for i, text := range alike {
		t.run(s, fmt.Sprint("d", i), deduped("q", text))
		c, _ := t.create(fmt.Sprint("e", i), deduped("q", text))
		require.ErrorIs(t, t.commit(s, c), store.ErrExists, "S12: %q is taken", text)
	}
	for i, text := range alike {
		require.Equal(t, []string{fmt.Sprint("d", i), text}, []string{fmt.Sprint("d", i), t.row(s, fmt.Sprint("d", i)).Dedup}, "S4: as it was given")
	}
}
