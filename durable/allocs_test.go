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
func TestAStepAllocatesSixTimes(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, in int) (float64, error) {
		var failed error
		return testing.AllocsPerRun(in, func() {
			if _, err := durable.Step(ctx, "a", func(context.Context) (int, error) { return in + 1, nil }); err != nil {
				failed = err
			}
		}), failed
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(t, err)
	defer eng.Close()
	allocs, err := wf.Run(durable.NewContext(t.Context(), eng), "r", 5000)
	require.NoError(t, err)
	require.LessOrEqual(t, allocs, 6.0)
}
