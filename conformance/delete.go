package conformance

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var deleteCases = []Case{
	{Name: "a deletion removes whole runs, and those alone", Clauses: "S1, S8", run: deleteRuns},
	{Name: "a run that has not ended is kept, unless forced", Clauses: "S1", run: deleteUnfinished},
	{Name: "a run with a live owner is kept, even when forced", Clauses: "S20", run: deleteOwned},
	{Name: "a run that is created again has nothing of the old one", Clauses: "S11, S12, S22", run: deleteRecreate},
	{Name: "a deletion spares a run that is not the one it means", Clauses: "S1, S22", run: deleteExpects},
	{Name: "a deletion and a claim do not both win", Clauses: "S1, S19", run: deleteRace},
}

func (t *T) remove(s store.Store, force bool, ids ...string) int {
	t.Helper()
	n, err := s.Delete(t.Context(), store.Deletion{RunIDs: ids, Force: force})
	require.NoError(t, err)
	return n
}

func deleteRuns(t *T) {
	d := t.fresh()
	s := t.handle(d)
	for i := range 4 {
		c, w := t.full(s, fmt.Sprint("r", i))
		w.must(s, c)
		w.must(s, w.append(step("more")))
		cancel := w.end(store.Cancelled)
		cancel.Expect.TakeEpoch = true
		w.must(s, cancel)
	}
	before := t.dump(s)
	require.Zero(t, t.remove(s, false))
	require.Zero(t, t.remove(s, true, "absent", ""))
	require.Equal(t, before, t.dump(s))
	require.Equal(t, 2, t.remove(s, false, "r1", "absent", "r3", "r1"), "ids that are not there are passed over, and doubles counted once")
	delete(before, "r1")
	delete(before, "r3")
	require.Equal(t, before, t.dump(t.handle(d)), "the other runs stay as they are, children too")
	_, err := s.Load(t.Context(), "r1", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, t.list(s, store.Filter{IDs: []string{"r1"}}))
	require.Empty(t, t.list(s, store.Filter{Attributes: map[string]string{"full": "r1"}}))
	require.ErrorIs(t, t.commit(s, send(signal("r1", "1"))), store.ErrNotFound)
	require.Zero(t, t.remove(s, false, "r1"))
}

func deleteUnfinished(t *T) {
	s := t.open()
	ended := t.run(s, "ended", func(r *store.Run) { r.Status = store.Running })
	ended.must(s, ended.end(store.Failed))
	for _, status := range store.Statuses() {
		if status.Terminal() {
			continue
		}
		id := string(status)
		t.run(s, id, func(r *store.Run) { r.Status = status })
		before := t.dump(s)
		n, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"ended", id}})
		require.ErrorIs(t, err, store.ErrStatus)
		require.Zero(t, n)
		var se *store.StatusError
		require.ErrorAs(t, err, &se)
		require.Fields(t, fields{"RunID": id, "Status": status}, se)
		require.Equal(t, before, t.dump(s), "S1: none is removed")
		require.Equal(t, 1, t.remove(s, true, id))
	}
	require.Equal(t, []string{"ended"}, ids(t.list(s, store.Filter{})))
}

