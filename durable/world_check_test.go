package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// The helper itself: a crashed process runs and records nothing more, and the
// next one goes on where it stopped.
func TestACrashedProcessDoesNothingMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
			return durable.Retry(ctx, "a", durable.Policy{Initial: time.Minute, Jitter: -1}, func(context.Context) (int, error) {
				bodies++
				if bodies == 1 {
					return 0, errors.New("not yet")
				}
				return in + bodies, nil
			})
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 40)
		require.NoError(t, err)
		pass(time.Second)
		w.crash()
		before := w.story("r")
		pass(time.Hour)
		require.Equal(t, 1, bodies)
		require.Equal(t, before, w.story("r"))

		rep := w.boot(t, durable.Options{Workflows: []durable.Definition{wf}})
		require.Equal(t, []string{"r"}, rep.Resumed)
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		out, err := h.Wait(w.ctx())
		require.NoError(t, err)
		require.Equal(t, 42, out)
		require.Equal(t, []string{
			"workflow_created", "workflow_started", "attempt_failed a 1", "run_resumed", "step_started a", "step_completed a", "workflow_completed",
		}, w.story("r"))
	})
}
