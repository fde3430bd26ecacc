package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

func TestARunIsOneTraceAcrossItsProcesses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		spans := tracetest.NewInMemoryExporter()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		below := 0
		wf := durable.Define("traced", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Do(ctx, "one", func(ctx context.Context) error {
				_, own := provider.Tracer("user").Start(ctx, "the user's own")
				own.End()
				below++
				return nil
			}); err != nil {
				return 0, err
			}
			return durable.Retry(ctx, "two", durable.Policy{Initial: time.Hour, Max: time.Hour}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number < 3 {
					return 0, errors.New("secret-marker")
				}
				return 2, nil
			})
		})
		o := durable.Options{Workflows: []durable.Definition{wf}, TracerProvider: provider, OmitTexts: true}
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		for range 2 {
			synctest.Wait()
			w.reboot(t, o)
			time.Sleep(time.Hour)
		}
		h, err := wf.Handle(w.ctx(), "r")
		require.NoError(t, err)
		_, err = h.Wait(w.ctx())
		require.NoError(t, err)
		synctest.Wait()

		ids := map[trace.TraceID]bool{}
		byID := map[trace.SpanID]string{}
		count := map[string]int{}
		for _, s := range spans.GetSpans() {
			if s.InstrumentationScope.Name != "user" {
				require.Equal(t, durable.Release(), s.InstrumentationScope.Version, s.Name)
			}
			ids[s.SpanContext.TraceID()] = true
			byID[s.SpanContext.SpanID()] = s.Name
		}
		for _, s := range spans.GetSpans() {
			name := fmt.Sprintf("%s < %s", s.Name, byID[s.Parent.SpanID()])
			if s.Status.Code == codes.Error {
				name += " !"
			}
			count[name]++
			for _, a := range s.Attributes {
				require.NotContains(t, a.Value.String(), "secret-marker")
			}
			require.NotContains(t, s.Status.Description, "secret-marker")
		}
		require.Len(t, ids, 1, "one trace")
		require.Equal(t, 1, count["start traced < "])
		require.Equal(t, 1, count["step one < segment traced"], "a replayed step makes no span: %v", count)
		require.Equal(t, 1, count["the user's own < attempt one"])
		require.Equal(t, 2, count["attempt two < step two !"], "each failed attempt once: %v", count)
		require.Equal(t, 1, count["attempt two < step two"])
		require.Equal(t, 1, below)
		require.NoError(t, provider.Shutdown(context.Background()))
	})
}

// traceWorld is a world whose processes export into one place.
type traceWorld struct {
	*world
	spans *tracetest.InMemoryExporter
}

func inTraceWorld(t *testing.T, test func(t *testing.T, w *traceWorld)) {
	inWorld(t, func(t *testing.T, w *world) { test(t, &traceWorld{w, tracetest.NewInMemoryExporter()}) })
}

func (w *traceWorld) options(s sdktrace.Sampler, defs ...durable.Definition) durable.Options {
	return durable.Options{Workflows: defs, TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans), sdktrace.WithSampler(s))}
}

// of returns the spans with this name.
func (w *traceWorld) of(name string) []tracetest.SpanStub {
	synctest.Wait()
	var found []tracetest.SpanStub
	for _, s := range w.spans.GetSpans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func (w *traceWorld) one(name string) tracetest.SpanStub {
	w.t.Helper()
	found := w.of(name)
	require.Len(w.t, found, 1, name)
	return found[0]
}

var twoSteps = durable.Define("two", func(ctx context.Context, _ int) (int, error) {
	if err := durable.Do(ctx, "one", func(context.Context) error { return nil }); err != nil {
		return 0, err
	}
	if err := durable.Sleep(ctx, time.Hour); err != nil {
		return 0, err
	}
	return durable.Step(ctx, "two", func(context.Context) (int, error) { return 2, nil })
})

func TestARunThatIsUnloadedGoesOnBelowTheSameSegment(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		w.boot(t, w.options(sdktrace.AlwaysSample(), twoSteps))
		_, err := twoSteps.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		before := len(w.spans.GetSpans())
		require.Equal(t, before, len(w.of("start two"))+len(w.of("segment two"))+len(w.of("step one"))+len(w.of("attempt one")), "nothing is open while it waits, and nothing else was made")
		began := time.Now()
		pass(2 * time.Hour)
		segment, sleep := w.one("segment two"), w.one("sleep")
		require.Equal(t, segment.SpanContext.SpanID(), sleep.Parent.SpanID())
		require.Equal(t, segment.SpanContext.SpanID(), w.one("step two").Parent.SpanID())
		require.Equal(t, time.Hour, sleep.EndTime.Sub(sleep.StartTime).Round(time.Second), "its beginning is stamped")
		require.WithinDuration(t, began, sleep.StartTime, time.Second)
		end := w.one("end two")
		require.Equal(t, time.Hour, end.EndTime.Sub(end.StartTime).Round(time.Second))
		require.Equal(t, w.one("start two").SpanContext.SpanID(), end.Parent.SpanID())
		require.Equal(t, "completed", attr(&end, "durable.run.status"))
		require.Equal(t, "2", attr(&end, "durable.run.steps"))
	})
}

