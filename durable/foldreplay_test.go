package durable_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The fold of a MapSeq panics, live and on every replay. What its items have registered is
// undone after a crash too: those that had ended, and those that were under way.
func TestItemsOfAMapSeqWhoseFoldFailsAreUndoneAfterACrash(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var undone []int
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.MapSeq(ctx, "m", slices.Values([]int{0, 1}), durable.MapOptions{Concurrency: 2}, func(ctx context.Context, i int) (int, error) {
				err := durable.Compensate(ctx, "undo", func(context.Context) error { undone = append(undone, i); return nil })
				if err != nil {
					return 0, err
				}
				if err := durable.Do(ctx, "do", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				return i, durable.Sleep(ctx, time.Duration(1+i)*time.Hour)
			}, 0, func(int, int) int { panic("cannot fold") })
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(90 * time.Minute) // item 0 has ended, and its result could not be folded
		w.reboot(t, with(wf))
		pass(90 * time.Minute)
		require.Equal(t, store.Failed, w.row("r").Status)
		slices.Sort(undone)
		require.Equal(t, []int{0, 1}, undone)
	})
}

// A run whose function has gone on after the fold of a MapSeq had panicked is cancelled. Its function is told
// of the panic again, and not of the cancel in its place: what it has registered since is undone.
func TestACancelDoesNotTakeThePlaceOfAFoldThatPanicked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []string
		undone := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.MapSeq(ctx, "items", slices.Values([]int{1}), durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
				return n, nil
			}, 0, func(int, int) int { panic("cannot fold") })
			told = append(told, err.Error())
			if err := durable.Compensate(ctx, "undo", func(context.Context) error { undone++; return nil }); err != nil {
				return 0, err
			}
			return 0, durable.Sleep(ctx, time.Hour)
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		w.crash()
		w.expire()
		w.boot(t, with()) // another program
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
		w.reboot(t, with(wf))
		w.eventually("r", store.Cancelled)
		require.Len(t, told, 2)
		require.Equal(t, told[0], told[1])
		require.Equal(t, 1, undone)
	})
}
