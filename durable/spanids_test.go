package durable_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
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
		require.NoError(t, operate.On(w.eng).Export(w.ctx(), "r", &file))
		w.reboot(t, options())
		_, err = operate.On(w.eng).Import(w.ctx(), &file, operate.ImportOptions{NewID: "imported"})
		require.NoError(t, err)
		require.NoError(t, resume(w.eng, w.ctx(), "imported"))
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "forked"})
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

// keptIDs are the options of a process that tells the SDK the ids of its spans.
func (w *traceWorld) keptIDs(defs ...durable.Definition) durable.Options {
	o := durable.Options{Workflows: defs}
	o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithIDGenerator(durable.SpanIDs{}))
	return o
}

func TestTheStartOfAForkIsExportedAgainWithItsLinkToTheSource(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		again := durable.Define("again", func(ctx context.Context, n int) (int, error) {
			if err := durable.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			if n == 0 {
				return 0, durable.Continue(ctx, 1)
			}
			return n, nil
		})
		w.boot(t, w.keptIDs(again))
		_, err := again.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		source := w.one("start again").SpanContext.SpanID()
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "forked"})
		require.NoError(t, err)
		_, err = operate.On(w.eng).Fork(w.ctx(), "forked", operate.ForkOptions{ID: "of the fork"})
		require.NoError(t, err)
		synctest.Wait()
		first := map[string]tracetest.SpanStub{}
		for _, s := range w.of("start again") {
			first[attr(&s, "durable.run.id")] = s
		}
		require.Equal(t, source, first["forked"].Links[0].SpanContext.SpanID())
		require.Equal(t, first["forked"].SpanContext.SpanID(), first["of the fork"].Links[0].SpanContext.SpanID())

		w.reboot(t, w.keptIDs(again))
		pass(30 * time.Second)
		w.reboot(t, w.keptIDs(again)) // in the second generation
		seen := 0
		for _, id := range []string{"r", "forked", "of the fork"} {
			_, err = wait(t, w.world, again, id)
			require.NoError(t, err)
		}
		for _, s := range w.of("start again") {
			id := attr(&s, "durable.run.id")
			require.Equal(t, first[id].SpanContext.SpanID(), s.SpanContext.SpanID(), id)
			require.Equal(t, links(first[id]), links(s), id)
			seen++
		}
		require.Equal(t, 6, seen, "each twice")
	})
}

// links are the spans that s is linked to, and as what.
func links(s tracetest.SpanStub) []string {
	var all []string
	for _, l := range s.Links {
		all = append(all, l.SpanContext.SpanID().String()+" "+l.Attributes[0].Value.AsString())
	}
	return all
}

// slowStep is under way for an hour.
var slowStep = durable.Define("slow", func(ctx context.Context, _ int) (int, error) {
	return 0, durable.Do(ctx, "one", func(ctx context.Context) error {
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
		return ctx.Err()
	})
})

// A run that recovery marks failed is never executed again, so nobody else would
// give its trace the root that its process may have lost.
func TestTheStartOfARunThatRecoveryMarksFailedIsExportedAgain(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		o := w.keptIDs(slowStep)
		w.boot(t, o)
		request, around := o.TracerProvider.Tracer("web").Start(w.ctx(), "POST /slow")
		_, err := slowStep.Start(request, "r", 0)
		require.NoError(t, err)
		around.End()
		synctest.Wait()
		first := w.one("start slow")
		w.spans.Reset() // as a batch is lost with its process
		o = w.keptIDs(slowStep)
		o.OnBoot = durable.FailOnBoot
		rep := w.reboot(t, o)
		require.Equal(t, []string{"r"}, rep.Failed)
		again := w.one("start slow")
		require.Equal(t, first.SpanContext.SpanID(), again.SpanContext.SpanID())
		require.Equal(t, around.SpanContext().SpanID(), again.Parent.SpanID())
		require.Equal(t, first.Attributes, again.Attributes)
		require.True(t, first.StartTime.Equal(again.StartTime), "%s and %s", first.StartTime, again.StartTime)
		require.Equal(t, again.SpanContext.SpanID(), w.one("end slow").Parent.SpanID())
	})
}

func TestWithoutSpanIDsNoStartIsExportedAgainByRecovery(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		w.boot(t, w.options(sdktrace.AlwaysSample(), slowStep))
		_, err := slowStep.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		o := w.options(sdktrace.AlwaysSample(), slowStep)
		o.OnBoot = durable.FailOnBoot
		w.reboot(t, o)
		w.one("start slow")
		w.one("end slow")
	})
}
