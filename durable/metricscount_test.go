package durable_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// metered returns options under which what is measured can be read.
func metered(defs ...durable.Definition) (durable.Options, *sdk.ManualReader) {
	reader := sdk.NewManualReader()
	return durable.Options{Workflows: defs, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))}, reader
}

func TestEveryCounterIsZeroFromOpenOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		o, reader := metered(durable.Define("order", func(context.Context, int) (int, error) { return 0, nil }))
		w.open(t, o)
		v := collected(t, reader)
		for _, name := range []string{
			"durable.run.started{run} durable.workflow.name=order",
			"durable.run.recovered{run} durable.workflow.name=order",
			"durable.run.finished{run} durable.run.status=completed,durable.workflow.name=order",
			"durable.run.finished{run} durable.run.status=failed,durable.workflow.name=order",
			"durable.run.finished{run} durable.run.status=cancelled,durable.workflow.name=order",
			"durable.step.retries{retry} durable.workflow.name=order",
			"durable.replay.steps{step} durable.workflow.name=order",
			"durable.write.fenced{write} ",
			"durable.lease.lost{lease} ",
			"durable.runs{run} durable.run.status=waiting,durable.workflow.name=order",
			"durable.run.stuck{run} durable.code=definition_changed",
		} {
			require.Contains(t, v, name)
			require.Zero(t, v[name], name)
		}
	})
}

func TestRunsThatEndWithoutAnExecutionAreCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "hang", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		})
		o, _ := metered(wf)
		w.boot(t, o)
		_, err := wf.Start(w.ctx(), "ended by the boot", 1)
		require.NoError(t, err)
		_, err = durable.Ref[int, int]("elsewhere").Start(w.ctx(), "cancelled before it began", 0)
		require.NoError(t, err)
		pass(time.Second)
		w.crash()
		w.expire()
		o, reader := metered(wf)
		o.OnBoot = durable.FailOnBoot
		require.Equal(t, []string{"ended by the boot"}, w.boot(t, o).Failed)
		require.NoError(t, w.eng.Cancel(w.ctx(), "cancelled before it began", "not wanted"))
		pass(time.Second)
		v := collected(t, reader)
		require.Equal(t, 1.0, v["durable.run.finished{run} durable.run.status=failed,durable.workflow.name=order"])
		require.Equal(t, 1.0, v["durable.run.duration"+"s durable.run.status=failed,durable.workflow.name=order"])
		require.Equal(t, 1.0, v["durable.run.finished{run} durable.run.status=cancelled,durable.workflow.name=elsewhere"])
	})
}

func TestAsManyRunsAreCountedAsStartedAsFinish(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		child := durable.Define("child", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "double", func(context.Context) (int, error) { return 2 * n, nil })
		})
		parent := durable.Define("parent", func(ctx context.Context, n int) (int, error) {
			for i := range n {
				if _, err := child.Run(ctx, durable.AutoID, i); err != nil {
					return 0, err
				}
			}
			return n, nil
		})
		o, reader := metered(parent, child)
		w.boot(t, o)
		_, err := parent.Run(w.ctx(), "p", 3)
		require.NoError(t, err)
		_, err = operate.On(w.eng).Fork(w.ctx(), "p/child", operate.ForkOptions{ID: durable.AutoID})
		require.NoError(t, err)
		_, err = child.StartAll(w.ctx(), func(yield func(string, int) bool) { _ = yield("a", 1) && yield("b", 2) })
		require.NoError(t, err)
		pass(time.Minute)
		v := collected(t, reader)
		require.Equal(t, 1.0, v["durable.run.started{run} durable.workflow.name=parent"])
		require.Equal(t, 6.0, v["durable.run.started{run} durable.workflow.name=child"], "three children, a fork, two in bulk")
		for _, name := range []string{"parent", "child"} {
			require.Equal(t, v["durable.run.started{run} durable.workflow.name="+name], v["durable.run.finished{run} durable.run.status=completed,durable.workflow.name="+name], name)
		}
		started := 0
		for _, line := range w.log.find("") {
			if strings.Contains(line, "run started") && strings.Contains(line, "workflow=child") && strings.Contains(line, "parent=p") {
				started++
			}
		}
		require.Equal(t, 3, started, "the log says of children that they were started")
	})
}

func TestExemplarsLeadToTheSpanOfTheAttemptAndOfTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, _ int) (int, error) {
			return durable.Step(ctx, "charge", func(context.Context) (int, error) { return 1, nil })
		})
		o, reader := metered(wf)
		spans := tracetest.NewSpanRecorder()
		o.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		w.boot(t, o)
		_, err := wf.Run(w.ctx(), "o", 1)
		require.NoError(t, err)
		pass(time.Second)
		named := map[string]string{}
		for _, s := range spans.Ended() {
			id := s.SpanContext().SpanID()
			named[string(id[:])] = s.Name()
		}
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(context.Background(), &all))
		led := map[string]string{}
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
					for _, p := range h.DataPoints {
						for _, x := range p.Exemplars {
							led[m.Name] = named[string(x.SpanID)]
						}
					}
				}
			}
		}
		require.Equal(t, map[string]string{
			"durable.attempt.duration": "attempt charge", "durable.step.duration": "attempt charge", "durable.run.duration": "segment order",
		}, led)
	})
}

