package conformance

import (
	"fmt"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

var fenceCases = []Case{
	{Name: "an owner that was replaced cannot write", Clauses: "S3", run: fenceStaleOwner},
	{Name: "one that was replaced is told so, whatever else is wrong", Clauses: "S3", run: fenceComesFirst},
	{Name: "an event is accepted only right behind the head", Clauses: "S3", run: fenceHead},
	{Name: "the first of two events for one place stays", Clauses: "S3", run: fenceFirstWins},
	{Name: "many writers of one run leave one gapless log", Clauses: "S3", run: fenceRace},
	{Name: "nothing is written behind a yield with the epoch before it", Clauses: "S5", run: fenceYield},
	{Name: "a yield marks its last event alone", Clauses: "S5", run: fenceYieldEpochs},
	{Name: "taking the epoch fences the owner out", Clauses: "S3", run: fenceTake},
	{Name: "the epoch cannot be taken while the owner lives", Clauses: "S20", run: fenceTakeOwned},
	{Name: "epochs of a run id are never used twice", Clauses: "S22", run: fenceEpochs},
	{Name: "an append in flight over a deletion meets nothing and blocks nothing", Clauses: "S3, S22", run: fenceDeleted},
}

func fenceStaleOwner(t *T) {
	d := t.fresh()
	old, new := t.handle(d), t.handle(d)
	t.beat(old, "a", leased)
	stale := owns(t, old, "a", "r")
	stale.steps(old, 2)
	t.kill(d, old, "a")
	t.beat(new, "b")
	runs := t.claim(new, "b", "r")
	require.Len(t, runs, 1, "S20: the owner is gone")
	w := t.at(runs[0])
	before := t.dump(new)

	behind := *stale // what the old owner would have written if it had not been asleep
	ahead := *stale  // after the claim, as if it had read on
	ahead.seq, ahead.sum, ahead.at = w.seq, w.sum, w.at
	for name, o := range map[string]*writer{"behind its own last event": &behind, "behind the claim": &ahead} {
		require.ErrorIs(t, t.commit(old, o.append(step("late"))), store.ErrFenced, "plain, %s", name)
		require.ErrorIs(t, t.commit(old, o.append(step("late"), step("later"))), store.ErrFenced, "two events, %s", name)
		require.ErrorIs(t, t.commit(old, o.end(store.Completed)), store.ErrFenced, "completion, %s", name)
		c := o.append(step("late"))
		c.Send = []store.Message{signal("r", "late")}
		require.ErrorIs(t, t.commit(old, c), store.ErrFenced, "with a message, %s", name)
		c = o.append(step("late"))
		c.Expect.TakeEpoch = true
		require.ErrorIs(t, t.commit(old, c), store.ErrFenced, "taking its old epoch, %s", name)
	}
	require.ErrorIs(t, t.commit(old, stale.patch(store.RowPatch{Priority: ptr(int32(1))})), store.ErrFenced, "row")
	require.Equal(t, before, t.dump(new), "S3: nothing of it is there")
	w.steps(new, 2)
}

func fenceHead(t *T) {
	s := t.open()
	w := t.run(s, "r")
	w.steps(s, 3)
	before := t.dump(s)
	for _, seq := range []int64{2, 3, 4, 6, 100, 1 << 20} {
		c := w.append(step("misplaced"))
		c.Events[0].Seq = seq
		require.ErrorIs(t, t.commit(s, c), store.ErrFenced, "event %d, when the next is 5", seq)
		c.Row = &store.RowPatch{Priority: ptr(int32(1))}
		require.ErrorIs(t, t.commit(s, c), store.ErrFenced, "event %d with a row patch, when the next is 5", seq)
		c.Row, c.Expect.TakeEpoch = nil, true
		require.ErrorIs(t, t.commit(s, c), store.ErrFenced, "event %d taking the epoch, when the next is 5", seq)
	}
	for _, epoch := range []int64{w.epoch - 1, w.epoch + 1} {
		other := *w
		other.epoch = epoch
		require.ErrorIs(t, t.commit(s, other.append(step("foreign"))), store.ErrFenced, "epoch %d, when it is %d", epoch, w.epoch)
	}
	require.Equal(t, before, t.dump(s))
}

func fenceFirstWins(t *T) {
	s := t.open()
	w := t.run(s, "r")
	first, second := w.append(step("a")), w.append(step("b"))
	longer := w.append(step("a"), step("c")) // begins like the first, but was not carried out
	t.must(s, first)
	require.ErrorIs(t, t.commit(s, second), store.ErrFenced)
	require.ErrorIs(t, t.commit(s, longer), store.ErrFenced)
	require.Equal(t, stored(first), t.all(s, "r").Events[1:], "the first write stays as it is")
}

func fenceRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	first := t.run(handles[0], "r")
	const clients, rounds = 6, 8
	ctx := t.patient()
	var mu sync.Mutex
	won := make(map[int64]string)
	t.together(clients, func(i int) {
		w := *first
		for n := 0; n < rounds; {
			key := fmt.Sprintf("%d.%d", i, n)
			c := w.append(step(key))
			err := one(ctx, handles[i%2], c)
			switch {
			case err == nil:
				mu.Lock()
				if other, taken := won[c.Events[0].Seq]; taken {
					t.Errorf("S3: event %d was acknowledged to %s and %s", c.Events[0].Seq, other, key)
				}
				won[c.Events[0].Seq] = key
				mu.Unlock()
				w.done(c)
				n++
			case isOneOf(err, store.ErrFenced):
				// Another writer with the same epoch came first: go on from there.
				h, err := handles[i%2].Load(ctx, "r", store.Cursor{NoEvents: true})
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				w.seq, w.sum, w.at = h.Run.Last.Seq, h.Run.Last.Sum, h.Run.Last.At
			default:
				t.Errorf("S3: append: %v", err)
				return
			}
		}
	})
	events := t.all(handles[0], "r").Events
	require.Len(t, events, 1+clients*rounds, "S3: what was acknowledged is there, and nothing else")
	for _, e := range events[1:] {
		require.Equal(t, won[e.Seq], e.Key, "S3: event %d is the one that was acknowledged", e.Seq)
	}
}

