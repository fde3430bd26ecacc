package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAnIdempotencyKeyIsFoundFromOutsideByTheKeyInTheHistory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex            // two items of a Map run at once
		given := map[string]string{} // by the key of the step
		body := func(ctx context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			given[durable.Attempt(ctx).Key] = durable.IdempotencyKey(ctx)
			return nil
		}
		wf := durable.Define("w", func(ctx context.Context, generation int) (int, error) {
			for range 2 {
				if err := durable.Do(ctx, "charge/it", body); err != nil {
					return 0, err
				}
			}
			if generation == 0 {
				return 0, durable.Continue(ctx, 1)
			}
			if err := durable.Compensate(ctx, "refund", body); err != nil {
				return 0, err
			}
			if _, err := durable.Map(ctx, "items", []int{1, 2}, durable.MapOptions{}, func(ctx context.Context, n int) (int, error) {
				return n, durable.Do(ctx, "resize", body)
			}); err != nil {
				return 0, err
			}
			return 0, durable.Permanent(errors.New("undo it"))
		})
		w.serve(t, wf)
		_, err := run(t, w, wf, "r", 0)
		require.Error(t, err)
		// The first generation has been written over by the second.
		require.NotEqual(t, given["charge%2Fit"], durable.IdempotencyKeyOf("r", 0, "charge%2Fit"))
		seen := map[string]bool{}
		h, err := w.eng.Store().Load(w.ctx(), "r", store.Cursor{})
		require.NoError(t, err)
		for ev, err := range h.Events {
			require.NoError(t, err)
			if ev.Type != store.StepCompleted && ev.Type != store.Compensated || given[ev.Key] == "" {
				continue
			}
			seen[ev.Key] = true
			require.Equal(t, given[ev.Key], durable.IdempotencyKeyOf("r", 1, ev.Key), ev.Key)
		}
		require.Len(t, seen, 5, "%v of %v", seen, given)
	})
}
