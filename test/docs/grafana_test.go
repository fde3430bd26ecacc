package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// An instrument is what the engine asks its meter for.
type instrument struct{ name, unit, kind string }

// series returns the names under which Prometheus has it, by the rules of the
// translation from OTLP: a point becomes an underscore, the unit s the suffix
// seconds, one in braces none; counters end in total, a histogram is three series.
func (i instrument) series() []string {
	name := strings.ReplaceAll(i.name, ".", "_")
	if i.unit == "s" {
		name += "_seconds"
	}
	switch i.kind {
	case "counter":
		return []string{name + "_total"}
	case "histogram":
		return []string{name + "_bucket", name + "_count", name + "_sum"}
	}
	return []string{name}
}

// inventory is a meter that writes down what it is asked for.
type inventory struct {
	noop.MeterProvider
	found []instrument
}

func (v *inventory) Meter(string, ...metric.MeterOption) metric.Meter { return meter{inventory: v} }

type meter struct {
	noop.Meter
	inventory *inventory
}

func (v meter) Int64Counter(name string, o ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	v.inventory.found = append(v.inventory.found, instrument{name, metric.NewInt64CounterConfig(o...).Unit(), "counter"})
	return v.Meter.Int64Counter(name)
}

func (v meter) Int64Histogram(name string, o ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	v.inventory.found = append(v.inventory.found, instrument{name, metric.NewInt64HistogramConfig(o...).Unit(), "histogram"})
	return v.Meter.Int64Histogram(name)
}

func (v meter) Float64Histogram(name string, o ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	v.inventory.found = append(v.inventory.found, instrument{name, metric.NewFloat64HistogramConfig(o...).Unit(), "histogram"})
	return v.Meter.Float64Histogram(name)
}

func (v meter) Int64ObservableGauge(name string, o ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	v.inventory.found = append(v.inventory.found, instrument{name, metric.NewInt64ObservableGaugeConfig(o...).Unit(), "gauge"})
	return v.Meter.Int64ObservableGauge(name)
}

func (v meter) Float64ObservableGauge(name string, o ...metric.Float64ObservableGaugeOption) (metric.Float64ObservableGauge, error) {
	v.inventory.found = append(v.inventory.found, instrument{name, metric.NewFloat64ObservableGaugeConfig(o...).Unit(), "gauge"})
	return v.Meter.Float64ObservableGauge(name)
}

// labelsExported runs workflows and returns the labels that metrics came with, by
// name of the instrument.
func labelsExported(t *testing.T) map[string][]string {
	reader := sdk.NewManualReader()
	labels := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		data, life := memory.Open(), 1
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			_, err := durable.Retry(ctx, "s", durable.Policy{MaxAttempts: 2}, func(ctx context.Context) (int, error) {
				if durable.Attempt(ctx).Number == 1 {
					return 0, errors.New("no")
				}
				return 1, nil
			})
			err = errors.Join(err, durable.Do(ctx, "cut off", func(ctx context.Context) error {
				if life == 1 {
					<-ctx.Done()
				}
				return ctx.Err()
			}))
			return 0, errors.Join(err, durable.Sleep(ctx, time.Minute))
		})
		open := func() *durable.Engine {
			eng, err := durable.Open(ctx, data.Handle(), durable.Options{
				Workflows: []durable.Definition{wf}, Schedules: []durable.Schedule{wf.Schedule("s", durable.Every(time.Minute), 0)},
				Grace: -1, Logger: slog.New(slog.DiscardHandler), MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader)),
				Queues: []durable.Queue{{Name: "q"}},
			})
			require.NoError(t, err)
			return eng
		}
		eng := open()
		_, err := wf.Start(durable.NewContext(ctx, eng), "r", 0)
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, eng.Close())
		reader, life = sdk.NewManualReader(), 2
		eng = open()
		_, err = durable.Ref[int, int]("elsewhere").Start(durable.NewContext(ctx, eng), "stuck", 0)
		require.NoError(t, err)
		h, err := data.Load(ctx, "stuck", store.Cursor{})
		require.NoError(t, err)
		interrupted, code := store.Interrupted, durable.CodeUndecodable
		require.NoError(t, data.Commit(ctx, []store.Change{{
			RunID: "stuck", Expect: store.Expect{Epoch: h.Run.Epoch}, Row: &store.RowPatch{Status: &interrupted, Code: &code},
		}})[0])
		_, err = durable.Ref[int, int]("elsewhere").Start(durable.NewContext(ctx, eng), "unserved", 0)
		require.NoError(t, err)
		_, err = wf.Start(durable.NewContext(ctx, eng), "r2", 0)
		require.NoError(t, err)
		_, err = eng.Recover(ctx)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		var all metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(ctx, &all))
		for _, scope := range all.ScopeMetrics {
			for _, m := range scope.Metrics {
				labels[m.Name] = append(labels[m.Name], labelsOf(m.Data)...)
			}
		}
		require.NoError(t, eng.Close())
	})
	return labels
}

func labelsOf(data metricdata.Aggregation) (labels []string) {
	b, err := json.Marshal(data)
	if err != nil {
		return nil
	}
	for _, m := range regexp.MustCompile(`"Key":"([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
		labels = append(labels, strings.ReplaceAll(m[1], ".", "_"))
	}
	return labels
}

// expressions returns every query of a dashboard.
func expressions(t *testing.T, dashboard string) (found []string) {
	var whole any
	require.NoError(t, json.Unmarshal([]byte(dashboard), &whole))
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if s, ok := inner.(string); ok && (k == "expr" || k == "query") {
					found = append(found, s)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(whole)
	return found
}

var durableName = regexp.MustCompile(`durable_[a-z_]+`)

// unknownIn returns what a query names that is not exported.
func unknownIn(expr string, series map[string]string, labels map[string][]string) (unknown []string) {
	var allowed, others []string
	for _, name := range durableName.FindAllString(expr, -1) {
		if i, ok := series[name]; ok {
			allowed = append(allowed, labels[i]...)
		} else {
			others = append(others, name)
		}
	}
	for _, name := range others {
		if !slices.Contains(allowed, name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

func TestTheDashboardNamesWhatIsExported(t *testing.T) {
	v := &inventory{}
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{MeterProvider: v, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, eng.Close())
	labels := labelsExported(t)
	series := map[string]string{}
	used := map[string]bool{}
	for _, i := range v.found {
		for _, name := range i.series() {
			series[name] = i.name
		}
	}
	require.Empty(t, unknownIn(`sum by (durable_run_status) (rate(durable_run_finished_total{durable_workflow_name="w"}[5m]))`, series, labels))
	require.Equal(t, []string{"durable_run_finished"}, unknownIn(`durable_run_finished`, series, labels), "the check can say no")
	require.Equal(t, []string{"durable_run_id"}, unknownIn(`durable_run_executing{durable_run_id="r"}`, series, labels))

	queries := expressions(t, read(t, "docs/grafana/holdfast.json"))
	_, alerts, found := strings.Cut(read(t, "docs/guides/observing.md"), "```promql\n")
	require.True(t, found)
	alerts, _, _ = strings.Cut(alerts, "```")
	queries = append(queries, strings.Split(strings.TrimSpace(alerts), "\n")...)
	require.Greater(t, len(queries), 20)
	for _, q := range queries {
		require.Empty(t, unknownIn(q, series, labels), q)
		for _, name := range durableName.FindAllString(q, -1) {
			used[series[name]] = true
		}
	}
	for _, i := range v.found {
		require.True(t, used[i.name], "no panel shows %s", i.name)
	}
}
