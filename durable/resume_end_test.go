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

// A resumed run holds its keys, and lets go of them however it ends, so that the
// next resume of its scope is not refused for the sake of one that is over.
func TestHoweverAResumedRunEndsItsScopeIsFreeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		second func(ctx context.Context) error // what the second life does behind its step
		ends   store.Status
	}{
		"success": {func(context.Context) error { return nil }, store.Completed},
		"error":   {func(context.Context) error { return errStock }, store.Failed},
		"panic":   {func(context.Context) error { panic("out of the blue") }, store.Failed},
		"cancel": {func(ctx context.Context) error {
			return durable.Sleep(ctx, time.Hour)
		}, store.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				life, worked := 1, 0
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					if err := durable.Do(ctx, "work", func(context.Context) error { worked++; return nil }); err != nil {
						return 0, err
					}
					switch life {
					case 1:
						return 0, errStock
					case 2:
						if err := durable.Do(ctx, "hold", func(context.Context) error { time.Sleep(time.Second); return nil }); err != nil {
							return 0, err
						}
						return 0, c.second(ctx)
					}
					_ = durable.Do(ctx, "hold", func(context.Context) error { return nil })
					return 7, nil
				})
				w.serve(t, wf)
				_, err := wf.Run(w.ctx(), "r", 0, durable.Exclusive("worktree:a"))
				require.ErrorIs(t, err, durable.ErrRunFailed)
				require.NoError(t, tryKeys(w, "worktree:a"))

				life++
				require.NoError(t, resume(w.eng, w.ctx(), "r"))
				synctest.Wait()
				err = tryKeys(w, "worktree:a")
				occupied(t, err, autoOf(t, err), "worktree:a", "r")
				if c.ends == store.Cancelled {
					require.NoError(t, w.eng.Cancel(w.ctx(), "r", ""))
				}
				w.eventually("r", c.ends)
				require.NoError(t, tryKeys(w, "worktree:a"))
				require.Equal(t, 1, worked, "what was recorded is not done again")
				if c.ends != store.Failed {
					return
				}
				life++
				require.NoError(t, resume(w.eng, w.ctx(), "r"), "its own scope is free, too")
				out, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, out)
				require.Equal(t, 1, worked)
			})
		})
	}
}

// What a failure has left in the row is gone as soon as the run is under way
// again: its reason and code, whether it can be recovered, how often it had ended
// its process, and when it ended. The history keeps it.
func TestAResumeClearsAllThatAFailureHasLeftInTheRow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stuck := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "hold", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		})
		w.serve(t, stuck)
		start(t, w, stuck, "r", 0)
		synctest.Wait()
		for range 4 { // the first end is on nobody's account
			w.reboot(t, with(stuck))
			synctest.Wait()
		}
		failed := w.eventually("r", store.Failed)
		require.Equal(t, durable.CodeQuarantined, failed.Code)
		require.NotEmpty(t, failed.Reason)
		require.True(t, failed.Recoverable)
		require.NotZero(t, failed.Strikes)
		require.NotZero(t, failed.EndedAt)
		w.crash()
		slow := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 1, durable.Do(ctx, "hold", func(context.Context) error { time.Sleep(time.Minute); return nil })
		})
		// At once, by an operator who has no code for it, and while it runs again.
		cleared := func(status ...store.Status) {
			t.Helper()
			row := w.row("r")
			require.Contains(t, status, row.Status)
			require.Empty(t, row.Code)
			require.Empty(t, row.Reason)
			require.False(t, row.Recoverable)
			require.Zero(t, row.Strikes)
			require.Zero(t, row.EndedAt)
		}
		w.open(t, durable.Options{})
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		cleared(store.Interrupted)
		w.boot(t, with(slow))
		synctest.Wait()
		cleared(store.Running, store.Resuming)
		require.Contains(t, w.story("r"), "workflow_failed", "the history keeps it")
		_, err := wait(t, w, slow, "r")
		require.NoError(t, err)
	})
}
