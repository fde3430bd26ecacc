package durable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A program recovers and starts its runs again, as it does at every boot, while
// its own claims take those that have come due. A start that has not written
// anything yet and a claim of the same run must not get in each other's way.
func TestAStartOfARunThatIsBeingClaimedHereFindsIt(t *testing.T) {
	const rounds, runs = 10, 200
	for range rounds {
		inWorld(t, func(t *testing.T, w *world) {
			wf := durable.Define("nap", func(ctx context.Context, n int) (int, error) { return n, durable.Sleep(ctx, time.Hour) })
			w.boot(t, with(wf))
			for n := range runs {
				start(t, w, wf, fmt.Sprint("r", n), n)
			}
			w.eventually(fmt.Sprint("r", runs-1), store.Waiting)
			w.crash()
			pass(2 * time.Hour)
			w.boot(t, with(wf))
			errs := make([]error, runs)
			var all sync.WaitGroup
			for n := range runs {
				for range 3 { // whoever else does the same
					all.Go(func() { _, _ = wf.Start(w.ctx(), fmt.Sprint("r", n), n) })
				}
				all.Go(func() {
					var h *durable.Run[int]
					if h, errs[n] = wf.Start(w.ctx(), fmt.Sprint("r", n), n); errs[n] == nil {
						_, errs[n] = h.Wait(w.ctx())
					}
				})
			}
			all.Wait()
			for n, err := range errs {
				require.NoError(t, err, "r%d", n)
				require.NotContains(t, w.story(fmt.Sprint("r", n)), "workflow_interrupted", "nothing has stopped it")
			}
		})
	}
}
