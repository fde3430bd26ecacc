package durable_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// BenchmarkTracedStep is BenchmarkStep with the SDK, a sampler that takes
// everything and an exporter that throws it away: what a step costs when it is
// traced, without the way to a backend.
func BenchmarkTracedStep(b *testing.B) {
	ctx := context.Background()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(tracetest.NewNoopExporter()))
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		for range in {
			if _, err := durable.Step(ctx, "a", func(ctx context.Context) (int, error) { return in + 1, nil }); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet, TracerProvider: provider})
	require.NoError(b, err)
	b.ReportAllocs()
	_, err = wf.Run(durable.NewContext(ctx, eng), "r1", b.N)
	require.NoError(b, err)
	require.NoError(b, eng.Close())
	require.NoError(b, provider.Shutdown(ctx))
}