func fenceYield(t *T) {
	s := t.open()
	for _, status := range []store.Status{store.Interrupted, store.Completed, store.Failed, store.Cancelled} {
		w := t.claimed(s, "a", "r-"+string(status))
		left := *w // a goroutine of the owner that was left running
		w.must(s, w.end(status))
		r := t.row(s, w.id)
		require.Equal(t, status, r.Status)
		require.Empty(t, r.Owner, "S5: nobody owns it")
		require.Equal(t, left.epoch+1, r.Epoch, "S5: the row has the next epoch")
		require.Equal(t, left.epoch+1, r.Last.Epoch, "S5: the last event carries it")
		left.seq, left.sum, left.at = w.seq, w.sum, w.at
		before := t.dump(s)
		require.ErrorIs(t, t.commit(s, left.append(step("left over"))), store.ErrFenced, "behind %s", status)
		require.ErrorIs(t, t.commit(s, left.patch(store.RowPatch{Priority: ptr(int32(1))})), store.ErrFenced, "the row after %s", status)
		require.Equal(t, before, t.dump(s))
	}
	w := t.claimed(s, "a", "no patch")
	c := w.append(step("a"))
	c.Yield = true
	left := *w
	w.must(s, c)
	r := t.row(s, w.id)
	require.Fields(t, fields{"Owner": "", "Epoch": left.epoch + 1, "Status": store.Running}, r, "S5: a yield without a row patch gives the run up too")
}

