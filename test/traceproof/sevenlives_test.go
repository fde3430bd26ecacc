package traceproof_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/otlptest"
)

const lives = 7

// liveSeven is one of seven processes. Each continues the run "long" by one step,
// marks the "frail" run of the one before failed, and executes a "quick" run with a
// child.
func (o orders) liveSeven() error {
	ctx := context.Background()
	st, err := o.open()
	if err != nil {
		return err
	}
	self, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.instance.id", rand.Text())))
	if err != nil {
		return err
	}
	points, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(o.OTLP+"/v1/metrics"))
	if err != nil {
		return err
	}
	metering := sdkmetric.NewMeterProvider(sdkmetric.WithResource(self), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points, sdkmetric.WithInterval(time.Hour))))

	long := durable.Define("long", func(ctx context.Context, _ int) (int, error) {
		for i := range lives {
			if err := durable.Do(ctx, fmt.Sprint("s", i), func(context.Context) error {
				if i == o.Life && o.Life < lives-1 {
					select {} // until killed
				}
				return nil
			}); err != nil {
				return 0, err
			}
		}
		return lives, nil
	})
	frail := durable.Define("frail", func(ctx context.Context, _ int) (int, error) {
		return durable.Step(ctx, "hang", func(context.Context) (int, error) { select {} })
	}, durable.OnBoot(durable.FailOnBoot))
	kid := durable.Define("kid", func(ctx context.Context, in int) (int, error) {
		return durable.Step(ctx, "double", func(context.Context) (int, error) { return 2 * in, nil })
	})
	quick := durable.Define("quick", func(ctx context.Context, in int) (int, error) {
		if _, err := durable.Retry(ctx, "flaky", durable.Policy{MaxAttempts: 3, Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx).Number < 3 {
				return 0, errors.New("busy")
			}
			return 1, nil
		}); err != nil {
			return 0, err
		}
		return kid.Run(ctx, durable.AutoID, in)
	})
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{long, frail, kid, quick}, Lease: lease, MeterProvider: metering, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if err := metering.ForceFlush(ctx); err != nil { // the counters, at zero
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	run, err := long.Start(ctx, "long", 0)
	if err != nil {
		return err
	}
	if o.Life < lives-1 {
		if _, err := frail.Start(ctx, fmt.Sprint("frail-", o.Life), 0); err != nil {
			return err
		}
	}
	if _, err := quick.Run(ctx, fmt.Sprint("quick-", o.Life), o.Life); err != nil {
		return err
	}
	if o.Life == lives-1 {
		if _, err := run.Wait(ctx); err != nil {
			return err
		}
		return errors.Join(eng.Close(), metering.Shutdown(context.Background()), st.Close())
	}
	// Until the run is at the step that it is killed in.
	for {
		at, err := eng.Get(ctx, "long")
		if err != nil {
			return err
		}
		if at.Steps == o.Life {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := metering.ForceFlush(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

func TestCountersOfSevenLivesEqualTheHistory(t *testing.T) {
	backends(t, func(t *testing.T, o orders, r *otlptest.Receiver) {
		o.Seven = true
		for o.Life = range lives {
			p := start(t, o)
			if o.Life == lives-1 {
				require.NoError(t, p.Wait())
				break
			}
			p.await(t, "ready")
			p.kill(t)
		}
		increase, instances := increases(t, r.Points())
		require.Len(t, instances, lives, "each process has series of its own")
		for name, want := range countsOf(t, o) {
			require.InDelta(t, want, increase[name], 0, name)
		}
		// Life n, from 0, is killed in step n, so the next one reads n steps.
		require.InDelta(t, 0+1+2+3+4+5, increase["durable.replay.steps durable.workflow.name=long"], 0)
		require.InDelta(t, lives-1, increase["durable.run.recovered durable.workflow.name=long"], 0)
	})
}

// increases returns what a backend computes: by how much each counter grew after
// its first value, in all processes together. Every series must begin at zero.
func increases(t *testing.T, points []otlptest.Point) (grown map[string]float64, instances map[any]bool) {
	type series struct {
		instance any
		name     string
	}
	first, last := map[series]float64{}, map[series]float64{}
	instances = map[any]bool{}
	for _, p := range points {
		instance := p.Resource["service.instance.id"]
		instances[instance] = true
		if p.Kind != "sum" {
			continue
		}
		s := series{instance, p.Metric + " " + p.Attributes.String()}
		if _, known := first[s]; !known {
			require.Zero(t, p.Value, "%s begins at zero", s.name)
			first[s] = p.Value
		}
		require.GreaterOrEqual(t, p.Value, last[s], "%s never falls", s.name)
		last[s] = p.Value
	}
	grown = map[string]float64{}
	for s, v := range last {
		grown[s.name] += v - first[s]
	}
	return grown, instances
}

// countsOf is what the counters must have come to, by the histories of all runs.
func countsOf(t *testing.T, o orders) map[string]float64 {
	st, err := o.open()
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	page, err := st.List(t.Context(), store.Filter{Limit: 100})
	require.NoError(t, err)
	require.Len(t, page.Runs, 1+lives+lives+lives-1)
	want := map[string]float64{}
	for i := range page.Runs {
		row := &page.Runs[i]
		want["durable.run.started durable.workflow.name="+row.Workflow]++
		h, err := st.Load(t.Context(), row.ID, store.Cursor{})
		require.NoError(t, err)
		for e, err := range h.Events {
			require.NoError(t, err)
			switch e.Type {
			case store.WorkflowCompleted:
				want["durable.run.finished durable.run.status=completed durable.workflow.name="+row.Workflow]++
			case store.WorkflowFailed:
				want["durable.run.finished durable.run.status=failed durable.workflow.name="+row.Workflow]++
			case store.AttemptFailed:
				want["durable.step.retries durable.workflow.name="+row.Workflow]++
			}
		}
	}
	require.Equal(t, float64(lives-1), want["durable.run.finished durable.run.status=failed durable.workflow.name=frail"])
	return want
}
