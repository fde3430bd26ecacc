package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A run is replayed, and ends before one of its branches has come to the call that had
// started a child: the child ends with the run all the same.
func TestAChildOfABranchThatIsStillBeingReplayedIsCancelledWithItsParent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var lives atomic.Int32
		wf := durable.Define("race", func(ctx context.Context, _ int) (string, error) {
			sleeper := durable.Go(ctx, "sleeper", func(ctx context.Context) (string, error) {
				return "slept", durable.Sleep(ctx, time.Minute)
			})
			parent := durable.Go(ctx, "parent", func(ctx context.Context) (string, error) {
				if lives.Add(1) > 1 {
					time.Sleep(time.Minute) // longer than the replay of the rest
				}
				c, err := letter.Start(ctx, durable.AutoID, "")
				if err != nil {
					return "", err
				}
				return c.Wait(ctx)
			})
			_, out, err := durable.First(ctx, "first", sleeper, parent)
			return out, err
		})
		o := durable.Options{Workflows: []durable.Definition{wf, letter}, UnloadAfter: time.Nanosecond}
		w.boot(t, o)
		start(t, w, wf, "r", 0)
		w.eventually("r", store.Waiting)
		pass(5 * time.Minute)
		require.Equal(t, store.Completed, w.row("r").Status)
		child := w.row("r/parent/letter")
		require.Equal(t, store.Cancelled, child.Status)
		require.Equal(t, "its parent r has ended", child.Reason)
	})
}
