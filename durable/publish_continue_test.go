package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
)

// What a run has published stays until it publishes something else under the key, however often
// it continues with a new input.
func TestWhatARunHasPublishedOutlivesItsGeneration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("w", func(ctx context.Context, left int) (int, error) {
			if left == 3 {
				if err := durable.Publish(ctx, "state", "ready"); err != nil {
					return 0, err
				}
			}
			if left == 0 {
				return 0, durable.Sleep(ctx, time.Hour)
			}
			return 0, durable.Continue(ctx, left-1)
		})
		w.serve(t, wf)
		_, err := wf.Start(w.ctx(), "r", 3)
		require.NoError(t, err)
		pass(time.Minute)
		require.EqualValues(t, 3, w.row("r").Generation)
		v, ok, err := durable.Published[string](w.ctx(), "r", "state")
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "ready", v)
		ctx, cancel := context.WithTimeout(w.ctx(), time.Minute)
		defer cancel()
		v, err = durable.WaitPublished[string](ctx, "r", "state", nil)
		require.NoError(t, err)
		require.Equal(t, "ready", v)
	})
}
