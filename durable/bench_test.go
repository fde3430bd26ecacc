package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func BenchmarkStep(b *testing.B) {
	ctx := context.Background()
	st := memory.Open()
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		for range in {
			if _, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) { return in + 1, nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(b, err)
	b.ReportAllocs()
	_, err = wf.Run(durable.NewContext(ctx, eng), "r1", b.N)
	require.NoError(b, err)
	require.NoError(b, eng.Close())
}
