package durable_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// When a run is cancelled in the first step of each item of a Map, nothing is recorded of the items but
// where they were stopped. What they registered then is undone by a later process, too.
func TestWhatItemsRegisterThatWereStoppedInTheirFirstStepIsUndoneInALaterProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var undone []string
		crashes, killed := true, make(chan struct{})
		defer close(killed)
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Map(ctx, "items", upTo(3), durable.MapOptions{Concurrency: 3}, func(ctx context.Context, i int) (int, error) {
				_, err := durable.Step(ctx, "book", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
				undo := func(context.Context) error {
					undone = append(undone, fmt.Sprint(i))
					if crashes && len(undone) == 2 {
						<-killed
					}
					return nil
				}
				if err := durable.Compensate(ctx, "release what may be booked", undo); err != nil {
					return 0, err
				}
				return 0, err
			})
			return 0, err
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, w.eng.Cancel(w.ctx(), "r", "no time"))
		synctest.Wait()
		require.Len(t, undone, 2)
		first := undone[0]
		crashes, undone = false, nil
		w.reboot(t, durable.Options{Workflows: []durable.Definition{wf}})
		w.eventually("r", store.Cancelled)
		require.ElementsMatch(t, []string{"0", "1", "2"}, append(undone, first))
		w.allSound(t)
	})
}
