package durable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// start begins a run on the process opened last.
func start[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string, in I) *durable.Run[O] {
	t.Helper()
	h, err := wf.Start(w.ctx(), id, in)
	require.NoError(t, err)
	return h
}

// run begins a run and waits for its end.
func run[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string, in I) (O, error) {
	t.Helper()
	return start(t, w, wf, id, in).Wait(w.ctx())
}

// wait waits for a run, from the process opened last.
func wait[I, O any](t *testing.T, w *world, wf *durable.Workflow[I, O], id string) (O, error) {
	t.Helper()
	h, err := wf.Handle(w.ctx(), id)
	require.NoError(t, err)
	return h.Wait(w.ctx())
}

// with is Options for these workflows.
func with(defs ...durable.Definition) durable.Options { return durable.Options{Workflows: defs} }

// hold is a step body that the first process does not finish, and later ones do
// at once: a crash while it runs is the moment between "before" and "after".
type hold struct{ reached int }

func (h *hold) body(ctx context.Context) error {
	h.reached++
	if h.reached > 1 {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// seen is what a workflow saw of a durable call.
type seen[T any] struct {
	value T
	err   error
}

// liveAndReplayed performs a call in a run, kills the process behind it, and
// returns what the workflow function saw at first and what it saw on replay.
func liveAndReplayed[T any](t *testing.T, o durable.Options, call func(ctx context.Context) (T, error)) (live, replay seen[T]) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		var all []seen[T]
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			v, err := call(ctx)
			all = append(all, seen[T]{v, err})
			return len(all), durable.Do(ctx, "hold", h.body)
		})
		o.Workflows = append(o.Workflows, wf)
		w.open(t, o)
		start(t, w, wf, "r", 0)
		for range 60 {
			if synctest.Wait(); len(all) > 0 {
				break
			}
			time.Sleep(10 * time.Second)
		}
		require.Len(t, all, 1, "the call did not return: %s", w.log)
		w.reboot(t, o)
		n, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 2, n)
		live, replay = all[0], all[1]
	})
	return live, replay
}

// rebuild puts a tampered history in the place of a recorded one: the run is
// made again from its events, changed by f, as one that is interrupted and can
// be claimed. With seal, the sums are made anew, so that only what f did is
// wrong with it.
func rebuild(t *testing.T, w *world, id string, seal bool, f func(e *store.Event)) {
	t.Helper()
	row, events := w.row(id), w.events(id)
	row.Status, row.Owner, row.Code, row.Reason, row.Epoch = store.Interrupted, "", "", "", row.Epoch+100
	row.EndedAt = 0
	var kept []store.Event
	var before uint32
	for _, e := range events {
		switch e.Type {
		case store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowInterrupted:
			continue
		}
		e.Seq = int64(len(kept) + 1)
		sound := store.Seal(id, before, &e)
		f(&e)
		e.Sum = sound
		if seal {
			e.Sum = store.Seal(id, before, &e)
		}
		before = e.Sum
		kept = append(kept, e)
	}
	_, err := w.data.Delete(context.Background(), []string{id}, true)
	require.NoError(t, err)
	row.Last = nil
	errs := w.data.Commit(context.Background(), []store.Change{{
		RunID: id, Expect: store.Expect{Absent: true}, Create: &row, Events: kept,
	}})
	require.NoError(t, errs[0])
}