func TestSamplingIsDecidedOnceForARunAndItsChildren(t *testing.T) {
	kid := durable.Define("kid", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "play", func(context.Context) (int, error) { return 1, nil })
	})
	var inside trace.SpanContext
	parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return 0, err
		}
		if err := durable.Do(ctx, "look", func(ctx context.Context) error { inside = trace.SpanContextFromContext(ctx); return nil }); err != nil {
			return 0, err
		}
		return kid.Run(ctx, durable.AutoID, 0)
	})
	for name, first := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "not sampled": sdktrace.NeverSample()} {
		t.Run(name, func(t *testing.T) {
			inTraceWorld(t, func(t *testing.T, w *traceWorld) {
				w.boot(t, w.options(first, parent, kid))
				_, err := parent.Start(w.ctx(), "r", 0)
				require.NoError(t, err)
				w.reboot(t, w.options(sdktrace.AlwaysSample(), parent, kid)) // would sample everything
				pass(2 * time.Hour)
				require.Equal(t, "completed", string(w.row("r").Status))
				if name == "not sampled" {
					require.Empty(t, w.spans.GetSpans())
					require.True(t, inside.IsValid(), "the user's own spans find the decision")
					require.False(t, inside.IsSampled())
					return
				}
				require.Len(t, w.of("segment parent"), 2)
				require.Equal(t, w.of("segment parent")[0].SpanContext.TraceID(), w.one("attempt play").SpanContext.TraceID())
			})
		})
	}
}

func TestARunThatNobodyTracedAtItsStartHasLinkedTraces(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		w.boot(t, durable.Options{Workflows: []durable.Definition{twoSteps}})
		_, err := twoSteps.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, w.row("r").Trace)
		for _, e := range w.events("r") {
			require.NotContains(t, string(e.Data), "segment", "untraced runs cost nothing")
		}
		for range 2 {
			w.reboot(t, w.options(sdktrace.AlwaysSample(), twoSteps))
			pass(40 * time.Minute)
		}
		segments := w.of("segment two")
		require.Len(t, segments, 1, "a waiting run is claimed when it is due")
		w.reboot(t, w.options(sdktrace.AlwaysSample(), twoSteps))
		require.Equal(t, "completed", string(w.row("r").Status))
		require.Equal(t, segments[0].SpanContext.SpanID(), w.one("step two").Parent.SpanID())
		require.Equal(t, segments[0].SpanContext.SpanID(), w.one("end two").Parent.SpanID())
	})
}

func TestARunThatRecoveryMarksFailedIsSeenToEnd(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		var h hold
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) { return 0, durable.Do(ctx, "hold", h.body) })
		o := w.options(sdktrace.AlwaysSample(), wf)
		o.OnBoot = durable.FailOnBoot
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		w.reboot(t, o)
		end := w.one("end w")
		require.Equal(t, codes.Error, end.Status.Code)
		require.Equal(t, durable.CodeRestarted, attr(&end, "durable.code"))
		require.Equal(t, w.one("start w").SpanContext.SpanID(), end.Parent.SpanID())
		require.Len(t, w.log.find("INFO durable: run marked failed"), 1)
		require.Contains(t, w.log.find("INFO durable: run marked failed")[0], "trace_id="+end.SpanContext.TraceID().String())
	})
}

