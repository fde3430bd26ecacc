package durable_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// cancelsAtTheEnd has another process cancel run r while the end of r is on its way to the
// store.
func (w *world) cancelsAtTheEnd(t *testing.T) {
	elsewhere, err := durable.Open(t.Context(), w.data.Handle(), durable.Options{Grace: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, elsewhere.Close()) })
	cancelled := false
	w.disk.tamper(func(changes []store.Change, forward func() []error) []error {
		for i := range changes {
			ends := slices.ContainsFunc(changes[i].Events, func(e store.Event) bool { return e.Type == store.WorkflowCompleted })
			if ends && !cancelled {
				cancelled = true
				require.NoError(t, elsewhere.Cancel(t.Context(), "r", "no time"))
			}
		}
		return forward()
	})
}

// Of a cancel and a completion one comes first. If it is the cancel, the run is undone like
// any other that is cancelled.
func TestACancelThatComesBeforeTheCompletionIsRecordedUndoesTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		wf := trip(func(what string) error { did = append(did, what); return nil }, func(context.Context) error { return nil })
		w.serve(t, wf)
		w.cancelsAtTheEnd(t)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.Equal(t, []string{"book flight", "book hotel", "book car", "cancel car", "cancel hotel", "cancel flight"}, did)
		w.allSound(t)
	})
}

func TestACancelThatComesBeforeTheCompletionIsRecordedUndoesTheRunInALaterProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		crashes, killed := true, make(chan struct{})
		defer close(killed)
		wf := trip(func(what string) error {
			did = append(did, what)
			if what == "cancel hotel" && crashes {
				<-killed
			}
			return nil
		}, func(context.Context) error { return nil })
		w.serve(t, wf)
		w.cancelsAtTheEnd(t)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"cancel car", "cancel hotel"}, did[3:])
		crashes, did = false, nil
		w.reboot(t, durable.Options{Workflows: []durable.Definition{wf}})
		w.eventually("r", store.Cancelled)
		require.Equal(t, []string{"cancel hotel", "cancel flight"}, did)
		w.allSound(t)
	})
}

// The run ends while a branch that has lost a race is about to start a child, and then the
// cancel comes first.
func TestABranchThatIsRefusedAChildAtTheEndOfItsRunDoesNotKeepTheRunFromBeingUndone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		kid := durable.Define("kid", func(context.Context, int) (int, error) { return 0, nil })
		ends, undone := make(chan struct{}), false
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			undo := func(context.Context) error { undone = true; return nil }
			if err := durable.Compensate(ctx, "undo", undo); err != nil {
				return 0, err
			}
			fast := durable.Go(ctx, "fast", func(ctx context.Context) (int, error) { return 0, durable.Do(ctx, "s", doNothing) })
			slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
				select {
				case <-ends:
				case <-ctx.Done():
				}
				_, _ = kid.Start(ctx, durable.AutoID, 0)
				return 0, durable.Do(ctx, "after", doNothing)
			})
			_, n, err := durable.First(ctx, "first", fast, slow)
			return n, err
		})
		w.serve(t, wf, kid)
		elsewhere, err := durable.Open(t.Context(), w.data.Handle(), durable.Options{Grace: -1})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, elsewhere.Close()) })
		ending := false
		w.disk.tamper(func(changes []store.Change, forward func() []error) []error {
			for i := range changes {
				last := len(changes[i].Events) - 1
				if last < 0 || ending || changes[i].Events[last].Type != store.WorkflowCompleted {
					continue
				}
				ending = true
				close(ends)
				time.Sleep(time.Millisecond) // the branch goes on meanwhile
				require.NoError(t, elsewhere.Cancel(t.Context(), "r", "no time"))
			}
			return forward()
		})
		_, err = wf.Run(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.True(t, undone)
		w.allSound(t)
	})
}