func fenceYieldEpochs(t *T) {
	s := t.open()
	w := t.run(s, "r")
	e := w.epoch
	c := w.append(step("a"), step("b"), step("c"))
	c.Yield = true
	w.must(s, c)
	take := w.append(step("d"), step("e"))
	take.Expect.TakeEpoch, take.Yield = true, true
	w.must(s, take)
	w.must(s, w.append(step("f")))
	var epochs []int64
	got := t.all(s, "r")
	for _, ev := range got.Events {
		epochs = append(epochs, ev.Epoch-e)
	}
	require.Equal(t, []int64{0, 0, 0, 1, 2, 3, 3}, epochs)
	require.Equal(t, e+3, got.Run.Epoch)
	born, bw := t.create("born", func(r *store.Run) { r.Owner, r.Status = "x", store.Interrupted })
	born.Yield = true
	t.must(s, born)
	r := t.row(s, "born")
	require.Fields(t, fields{"Owner": "", "Epoch": bw.epoch + 1}, r, "S5: a run that is created and given up")
	require.Equal(t, bw.epoch+1, r.Last.Epoch, "S5: a run that is created and given up")
}

func fenceTake(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.beat(s, "a", leased)
	owner := owns(t, s, "a", "r")
	t.kill(d, s, "a")
	operator := *owner
	c := operator.append(store.Event{Type: store.WorkflowRecovered}, step("repaired"))
	c.Expect.TakeEpoch = true
	c.Row = &store.RowPatch{Status: ptr(store.Interrupted), Code: ptr("parked")}
	c.Branch = &store.Branch{N: 1, Cutoff: 1, Reason: "repair", CreatedAt: t.now()}
	operator.must(s, c)
	got := t.all(s, "r")
	require.Fields(t, fields{"Owner": "", "Epoch": owner.epoch + 1, "Status": store.Interrupted, "Code": "parked"}, got.Run)
	require.Equal(t, stored(c), got.Events[1:], "with the new epoch")
	require.Equal(t, []store.Branch{*c.Branch}, got.Branches)
	require.ErrorIs(t, t.commit(s, owner.append(step("late"))), store.ErrFenced)
	behind := operator
	behind.epoch = owner.epoch
	require.ErrorIs(t, t.commit(s, behind.append(step("late"))), store.ErrFenced)
	operator.must(s, operator.append(step("more")))
}

func fenceTakeOwned(t *T) {
	s := t.open()
	w := t.claimed(s, "a", "r")
	before := t.dump(s)
	c := w.append(step("taken"))
	c.Expect.TakeEpoch = true
	err := t.commit(s, c)
	require.ErrorIs(t, err, store.ErrOwned)
	var owned *store.OwnedError
	require.ErrorAs(t, err, &owned)
	require.Equal(t, store.OwnedError{RunID: "r", Owner: "a"}, *owned)
	require.Equal(t, before, t.dump(s))
	w.steps(s, 1)
	t.beat(s, "a", leaving)
	c = w.append(step("taken"))
	c.Expect.TakeEpoch = true
	w.must(s, c)
}

func fenceEpochs(t *T) {
	s := t.open()
	t.run(s, "r")
	used := make(map[int64]bool)
	last := t.row(s, "r").Epoch
	used[last] = true
	t.beat(s, "a")
	for range 5 {
		runs := t.claim(s, "a", "r")
		require.Len(t, runs, 1)
		w := t.at(runs[0])
		require.Equal(t, last+1, w.epoch, "S22: a claim raises the epoch by one")
		require.Equal(t, w.epoch, runs[0].Last.Epoch, "S22: its event carries the new epoch")
		require.False(t, used[w.epoch], "S22: epoch %d is new", w.epoch)
		used[w.epoch] = true
		w.must(s, w.end(store.Interrupted))
		last = t.row(s, "r").Epoch
		require.False(t, used[last], "S22: epoch %d is new", last)
		used[last] = true
	}
}