func TestAFencedWriteIsAWarningAndItsAttemptIsNotCounted(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		bodies := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "hold", func(context.Context) error {
				if bodies++; bodies == 1 {
					time.Sleep(2 * time.Minute) // past the lease, without a look at the context
				}
				return nil
			})
		})
		w.boot(t, w.options(sdktrace.AlwaysSample(), wf))
		_, err := wf.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		synctest.Wait()
		w.disk.tamperCalls(func(string, func() error) error { return errors.New("the process sleeps") })
		w.expire()
		w.boot(t, w.options(sdktrace.AlwaysSample(), wf))
		pass(5 * time.Minute)
		require.Equal(t, "completed", string(w.row("r").Status))
		lines := w.log.find("WARN durable: a write was fenced")
		require.NotEmpty(t, lines)
		require.Contains(t, lines[0], "run=r workflow=w trace_id=")
		outcomes := map[string]int{}
		for _, s := range w.of("attempt hold") {
			outcomes[attr(&s, "durable.outcome")]++
		}
		require.Equal(t, 1, outcomes["ok"], outcomes)
		require.Equal(t, 1, outcomes["unrecorded"]+outcomes["stopped"], outcomes)
	})
}

func TestWordsOfUsersAreInSpansAndLinesUnlessTheyAreOmitted(t *testing.T) {
	for _, verbatim := range []bool{false, true} {
		t.Run(fmt.Sprint(verbatim), func(t *testing.T) {
			inTraceWorld(t, func(t *testing.T, w *traceWorld) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					return durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 2, Initial: time.Second}, func(context.Context) (int, error) {
						return 0, fmt.Errorf("card\x1b[31m 4242: %w", context.DeadlineExceeded)
					})
				})
				o := w.options(sdktrace.AlwaysSample(), wf)
				o.OmitTexts = !verbatim
				w.boot(t, o)
				_, err := wf.Run(w.ctx(), "r", 0)
				require.Error(t, err)
				synctest.Wait()
				var status []string
				for _, s := range w.spans.GetSpans() {
					if s.Status.Code == codes.Error {
						status = append(status, s.Name+": "+s.Status.Description)
						require.Equal(t, "context.DeadlineExceeded", attr(&s, "error.type"))
					}
				}
				require.Len(t, status, 4, "two attempts, the step, the run")
				exhausted := w.log.find("WARN durable: step failed and is not tried again")
				require.Len(t, exhausted, 1)
				require.Contains(t, exhausted[0], "step=charge attempt=2")
				require.Contains(t, exhausted[0], "trace_id="+w.one("start w").SpanContext.TraceID().String())
				require.Len(t, w.log.find("DEBUG durable: attempt ended"), 1, "the other one")
				everything := fmt.Sprint(status, w.log)
				if verbatim {
					require.Contains(t, everything, `attempt charge: card\x1b[31m 4242`)
					require.Contains(t, exhausted[0], `error=card\x1b[31m 4242`)
				} else {
					require.NotContains(t, everything, "4242")
				}
				require.Contains(t, everything, "error_type=context.DeadlineExceeded")
			})
		})
	}
}

func TestAForkIsLinkedToWhatItWasForkedFrom(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		w.boot(t, w.options(sdktrace.AlwaysSample(), twoSteps))
		_, err := twoSteps.Start(w.ctx(), "r", 0)
		require.NoError(t, err)
		pass(2 * time.Hour)
		original := w.one("start two")
		_, err = operate.On(w.eng).Fork(w.ctx(), "r", operate.ForkOptions{ID: "copy"})
		require.NoError(t, err)
		pass(2 * time.Hour)
		starts := w.of("start two")
		require.Len(t, starts, 2)
		require.Equal(t, original.SpanContext.SpanID(), starts[1].Links[0].SpanContext.SpanID())
		require.Equal(t, "r", attr(&starts[1], "durable.forked.run.id"))
		require.NotEqual(t, original.SpanContext.TraceID(), starts[1].SpanContext.TraceID())
	})
}

func TestTheStateOfATraceTravelsWithTheRun(t *testing.T) {
	inTraceWorld(t, func(t *testing.T, w *traceWorld) {
		w.boot(t, w.options(sdktrace.ParentBased(sdktrace.NeverSample()), twoSteps))
		state, err := trace.ParseTraceState("vendor=x1,other=y")
		require.NoError(t, err)
		caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
		_, err = twoSteps.Start(trace.ContextWithRemoteSpanContext(w.ctx(), caller), "r", 0)
		require.NoError(t, err)
		w.reboot(t, w.options(sdktrace.ParentBased(sdktrace.NeverSample()), twoSteps))
		pass(2 * time.Hour)
		end := w.one("end two")
		require.Equal(t, caller.TraceID(), end.SpanContext.TraceID(), "the caller's trace goes on")
		require.Equal(t, "vendor=x1,other=y", end.SpanContext.TraceState().String())
	})
}

func TestAnUnknownTraceModeIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, err := durable.Open(context.Background(), w.data.Handle(), durable.Options{TraceMode: 7})
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}
