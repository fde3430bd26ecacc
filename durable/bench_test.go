package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// benchmarkedSteps are made in one run, so that the memory of the store stays that of a
// program, and what the collector does that of the engine.
const benchmarkedSteps = 20_000

func BenchmarkStep(b *testing.B) {
	b.Run("int", func(b *testing.B) { benchmarkStep(b, func(i int) int { return i }) })
	b.Run("struct", func(b *testing.B) {
		benchmarkStep(b, func(i int) benchReceipt {
			return benchReceipt{ID: "H-7", Amount: int64(i), Paid: true, Currency: "EUR"}
		})
	})
}

// benchReceipt is a flat struct, as many steps return.
type benchReceipt struct {
	ID       string
	Amount   int64
	Paid     bool
	Currency string
}

func benchmarkStep[T any](b *testing.B, result func(i int) T) {
	ctx := context.Background()
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		for i := range in {
			if _, err := durable.Step(ctx, "a", func(ctx context.Context) (T, error) { return result(i), nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	b.ReportAllocs()
	for left := b.N; left > 0; left -= benchmarkedSteps {
		eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
		require.NoError(b, err)
		_, err = wf.Run(durable.NewContext(ctx, eng), "r1", min(left, benchmarkedSteps))
		require.NoError(b, err)
		require.NoError(b, eng.Close())
	}
}
