package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// trip books three things and undoes them when one cannot be had.
func trip(book func(what string) error, end func(ctx context.Context) error) *durable.Workflow[int, string] {
	return durable.Define("trip", func(ctx context.Context, _ int) (string, error) {
		for _, what := range []string{"flight", "hotel", "car"} {
			if err := durable.Compensate(ctx, "cancel "+what, func(context.Context) error { return book("cancel " + what) }); err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "book "+what, func(context.Context) error { return book("book " + what) }); err != nil {
				return "", err
			}
		}
		return "booked", end(ctx)
	})
}

func TestAFailedRunIsUndoneInReverseOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		wf := trip(func(what string) error {
			did = append(did, what)
			if what == "book car" {
				return errors.New("no car")
			}
			return nil
		}, func(context.Context) error { return nil })
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorContains(t, err, "no car")
		require.Equal(t, []string{"book flight", "book hotel", "book car", "cancel car", "cancel hotel", "cancel flight"}, did)
		require.False(t, w.row("r").Recoverable)
		require.Contains(t, w.story("r"), "step_completed ~undo/cancel hotel")
	})
}

func TestACancelledRunIsUndoneAndACompletedOneIsNot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		wf := trip(func(what string) error { did = append(did, what); return nil },
			func(ctx context.Context) error { return durable.Sleep(ctx, time.Hour) })
		w.serve(t, wf)
		run, err := wf.Start(w.ctx(), "gone", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "gone", "no time"))
		_, err = run.Wait(w.ctx())
		require.ErrorIs(t, err, durable.ErrRunCancelled)
		require.Equal(t, []string{"cancel car", "cancel hotel", "cancel flight"}, did[3:])
		did = nil
		_, err = wf.Run(w.ctx(), "fine", 0)
		require.NoError(t, err)
		require.Len(t, did, 3)
	})
}

func TestACompensationThatFailsDoesNotKeepTheOthersAndIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var did []string
		wf := trip(func(what string) error {
			did = append(did, what)
			switch what {
			case "book car":
				return errors.New("no car")
			case "cancel hotel":
				return durable.Permanent(errors.New("the hotel does not answer"))
			}
			return nil
		}, func(context.Context) error { return nil })
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorContains(t, err, "no car")
		require.ErrorContains(t, err, "the hotel does not answer")
		require.Equal(t, "cancel flight", did[len(did)-1])
	})
}

func TestBranchesAreUndoneInTheReverseOrderOfTheirPlace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var did []string
		undo := func(ctx context.Context, name string) {
			require.NoError(t, durable.Compensate(ctx, name, func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				did = append(did, name)
				return nil
			}))
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			undo(ctx, "first")
			undo(ctx, "second")
			g := durable.NewGroup(ctx)
			for i := range 3 {
				g.Go("part", func(ctx context.Context) error {
					// The later branch registers earlier.
					if err := durable.Sleep(ctx, time.Duration(3-i)*time.Second); err != nil {
						return err
					}
					undo(ctx, fmt.Sprint("part ", i))
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				return 0, err
			}
			undo(ctx, "last")
			return 0, errors.New("fail")
		})
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorContains(t, err, "fail")
		require.Equal(t, []string{"last", "part 2", "part 1", "part 0", "second", "first"}, did)
	})
}

func TestASagaKilledAtAnyWriteUndoesEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		define := func(done *[]string) func(j *journal) *durable.Workflow[int, string] {
			return func(*journal) *durable.Workflow[int, string] {
				return trip(func(what string) error {
					*done = append(*done, what)
					if what == "book car" {
						return errors.New("no car")
					}
					return nil
				}, func(context.Context) error { return nil })
			}
		}
		var clean []string
		want, _, writes := lives(t, define(&clean), nil)
		for at := 1; at <= writes; at++ {
			for _, after := range []bool{false, true} {
				var did []string
				got, _, _ := lives(t, define(&did), []death{{at, after}})
				require.Equal(t, want, got)
				// One body may have run again: the one in flight at the kill.
				require.LessOrEqual(t, len(did), len(clean)+1)
				require.Equal(t, clean, slices.Compact(did), "killed at write %d, after=%v", at, after)
			}
		}
	})
}

// A replay does not run the body, and would know nothing of what it has registered.
func TestABodyRegistersNoCompensationWithTheContextOfTheFunction(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "book", func(context.Context) error {
				return durable.Compensate(ctx, "cancel", func(context.Context) error { return nil })
			})
		})
		w.serve(t, wf)
		_, err := wf.Run(w.ctx(), "r", 0)
		require.ErrorIs(t, err, durable.ErrConcurrent)
		require.Equal(t, []string{"workflow_created", "workflow_started", "step_failed book 1", "workflow_failed"}, w.story("r"))
	})
}