// A run that was acted on after it was read, and a new one under an old id.
func deleteExpects(t *T) {
	d := t.fresh()
	s := t.handle(d)
	ended := func(id string) *writer {
		w := t.run(s, id, func(r *store.Run) { r.Status = store.Running })
		w.must(s, w.end(store.Failed))
		return w
	}
	ended("other")
	ended("r")
	old, other := t.row(s, "r").Epoch, t.row(s, "other").Epoch
	expect := store.Deletion{RunIDs: []string{"other", "r"}, Epochs: []int64{other, old}}

	again := t.at(t.row(s, "r"))
	resume := again.append(store.Event{Type: store.RunResumed})
	resume.Expect.TakeEpoch = true
	resume.Row = &store.RowPatch{Status: ptr(store.Interrupted), EndedAt: ptr(store.Time(0))}
	again.must(s, resume)
	end := again.end(store.Failed)
	end.Expect.TakeEpoch = true
	again.must(s, end)
	refused := func(what string) {
		t.Helper()
		before := t.dump(s)
		for _, force := range []bool{false, true} {
			expect.Force = force
			n, err := t.handle(d).Delete(t.Context(), expect)
			require.ErrorIs(t, err, store.ErrFenced, what)
			require.Zero(t, n)
			require.Equal(t, before, t.dump(s), "S1: none is removed")
		}
	}
	refused("it was acted on")
	require.Equal(t, 1, t.remove(s, false, "r"))
	ended("r")
	refused("it is a new one")
	_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}, Epochs: []int64{}})
	require.ErrorIs(t, err, store.ErrInvalid)
	expect.Epochs[1], expect.Force = t.row(s, "r").Epoch, false
	expect.RunIDs, expect.Epochs = append(expect.RunIDs, "absent"), append(expect.Epochs, 7)
	n, err := s.Delete(t.Context(), expect)
	require.NoError(t, err)
	require.Equal(t, 2, n)
}

func deleteOwned(t *T) {
	s := t.open()
	w := t.claimed(s, "a", "owned")
	t.run(s, "free")
	before := t.dump(s)
	n, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"free", "owned"}, Force: true})
	require.ErrorIs(t, err, store.ErrOwned)
	require.Zero(t, n)
	var owned *store.OwnedError
	require.ErrorAs(t, err, &owned)
	require.Equal(t, store.OwnedError{RunID: "owned", Owner: "a"}, *owned)
	require.Equal(t, before, t.dump(s), "S1: none is removed")
	w.steps(s, 1)
	t.beat(s, "a", leaving)
	require.Equal(t, 2, t.remove(s, true, "free", "owned"))
}

func deleteRecreate(t *T) {
	s := t.open()
	for round := range 3 {
		c, w := t.create("r", fullRun)
		c.Hold = []string{"desk"}
		w.must(s, c)
		b := w.append(store.Event{Type: store.WorkflowRecovered, Branch: 1})
		b.Branch = &store.Branch{N: 1, Cutoff: 1, Reason: fmt.Sprint(round)}
		b.Send = []store.Message{signal("r", "1"), {To: "r", Kind: store.KindCancel, ID: "1"}}
		w.must(s, b)
		w.steps(s, round)
		got := t.all(s, "r")
		require.Len(t, got.Events, 2+round)
		require.Len(t, got.Inbox, 2)
		require.Equal(t, []store.Branch{*b.Branch}, got.Branches)
		require.Equal(t, 1, t.remove(s, true, "r"))
		require.NoError(t, t.tryHold(s, "desk"))
	}
	t.run(s, "r")
	got := t.all(s, "r")
	require.Len(t, got.Events, 1)
	require.Empty(t, got.Inbox)
	require.Empty(t, got.Branches)
	require.Empty(t, got.Run.Attributes)
	require.False(t, got.Run.CancelAsked)
	require.Empty(t, t.list(s, store.Filter{Attributes: map[string]string{"customer": "Zoë 🚚"}}))
	t.run(s, "another", func(r *store.Run) { r.Queue, r.Dedup = "mail", "once" })
}

func deleteRace(t *T) {
	d := t.fresh()
	a, b := t.handle(d), t.handle(d)
	t.beat(a, "a")
	for round := range 10 {
		id := fmt.Sprint("r", round)
		t.run(a, id)
		var claimed []store.Run
		var removed int
		var errClaim, errDelete error
		t.together(2, func(i int) {
			if i == 0 {
				claimed, errClaim = a.Claim(t.Context(), claimOf("a", id))
			} else {
				removed, errDelete = b.Delete(t.Context(), store.Deletion{RunIDs: []string{id}, Force: true})
			}
		})
		require.NoError(t, errClaim)
		if len(claimed) == 1 {
			require.ErrorIs(t, errDelete, store.ErrOwned, "S20: it has a live owner")
			require.Zero(t, removed)
			t.at(claimed[0]).steps(a, 1)
		} else {
			require.NoError(t, errDelete)
			require.Equal(t, 1, removed)
		}
	}
}
