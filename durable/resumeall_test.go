package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A bulk resume is as many resumes: what becomes of one run is told of that run, with its
// id, and is nothing to the others.
func TestABulkResumeTellsOfEachRunWhatBecameOfIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mended := false
		wf := durable.Define("w", func(ctx context.Context, n int) (string, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			if n == 2 && mended {
				return "", durable.Do(ctx, "another", func(context.Context) error { return nil })
			}
			return "done", durable.Do(ctx, "b", func(context.Context) error {
				if !mended {
					return durable.Permanent(errors.New("closed"))
				}
				return nil
			})
		})
		w.boot(t, with(wf))
		for i := range 6 {
			start(t, w, wf, fmt.Sprint("r", i), i)
			pass(time.Second)
		}
		mended = true
		deleteRunSoon := func() { deleteRun(t, w, "r3") }
		told := map[string]error{}
		for plan, err := range operate.On(w.eng).ResumeAll(w.ctx(), store.Filter{IDs: []string{"r0", "r1", "r1", "r2", "r3", "r4", "r5", "r5"}, OldestFirst: true, Limit: 2}, operate.ResumeOptions{}) {
			require.NotContains(t, told, plan.RunID, "each once")
			told[plan.RunID] = err
			if plan.RunID == "r2" {
				// Meanwhile one is gone, and another is resumed by somebody else.
				deleteRunSoon()
				require.NoError(t, resume(w.eng, w.ctx(), "r4"))
				synctest.Wait()
			}
		}
		var changed *durable.DefinitionChangedError
		require.NoError(t, told["r0"])
		require.NoError(t, told["r1"])
		require.ErrorAs(t, told["r2"], &changed)
		require.NoError(t, told["r5"])
		if err, listed := told["r3"]; listed {
			require.ErrorIs(t, err, durable.ErrNotFound)
		}
		if err, listed := told["r4"]; listed {
			require.ErrorIs(t, err, durable.ErrNotResumable)
		}
		synctest.Wait()
		for _, id := range []string{"r0", "r1", "r4", "r5"} {
			require.Equal(t, store.Completed, w.row(id).Status, id)
		}
		require.Equal(t, store.Failed, w.row("r2").Status, "it is as it was")
	})
}

// Runs that fail again at once are resumed once each, however the listing is paged, and the
// end of ctx leaves the others as they are.
func TestABulkResumeResumesEachRunOnceAndEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, n int) (string, error) {
			return "", durable.Do(ctx, "a", func(context.Context) error { return durable.Permanent(errors.New("closed")) })
		})
		w.boot(t, with(wf))
		const n = 300
		for i := range n {
			start(t, w, wf, fmt.Sprint("r", i), i)
		}
		pass(time.Second)
		f := store.Filter{Workflows: []string{"w"}, Limit: 7}
		times := map[string]int{}
		for plan, err := range operate.On(w.eng).ResumeAll(w.ctx(), f, operate.ResumeOptions{}) {
			require.NoError(t, err)
			times[plan.RunID]++
			synctest.Wait() // it fails again
		}
		require.Len(t, times, n)
		for id, k := range times {
			require.Equal(t, 1, k, id)
			require.EqualValues(t, 1, w.row(id).Resumes, id)
		}

		ctx, stop := context.WithCancelCause(w.ctx())
		defer stop(nil)
		gone := errors.New("gone home")
		var last error
		resumed := 0
		for _, err := range operate.On(w.eng).ResumeAll(ctx, f, operate.ResumeOptions{}) {
			if last = err; err == nil {
				resumed++
			}
			if resumed == 10 {
				stop(gone)
			}
		}
		require.Equal(t, 10, resumed)
		synctest.Wait()
		again := 0
		for id := range times {
			again += int(w.row(id).Resumes) - 1
		}
		require.Equal(t, 10, again)
		require.NoError(t, last, "the caller has ended ctx, and knows it")
	})
}

// What has become of a run since it was listed may be something that nobody wants resumed.
func TestABulkResumeLeavesARunThatItsFilterNoLongerSelects(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			if err := durable.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return "", durable.Do(ctx, "b", func(ctx context.Context) error {
				if err := h.body(ctx); err != nil {
					return err
				}
				return durable.Permanent(errors.New("closed"))
			})
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r0", 0)
		pass(time.Second)
		start(t, w, wf, "r1", 0)
		pass(time.Second)
		require.NoError(t, w.eng.Close())
		w.open(t, with(wf))
		stopped := store.Filter{Statuses: []store.Status{store.Interrupted}, OldestFirst: true}
		told := map[string]error{}
		for plan, err := range operate.On(w.eng).ResumeAll(w.ctx(), stopped, operate.ResumeOptions{}) {
			if told[plan.RunID] = err; plan.RunID == "r0" {
				require.NoError(t, resume(w.eng, w.ctx(), "r1"))
				w.eventually("r1", store.Failed)
			}
		}
		require.NoError(t, told["r0"])
		require.ErrorIs(t, told["r1"], durable.ErrNotResumable)
		require.EqualValues(t, 2, w.row("r1").Resumes+1, "once, by hand")
		require.Equal(t, store.Failed, w.row("r1").Status)
	})
}

// A paused run is held by a person, and stays so: whoever resumes all is told of it.
func TestABulkResumeNamesThePausedRunsThatItLeaves(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
			return "", durable.RetryDo(ctx, "a", durable.Policy{Initial: time.Hour}, func(context.Context) error { return errors.New("busy") })
		})
		w.boot(t, with(wf))
		start(t, w, wf, "held", 0)
		synctest.Wait()
		require.NoError(t, w.eng.Pause(w.ctx(), "held", "lunch"))
		w.eventually("held", store.Interrupted)
		for _, dry := range []bool{true, false} {
			n := 0
			for plan, err := range operate.On(w.eng).ResumeAll(w.ctx(), store.Filter{}, operate.ResumeOptions{DryRun: dry}) {
				n++
				require.Equal(t, "held", plan.RunID)
				var no *durable.NotResumableError
				require.ErrorAs(t, err, &no)
				require.True(t, no.Paused)
			}
			require.Equal(t, 1, n)
			require.True(t, w.row("held").Paused)
		}
	})
}
