package traceproof_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/test/otlptest"
)

// Two engines of one process share a store in memory: what the one starts and
// gives up, the other goes on with.
func TestTwoEnginesOnAStoreInMemoryMakeOneTrace(t *testing.T) {
	r, err := otlptest.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	data := memory.Open()
	defer func() { require.NoError(t, data.Close()) }()
	ctx := context.Background()
	engine := func(defs ...durable.Definition) (*durable.Engine, context.Context, func()) {
		exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.URL()+"/v1/traces"))
		require.NoError(t, err)
		p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exp))
		eng, err := durable.Open(ctx, data.Handle(), durable.Options{Workflows: defs, TracerProvider: p, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ectx := durable.NewContext(ctx, eng)
		_, err = eng.Recover(ectx)
		require.NoError(t, err)
		return eng, ectx, func() {
			require.NoError(t, eng.Close())
			require.NoError(t, p.Shutdown(ctx))
		}
	}
	kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "play", func(context.Context) (int, error) { return 1, nil })
	})
	begun := make(chan struct{}, 1)
	parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "one", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		begun <- struct{}{}
		if _, err := durable.Await[int](ctx, "go", durable.Timeout(time.Hour)); err != nil {
			return 0, err
		}
		return durable.Ref[int, int]("kid").Run(ctx, durable.AutoID, 0)
	})
	// The first executes the parent, the second the child, and the parent when
	// the first has gone.
	first, ctx1, closeFirst := engine(parent)
	second, ctx2, closeSecond := engine(parent, kid)
	_, err = parent.Start(ctx1, "r", 0)
	require.NoError(t, err)
	<-begun
	closeFirst()
	require.NoError(t, second.Signal(ctx2, "r", "go", 1))
	h, err := parent.Handle(ctx2, "r")
	require.NoError(t, err)
	_, err = h.Wait(ctx2)
	require.NoError(t, err)
	closeSecond()

	tree := treeOf(t, r.Spans(), "start parent")
	executors := map[any]int{}
	attempts := map[string]int{}
	for n := range tree.All {
		if n.Kind == "consumer" {
			executors[n.Attributes["durable.executor.id"]]++
		}
		if n.Attributes["durable.step.attempt"] != nil {
			attempts[n.Name]++
		}
	}
	require.Equal(t, map[any]int{first.ID(): 1, second.ID(): 2}, executors)
	require.Equal(t, map[string]int{"step one": 1, "attempt one": 1, "step play": 1, "attempt play": 1}, attempts)
	require.Equal(t, one(t, r.Spans(), "signal go").ID, one(t, r.Spans(), "wait go").Links[0].ID)
}
