package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A run that is claimed in the moment in which the engine closes is given back. One
// that waited for an approval must not keep the code of that, which nobody claims an
// interrupted run with.
func TestAWaitingRunThatIsClaimedDuringCloseIsTakenUpByTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (bool, error) {
			return durable.Await[bool](ctx, "ok", durable.Prompt("Go on?"))
		})
		w.boot(t, with(wf))
		start(t, w, wf, "r", 0)
		pass(time.Second)
		require.Equal(t, durable.CodeApproval, w.row("r").Code)
		w.crash()
		w.expire()

		closing := w.serve(t, wf)
		require.NoError(t, closing.Signal(w.ctx(), "r", "ok", true))
		closed := make(chan error, 1)
		w.disk.tamperCalls(func(name string, do func() error) error {
			err := do()
			if name == "claim" && w.row("r").Owner == closing.ID() {
				go func() { closed <- closing.Close() }()
				time.Sleep(time.Millisecond) // in virtual time: Close has begun
			}
			return err
		})
		if _, err := closing.Recover(context.Background()); err != nil {
			require.ErrorIs(t, err, durable.ErrClosed, "it was still looking at what waits")
		}
		pass(time.Second)
		require.NoError(t, <-closed)
		row := w.row("r")
		require.Equal(t, store.Interrupted, row.Status)
		require.Empty(t, row.Code)

		w.boot(t, with(wf))
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.True(t, out)
	})
}
