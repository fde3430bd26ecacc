package durable_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// collected are the values of a collection: "name{unit} attr=value": the sum of
// a counter, the last value of a gauge, the number of values of a histogram.
func collected(t *testing.T, reader *sdk.ManualReader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	page, err := os.ReadFile("../docs/telemetry.md")
	require.NoError(t, err)
	values := map[string]float64{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, "github.com/holdfast-dev/holdfast/durable", scope.Scope.Name)
		for _, m := range scope.Metrics {
			require.NotEmpty(t, m.Description, m.Name)
			require.Contains(t, string(page), fmt.Sprintf("| `%s` | `%s` |", m.Name, m.Unit), "docs/telemetry.md lists it")
			name := m.Name + m.Unit
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					values[name+" "+p.Attributes.Encoded(attributesAsText{})] += float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					values[name+" "+p.Attributes.Encoded(attributesAsText{})] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					values[name+" "+p.Attributes.Encoded(attributesAsText{})] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					values[name+" "+p.Attributes.Encoded(attributesAsText{})] = float64(p.Count)
					values["sum of "+name+" "+p.Attributes.Encoded(attributesAsText{})] = p.Sum
				}
			case metricdata.Histogram[int64]:
				for _, p := range d.DataPoints {
					values[name+" "+p.Attributes.Encoded(attributesAsText{})] = float64(p.Count)
				}
			}
		}
	}
	return values
}

func TestMetricsSayWhatHappened(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := durable.Define("order", func(ctx context.Context, fails int) (int, error) {
			_, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 4, Initial: time.Second}, func(ctx context.Context) (int, error) {
				time.Sleep(2 * time.Second)
				if durable.Attempt(ctx).Number <= fails {
					return 0, errors.New("no")
				}
				return 1, nil
			})
			if err != nil {
				return 0, durable.Permanent(err)
			}
			return 0, durable.Sleep(ctx, time.Hour)
		})
		reader := sdk.NewManualReader()
		o := durable.Options{Workflows: []durable.Definition{wf}, MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))}
		w.boot(t, o)
		for id, fails := range map[string]int{"good": 2, "bad": 9} {
			_, err := wf.Start(w.ctx(), id, fails)
			require.NoError(t, err)
		}
		_, err := durable.Ref[int, int]("elsewhere").Start(w.ctx(), "pending", 0)
		require.NoError(t, err)
		pass(time.Minute)
		v := collected(t, reader)
		require.Equal(t, 2.0, v["durable.run.started{run} durable.workflow.name=order"])
		require.Equal(t, 1.0, v["durable.run.finished{run} durable.run.status=failed,durable.workflow.name=order"])
		require.Equal(t, 5.0, v["durable.step.retries{retry} durable.workflow.name=order"], "two of the good one, three of the bad one")
		require.Equal(t, 6.0, v["durable.attempt.durations durable.outcome=failed,durable.workflow.name=order"])
		require.Equal(t, 1.0, v["durable.attempt.durations durable.outcome=ok,durable.workflow.name=order"])
		require.InDelta(t, 12, v["sum of durable.attempt.durations durable.outcome=failed,durable.workflow.name=order"], 0.1)
		require.Equal(t, 1.0, v["durable.step.durations durable.outcome=ok,durable.workflow.name=order"])
		require.Equal(t, 1.0, v["durable.step.durations durable.outcome=failed,durable.workflow.name=order"])
		require.InDelta(t, 9, v["sum of durable.step.durations durable.outcome=ok,durable.workflow.name=order"], 0.7, "three attempts of 2 s, and pauses of 1 s and 2 s less jitter")
		require.Equal(t, 1.0, v["durable.runs{run} durable.run.status=waiting,durable.workflow.name=order"])
		require.NotContains(t, v, "durable.runs{run} durable.run.status=failed,durable.workflow.name=order", "what has ended may be kept by the million")
		require.Equal(t, 1.0, v["durable.run.unloaded{run} durable.executor.id="+w.eng.ID()])
		require.Equal(t, 0.0, v["durable.run.executing{run} durable.executor.id="+w.eng.ID()])
		require.Equal(t, 1.0, v["durable.queue.depth{run} "])
		require.InDelta(t, 60, v["durable.queue.ages "], 1)
		require.Greater(t, v["durable.commit.durations durable.result=ok"], 5.0)
		require.Greater(t, v["durable.commit.size{change} "], 5.0)

		w.crash()
		w.expire()
		reader2 := sdk.NewManualReader()
		o.MeterProvider = sdk.NewMeterProvider(sdk.WithReader(reader2))
		w.boot(t, o)
		pass(2 * time.Hour)
		require.Equal(t, store.Completed, w.row("good").Status)
		v = collected(t, reader2)
		require.Equal(t, 1.0, v["durable.run.finished{run} durable.run.status=completed,durable.workflow.name=order"])
		require.InDelta(t, 3600, v["sum of durable.run.durations durable.run.status=completed,durable.workflow.name=order"], 60)
		require.Equal(t, 1.0, v["durable.replay.steps{step} durable.workflow.name=order"])
		require.Equal(t, 1.0, v["durable.timer.lags durable.workflow.name=order"])
		require.Less(t, v["sum of durable.timer.lags durable.workflow.name=order"], 1.0)
		synctest.Wait()
	})
}

// attributesAsText encodes a set of attributes as "key=value,key=value".
type attributesAsText struct{}

var attributesID = attribute.NewEncoderID()

func (attributesAsText) ID() attribute.EncoderID { return attributesID }

func (attributesAsText) Encode(i attribute.Iterator) string {
	var parts []string
	for i.Next() {
		a := i.Attribute()
		parts = append(parts, string(a.Key)+"="+a.Value.String())
	}
	return strings.Join(parts, ",")
}
