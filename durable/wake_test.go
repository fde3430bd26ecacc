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

// A store without notices, or one whose notices come before they are listened
// for.
type unheard struct{ store.Store }

func TestAMessageWakesAWaitingRunThatHasLostItsOwnerWithoutANotice(t *testing.T) {
	for _, from := range []string{"a child", "a signal", "a cancel"} {
		t.Run(from, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) { return 1, durable.Sleep(ctx, time.Hour) })
				wf := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
					if from == "a child" {
						return kid.Run(ctx, durable.AutoID, 0)
					}
					return durable.Await[int](ctx, "go")
				})
				w.boot(t, with(wf, kid))
				start(t, w, wf, "r", 0)
				w.eventually("r", store.Waiting)
				w.crash()
				w.expire()

				eng, err := durable.Open(context.Background(), unheard{w.data.Handle()}, with(wf, kid))
				require.NoError(t, err)
				defer func() { require.NoError(t, eng.Close()) }()
				_, err = eng.Recover(context.Background())
				require.NoError(t, err)
				pass(time.Second)
				switch from {
				case "a child":
					pass(time.Until(w.row("r/kid").WakeAt.Time()))
				case "a signal":
					require.NoError(t, eng.Signal(context.Background(), "r", "go", 1))
				case "a cancel":
					require.NoError(t, eng.Cancel(context.Background(), "r", "enough"))
				}
				synctest.Wait()
				require.True(t, w.row("r").Status.Terminal(), "it waits for the next beat: %s", w.row("r").Status)
			})
		})
	}
}