func fenceDeleted(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	old := t.run(s, "r")
	old.steps(s, 3)
	inFlight := old.append(step("in flight"))
	n, err := other.Delete(t.Context(), store.Deletion{RunIDs: []string{"r"}, Force: true})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.ErrorIs(t, t.commit(s, inFlight), store.ErrNotFound, "the run is gone")

	w := t.run(other, "r")
	require.Greater(t, w.epoch, old.epoch)
	require.ErrorIs(t, t.commit(s, inFlight), store.ErrFenced, "S3: the epoch is another")
	require.ErrorIs(t, t.commit(s, old.end(store.Completed)), store.ErrFenced)
	w.steps(s, 5) // past the place that the old append would have taken
	require.ErrorIs(t, t.commit(s, inFlight), store.ErrFenced)
	for _, e := range t.all(s, "r").Events {
		require.NotEqual(t, "in flight", e.Key)
		require.Equal(t, w.epoch, e.Epoch)
	}
}

// fenceComesFirst gives the store every other reason to refuse an owner that was
// replaced. An owner that got one of those would go on as if it still owned the run.
func fenceComesFirst(t *T) {
	s := t.open()
	t.scene(s)
	t.beat(s, "b")
	reasons := map[string]func(c *store.Change){
		"nothing else":          func(*store.Change) {},
		"a status":              func(c *store.Change) { c.Expect.Statuses = []store.Status{store.Failed} },
		"a step of the status":  func(c *store.Change) { c.Row = &store.RowPatch{Status: ptr(store.Pending)} },
		"an unread cancel":      func(c *store.Change) { c.Expect.NoCancel = true },
		"an occupied key":       func(c *store.Change) { c.Hold = []string{"desk"} },
		"a branch that exists":  func(c *store.Change) { c.Branch = &store.Branch{N: 1, CreatedAt: 1} },
		"a message to nobody":   func(c *store.Change) { c.Send = []store.Message{signal("nobody", "1")} },
		"a message to the dead": func(c *store.Change) { c.Send = []store.Message{signal("done", "1")} },
		"a start of another's":  func(c *store.Change) { c.Start = []store.Change{child(t, "", "held")} },
		"a start with a dedup": func(c *store.Change) {
			c.Start = []store.Change{child(t, "", "new", func(r *store.Run) { r.Dedup = "once" })}
		},
		"the live owner": func(c *store.Change) { c.Expect.TakeEpoch = true },
		"all at once": func(c *store.Change) {
			c.Expect.Statuses, c.Expect.NoCancel, c.Expect.TakeEpoch = []store.Status{store.Failed}, true, true
			c.Row, c.Hold = &store.RowPatch{Status: ptr(store.Pending)}, []string{"desk"}
			c.Send, c.Start = []store.Message{signal("nobody", "1")}, []store.Change{child(t, "", "held")}
		},
	}
	n := 0
	for name, wrong := range reasons {
		for _, rowOnly := range []bool{false, true} {
			n++
			id := fmt.Sprint("r", n)
			old := t.run(s, id, func(r *store.Run) { r.Status, r.Owner = store.Running, "gone" })
			c := old.append(step("branch"))
			c.Branch = &store.Branch{N: 1, Cutoff: 1, CreatedAt: t.now()}
			old.must(s, c)
			t.must(s, send(store.Message{To: id, Kind: store.KindCancel, ID: "1"}))
			require.Len(t, t.claim(s, "b", id), 1)
			late := old.append(step("late"))
			if rowOnly {
				late.Events, late.Row = nil, &store.RowPatch{Priority: ptr(int32(1))}
			}
			wrong(&late)
			if rowOnly && late.Expect.TakeEpoch {
				continue // it needs an event
			}
			require.ErrorIs(t, t.commit(s, late), store.ErrFenced, "S3: beside %s; row only: %v", name, rowOnly)
			// The same in a batch with others.
			other := t.run(s, id+" other")
			errs := s.Commit(t.Context(), []store.Change{other.append(step("a")), late})
			require.Len(t, errs, 2)
			require.NoError(t, errs[0], "S2: the other member")
			require.ErrorIs(t, errs[1], store.ErrFenced, "S3: in a batch, beside %s; row only: %v", name, rowOnly)
		}
	}
}
