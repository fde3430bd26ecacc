package durable_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// slowStart is a store that takes a second for each new run.
type slowStart struct{ store.Store }

func (s slowStart) Commit(ctx context.Context, batch []store.Change) []error {
	for i := range batch {
		if batch[i].Create != nil {
			time.Sleep(time.Second)
			break
		}
	}
	return s.Store.Commit(ctx, batch)
}

// A program starts its run again, as it may, while that is unloaded: what comes
// in the same moment must not be given to the start that is about to find out.
func TestARunThatIsStartedAgainWhileItIsUnloadedStillWakes(t *testing.T) {
	for name, wake := range map[string]func(t *testing.T, ctx context.Context){
		"by a signal": func(t *testing.T, ctx context.Context) {
			require.NoError(t, durable.Signal(ctx, "r", "x", "woken"))
		},
		"by its time": func(*testing.T, context.Context) {}, // in the midst of the second start
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (string, error) {
					if name == "by its time" {
						return "woken", durable.Sleep(ctx, time.Minute)
					}
					return durable.Await[string](ctx, "x")
				})
				eng, err := durable.Open(context.Background(), slowStart{w.data.Handle()}, durable.Options{
					Workflows: []durable.Definition{wf}, Logger: slog.New(w.log), Grace: -1, UnloadAfter: time.Nanosecond, Lease: time.Hour,
				})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, eng.Close()) })
				ctx := durable.NewContext(context.Background(), eng)
				began := time.Now()
				_, err = wf.Start(ctx, "r", 0)
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, store.Waiting, w.row("r").Status)

				time.Sleep(time.Minute - 500*time.Millisecond - time.Since(began) + time.Second) // half a second before its time
				again := make(chan error, 1)
				var run *durable.Run[string]
				go func() {
					var err error
					run, err = wf.Start(ctx, "r", 0)
					again <- err
				}()
				synctest.Wait()
				wake(t, ctx)
				require.NoError(t, <-again)
				deadline, stop := context.WithTimeout(ctx, time.Minute)
				defer stop()
				out, err := run.Wait(deadline)
				require.NoError(t, err)
				require.Equal(t, "woken", out)
			})
		})
	}
}
