package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// What an engine or a person does to get rid of old runs: list what has ended, and
// delete it in batches.
var retentionCases = []Case{
	{Name: "old runs are found by age, workflow and status, and go in batches", Clauses: "S1, S16", run: retentionByAge},
	{Name: "the newest of a workflow can be kept", Clauses: "S16", run: retentionNewest},
	{Name: "a deletion and a resumption do not both win", Clauses: "S1, S9", run: retentionRace},
	{Name: "a deletion that is cut short leaves no half run, and nothing for one that takes the id again", Clauses: "S1, S18, S22", run: retentionCut},
}

// terminal are the statuses that retention may delete.
var terminal = []store.Status{store.Completed, store.Failed, store.Cancelled}

// old creates a run that ended at a time; with zero, one that has not ended.
func (t *T) old(s store.Store, id, workflow string, status store.Status, ended store.Time) {
	t.Helper()
	w := t.run(s, id, func(r *store.Run) { r.Workflow, r.Status = workflow, store.Running })
	w.steps(s, 2)
	if !status.Terminal() {
		return
	}
	c := w.end(status)
	c.Row.EndedAt = &ended
	w.must(s, c)
}

func retentionByAge(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	limit := t.now()
	var want, doomed []string
	for i := range 8 {
		for _, workflow := range []string{"order", "mail"} {
			for _, status := range append([]store.Status{store.Running, store.Waiting}, terminal...) {
				id := fmt.Sprintf("%s-%s-%d", workflow, status, i)
				ended := limit.Add(time.Duration(i-4) * time.Hour) // exactly at the limit: too young
				t.old(s, id, workflow, status, ended)
				if workflow == "order" && (status == store.Completed || status == store.Cancelled) && i < 4 {
					doomed = append(doomed, id)
				} else {
					want = append(want, id)
				}
			}
		}
	}
	f := store.Filter{
		Workflows: []string{"order"}, Statuses: []store.Status{store.Completed, store.Cancelled}, EndedTo: limit,
		OldestFirst: true, Limit: 3,
	}
	var gone []string
	for ctx := t.patient(); ; {
		page, err := other.List(ctx, f)
		require.NoError(t, err)
		if len(page.Runs) == 0 {
			break
		}
		batch := ids(page.Runs)
		require.Equal(t, len(batch), t.remove(s, false, batch...))
		gone = append(gone, batch...)
	}
	slices.Sort(gone)
	slices.Sort(doomed)
	slices.Sort(want)
	require.Equal(t, doomed, gone, "S1: each once")
	require.Equal(t, want, sortedIDs(t.list(other, store.Filter{})))
}

func retentionNewest(t *T) {
	s := t.open()
	const runs, keep = 17, 4
	for i := range runs {
		t.old(s, fmt.Sprintf("r%02d", i), workflow, terminal[i%3], t.now())
		t.old(s, fmt.Sprintf("other%02d", i), "other", terminal[i%3], t.now())
	}
	t.old(s, "unfinished", workflow, store.Running, 0)
	// Follow the cursor while the rows before it are deleted.
	f := store.Filter{Workflows: []string{workflow}, Statuses: terminal, Limit: 3}
	seen := 0
	for ctx := t.patient(); ; {
		page, err := s.List(ctx, f)
		require.NoError(t, err)
		var batch []string
		for _, r := range page.Runs {
			if seen++; seen > keep {
				batch = append(batch, r.ID)
			}
		}
		require.Equal(t, len(batch), t.remove(s, false, batch...))
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	require.Equal(t, runs, seen, "S16: deletions do not shake the walk")
	left := ids(t.list(s, store.Filter{Workflows: []string{workflow}}))
	require.Equal(t, []string{"unfinished", "r16", "r15", "r14", "r13"}, left)
	require.Len(t, t.list(s, store.Filter{Workflows: []string{"other"}}), runs)
}

func retentionRace(t *T) {
	d := t.fresh()
	a, b := t.handle(d), t.handle(d)
	for round := range 10 {
		id := fmt.Sprint("r", round)
		w := t.run(a, id, func(r *store.Run) { r.Status = store.Running })
		w.must(a, w.end(store.Failed))
		resume := w.append(store.Event{Type: store.RunResumed})
		resume.Expect.TakeEpoch = true
		resume.Row = &store.RowPatch{Status: ptr(store.Interrupted), EndedAt: ptr(store.Time(0))}
		var removed int
		var errResume, errDelete error
		t.together(2, func(i int) {
			if i == 0 {
				errResume = one(t.Context(), a, resume)
			} else {
				removed, errDelete = b.Delete(t.Context(), store.Deletion{RunIDs: []string{id}})
			}
		})
		if errResume == nil {
			require.ErrorIs(t, errDelete, store.ErrStatus, "S1: it was resumed")
			require.Zero(t, removed)
			require.Equal(t, store.Interrupted, t.row(a, id).Status)
			require.Len(t, t.all(b, id).Events, 3)
		} else {
			require.ErrorIs(t, errResume, store.ErrNotFound)
			require.NoError(t, errDelete)
			require.Equal(t, 1, removed)
		}
	}
}

// A batch may be cut short at any moment, and another process must see either all of it
// or nothing. The ids are then used again.
func retentionCut(t *T) {
	d := t.fresh()
	s := t.handle(d)
	const runs = 12
	for round := range 8 {
		cutting, err := d.Open()
		require.NoError(t, err)
		all := make([]string, runs)
		for i := range all {
			all[i] = fmt.Sprint("r", i)
			c, w := t.create(all[i], fullRun)
			c.Create.Status, c.Create.Queue = store.Running, all[i] // for its Dedup
			c.Hold = []string{"desk " + all[i]}
			w.must(s, c)
			b := w.append(store.Event{Type: store.WorkflowRecovered, Branch: 1})
			b.Branch = &store.Branch{N: 1, Cutoff: 1}
			b.Row = &store.RowPatch{Branch: ptr(int32(1))}
			b.Send = []store.Message{signal(all[i], "1")}
			w.must(s, b)
			e := w.end(store.Completed)
			e.Release = false // the key goes with the run
			w.must(s, e)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round*round)*100*time.Microsecond)
		n, err := cutting.Delete(ctx, store.Deletion{RunIDs: all})
		cancel()
		require.NoError(t, cutting.Close())
		left := len(t.list(s, store.Filter{}))
		if err == nil {
			require.Equal(t, runs, n)
			require.Zero(t, left)
		} else {
			require.Contains(t, []int{0, runs}, left, "S1: a batch as a whole, or not at all: %v", err)
			require.LessOrEqual(t, t.remove(s, false, all...), runs, "a second try finishes")
		}
		for i, id := range all {
			t.run(s, id, func(r *store.Run) { r.Queue, r.Dedup = id, "once" })
			got := t.all(s, id)
			require.Len(t, got.Events, 1, "S22: nothing of the old log")
			require.Empty(t, got.Inbox)
			require.Empty(t, got.Branches)
			require.Empty(t, got.Run.Attributes)
			require.NoError(t, t.tryHold(s, "desk "+id))
			all[i] = id
		}
		t.remove(s, true, ids(t.list(s, store.Filter{}))...)
	}
}
