//go:build !race

package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The race detector has pools drop what they hold, hence the build constraint.
func TestAStepAllocatesTwice(t *testing.T) {
	t.Run("int", func(t *testing.T) { allocates(t, 2, 7) })
	t.Run("text", func(t *testing.T) { allocates(t, 2, "seven") })
	t.Run("struct", func(t *testing.T) { allocates(t, 2, benchReceipt{ID: "H-7", Amount: 7}) })
}

// allocates counts the allocations of a step with this result: the closure of the program, and
// the body with its context. What the store keeps, keys and results share theirs.
func allocates[T any](t *testing.T, most float64, result T) {
	wf := durable.Define("w", func(ctx context.Context, in int) (float64, error) {
		var failed error
		return testing.AllocsPerRun(in, func() {
			if _, err := durable.Step(ctx, "a", func(context.Context) (T, error) { return result, nil }); err != nil {
				failed = err
			}
		}), failed
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(t, err)
	defer eng.Close()
	allocs, err := wf.Run(durable.NewContext(t.Context(), eng), "r", 5000)
	require.NoError(t, err)
	require.LessOrEqual(t, allocs, most)
}
