package durable_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
)

// counted makes ids of a form of its own.
type counted struct{ traces, spans byte }

func (c *counted) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	c.traces++
	id := trace.TraceID{15: c.traces}
	return id, c.NewSpanID(ctx, id)
}

func (c *counted) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	c.spans++
	return trace.SpanID{7: c.spans}
}

func TestSpanIDsLeavesAllOtherIDsToItsBase(t *testing.T) {
	ctx := t.Context()
	base := &counted{}
	own, span := durable.SpanIDs{Base: base}.NewIDs(ctx)
	require.Equal(t, trace.TraceID{15: 1}, own)
	require.Equal(t, trace.SpanID{7: 1}, span)
	require.Equal(t, trace.SpanID{7: 2}, durable.SpanIDs{Base: base}.NewSpanID(ctx, own))

	first, span := durable.SpanIDs{}.NewIDs(ctx)
	second, other := durable.SpanIDs{}.NewIDs(ctx)
	require.True(t, first.IsValid() && second.IsValid() && span.IsValid() && other.IsValid())
	require.NotEqual(t, first, second)
	require.NotEqual(t, span, other)
}

// A start below a span of its caller's is said again below that span; one that is
// not sampled, or has not left its process, is not said again.
func TestAStartIsExportedAgainWhereItWas(t *testing.T) {
	for name, c := range map[string]struct {
		sampler sdktrace.Sampler
		crash   bool
		want    int
	}{
		"in another process":       {sdktrace.AlwaysSample(), true, 2},
		"in the process it was in": {sdktrace.AlwaysSample(), false, 1},
		"not sampled":              {sdktrace.NeverSample(), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inTraceWorld(t, func(t *testing.T, w *traceWorld) {
				options := func() durable.Options {
					o := durable.Options{Workflows: []durable.Definition{twoSteps}}
					o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithSampler(c.sampler), sdktrace.WithIDGenerator(durable.SpanIDs{}))
					return o
				}
				o := options()
				w.boot(t, o)
				request, around := o.TracerProvider.Tracer("web").Start(w.ctx(), "POST /two")
				_, err := twoSteps.Start(request, "r", 0)
				require.NoError(t, err)
				around.End()
				synctest.Wait()
				if c.crash {
					w.reboot(t, options())
				}
				_, err = wait(t, w.world, twoSteps, "r")
				require.NoError(t, err)
				starts := w.of("start two")
				require.Len(t, starts, c.want)
				for _, s := range starts {
					require.Equal(t, around.SpanContext().SpanID(), s.Parent.SpanID())
					require.Equal(t, around.SpanContext().TraceID(), s.SpanContext.TraceID())
					require.Equal(t, starts[0].SpanContext.SpanID(), s.SpanContext.SpanID())
					require.Equal(t, starts[0].Attributes, s.Attributes)
				}
			})
		})
	}
}

func TestTheStartOfACopyIsNotThatOfTheOriginal(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		options := func() durable.Options {
			o := durable.Options{Workflows: []durable.Definition{twoSteps}}
			o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithIDGenerator(durable.SpanIDs{}))
			return o
		}
		w.boot(t, options())
		_, err := twoSteps.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		var file bytes.Buffer
		require.NoError(t, w.eng.Export(w.ctx(), "r", &file))
		w.reboot(t, options())
		_, err = w.eng.Import(w.ctx(), &file, durable.ImportOptions{NewID: "imported"})
		require.NoError(t, err)
		require.NoError(t, resume(w.eng, w.ctx(), "imported"))
		_, err = w.eng.Fork(w.ctx(), "r", durable.ForkOptions{ID: "forked"})
		require.NoError(t, err)
		w.reboot(t, options())
		of := map[string]map[trace.SpanID]int{}
		for _, id := range []string{"r", "imported", "forked"} {
			_, err = wait(t, w.world, twoSteps, id)
			require.NoError(t, err)
			of[id] = map[trace.SpanID]int{}
		}
		for _, s := range w.of("start two") {
			of[attr(&s, "durable.run.id")][s.SpanContext.SpanID()]++
		}
		require.Empty(t, of["imported"], "it was started as another run")
		for _, id := range []string{"r", "forked"} {
			require.Len(t, of[id], 1, id)
			for span, n := range of[id] {
				require.Equal(t, 2, n, id)
				require.NotContains(t, of[map[string]string{"r": "forked", "forked": "r"}[id]], span)
			}
		}
	})
}
