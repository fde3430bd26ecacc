package durable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// The line of the log about an end has a verdict, for which the history is read. Who
// waits for the run does not wait for that.
func TestWhoWaitsForARunIsToldBeforeTheLogHasTheVerdict(t *testing.T) {
	for name, end := range map[string]struct {
		status store.Status
		line   string
		how    func(ctx context.Context) (int, error) // the code of the run
	}{
		"a run that fails": {store.Failed, "run failed", func(context.Context) (int, error) { return 0, errNotYet }},
		"a run that is cancelled": {store.Cancelled, "run cancelled", func(ctx context.Context) (int, error) {
			return durable.Await[int](ctx, "never")
		}},
		"a run that is parked": {store.Interrupted, "run parked", func(ctx context.Context) (int, error) {
			return 0, durable.Do(ctx, "s", func(context.Context) error { return nil })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				slow := func(call string, forward func() error) error {
					if call == "load" {
						time.Sleep(time.Second)
					}
					return forward()
				}
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					n, err := end.how(ctx)
					w.disk.tamperCalls(slow)
					return n, err
				})
				w.boot(t, with(wf))
				if end.status == store.Interrupted {
					w.disk.tamper(refusing(store.StepCompleted, store.StepFailed))
				}
				h, err := wf.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				if end.status == store.Cancelled {
					synctest.Wait()
					require.NoError(t, w.eng.Cancel(w.ctx(), "r", "enough"))
				}
				_, err = h.Wait(w.ctx())
				require.Error(t, err)
				require.Empty(t, w.log.find(end.line))
				w.disk.tamperCalls(nil)
				pass(time.Minute)
				require.Equal(t, end.status, w.row("r").Status)
				require.Len(t, w.log.find(end.line), 1)
				require.Contains(t, w.log.find(end.line)[0], "verdict=")
			})
		})
	}
}

// Close has the last words written, too.
func TestCloseWaitsForTheVerdictInTheLog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(context.Context, int) (int, error) { return 0, errors.New("no") })
		w.boot(t, with(wf))
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "load" {
				time.Sleep(time.Second)
			}
			return forward()
		})
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		require.NoError(t, w.eng.Close())
		require.Len(t, w.log.find("verdict="), 1)
	})
}