// tallying notes by which filters a store was asked to count.
type tallying struct {
	store.Store
	mu      sync.Mutex
	filters []store.Filter
}

func (c *tallying) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	c.mu.Lock()
	c.filters = append(c.filters, f)
	c.mu.Unlock()
	return c.Store.Count(ctx, f, by)
}

func TestACollectionCountsNoRunsThatHaveEnded(t *testing.T) {
	var defs []durable.Definition
	for _, name := range strings.Fields("a b c d e f g h i j k l m n o p") {
		defs = append(defs, durable.Define(name, func(context.Context, int) (int, error) { return 0, errors.New("no") }))
	}
	o, reader := metered(defs...)
	st := &tallying{Store: memory.Open()}
	eng, err := durable.Open(t.Context(), st, o)
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	st.mu.Lock()
	st.filters = nil
	st.mu.Unlock()
	collected(t, reader)
	st.mu.Lock()
	defer st.mu.Unlock()
	require.NotEmpty(t, st.filters)
	require.LessOrEqual(t, len(st.filters), 8, "however many workflows are served")
	for _, f := range st.filters {
		if slices.Equal(f.Codes, []string{durable.CodeQuarantined}) {
			continue // few, and not counted each time; see below
		}
		require.NotEmpty(t, f.Statuses)
		for _, s := range f.Statuses {
			require.False(t, s.Terminal(), "%s runs are counted", s)
		}
	}
}

func TestDurationsOfRunsHaveBucketsForDays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, d time.Duration) (int, error) { return 0, durable.Sleep(ctx, d) })
		o, reader := metered(wf)
		o.Lease = rareBeats
		w.boot(t, o)
		for id, d := range map[string]time.Duration{"hour": 50 * time.Minute, "day": 20 * time.Hour, "week": 6 * 24 * time.Hour, "month": 29 * 24 * time.Hour} {
			_, err := wf.Start(w.ctx(), id, d)
			require.NoError(t, err)
		}
		pass(30 * 24 * time.Hour)
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(context.Background(), &all))
		filled := 0
		for _, m := range all.ScopeMetrics[0].Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "durable.run.duration" {
				for _, n := range h.DataPoints[0].BucketCounts {
					if n > 0 {
						filled++
					}
				}
				require.Zero(t, h.DataPoints[0].BucketCounts[len(h.DataPoints[0].BucketCounts)-1], "none is beyond the last bound")
			}
		}
		require.Equal(t, 4, filled, "each has a bucket of its own")
	})
}

func TestRunsInQuarantineAreInAGauge(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var freed atomic.Bool
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, "copy", func(ctx context.Context) error {
				if freed.Load() {
					return nil
				}
				<-ctx.Done() // killed from outside each time, before it is done
				return context.Cause(ctx)
			})
		})
		const name = "durable.run.stuck{run} durable.code=quarantined"
		o, reader := metered(wf)
		w.open(t, o)
		require.Contains(t, collected(t, reader), name)
		start(t, w, wf, "r", 0)
		for range 10 {
			pass(time.Minute)
			o, reader = metered(wf)
			if rep := w.reboot(t, o); len(rep.Quarantine) > 0 {
				break
			}
		}
		require.Equal(t, durable.CodeQuarantined, w.row("r").Code)
		require.Equal(t, 1.0, collected(t, reader)[name])
		freed.Store(true)
		require.NoError(t, resume(w.eng, w.ctx(), "r"))
		_, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Zero(t, collected(t, reader)[name], "an operator has decided")
	})
}

// slowTally takes a second to count runs in quarantine, as a store does that keeps
// many failed runs.
type slowTally struct {
	store.Store
	asked int
}

func (s *slowTally) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	if slices.Contains(f.Codes, durable.CodeQuarantined) {
		s.asked++
		time.Sleep(time.Second)
	}
	return s.Store.Count(ctx, f, by)
}

// What a collection costs does not grow with the number of failed runs that are
// kept: a store that is slow to count them is asked the less often.
func TestRunsInQuarantineAreCountedInAHundredthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, reader := metered(durable.Define("w", func(context.Context, int) (int, error) { return 0, nil }))
		st := &slowTally{Store: memory.Open()}
		eng, err := durable.Open(t.Context(), st, o)
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		st.asked = 0
		for range 500 {
			collected(t, reader)
			time.Sleep(time.Second)
		}
		require.InDelta(t, 5, st.asked, 1)
	})
}
