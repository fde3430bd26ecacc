package otlptest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/test/otlptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func receiver(t *testing.T) *otlptest.Receiver {
	r, err := otlptest.Listen("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func TestTheReceiverKeepsWhatARealExporterSends(t *testing.T) {
	for name, compression := range map[string]otlptracehttp.Compression{"plain": otlptracehttp.NoCompression, "gzip": otlptracehttp.GzipCompression} {
		t.Run(name, func(t *testing.T) {
			r := receiver(t)
			ctx := context.Background()
			exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(r.URL()+"/v1/traces"), otlptracehttp.WithCompression(compression))
			require.NoError(t, err)
			p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exp))
			tracer := p.Tracer("scope")
			began := time.Now()
			outer, root := tracer.Start(ctx, "root", trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(began))
			root.End(trace.WithTimestamp(began.Add(time.Second)))
			_, below := tracer.Start(outer, "below", trace.WithAttributes(attribute.Int("n", 3), attribute.StringSlice("list", []string{"a"})),
				trace.WithLinks(trace.Link{SpanContext: root.SpanContext()}))
			below.AddEvent("happened", trace.WithAttributes(attribute.Bool("yes", true)))
			below.SetStatus(codes.Error, "bad")
			below.End()
			require.NoError(t, p.Shutdown(ctx))
			require.NoError(t, r.Wait(ctx, func() bool { return len(r.Spans()) == 2 }))

			s := r.Spans()
			require.Equal(t, "root", s[0].Name)
			require.Equal(t, "producer", s[0].Kind)
			require.Equal(t, time.Second, s[0].Took())
			require.Empty(t, s[0].Parent)
			require.Equal(t, "scope", s[0].Scope)
			require.Equal(t, s[0].ID, s[1].Parent)
			require.Equal(t, otlptest.Attributes{"n": int64(3), "list": []any{"a"}}, s[1].Attributes)
			require.True(t, s[1].Failed)
			require.Equal(t, "bad", s[1].Status)
			require.Equal(t, "happened", s[1].Events[0].Name)
			require.Equal(t, true, s[1].Events[0].Attributes["yes"])
			require.Equal(t, s[0].ID, s[1].Links[0].ID)
			require.NotEmpty(t, s[1].Resource["service.name"])
			require.Len(t, r.Bodies(), 2)
			require.Contains(t, string(r.Bodies()[1]), "happened", "bodies are kept uncompressed")
		})
	}
}

func TestTheReceiverKeepsMetricsWithUnitAndValue(t *testing.T) {
	r := receiver(t)
	ctx := context.Background()
	exp, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(r.URL()+"/v1/metrics"))
	require.NoError(t, err)
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exp, sdkmetric.WithInterval(time.Hour))))
	meter := p.Meter("scope")
	c, err := meter.Int64Counter("runs", metric.WithUnit("{run}"))
	require.NoError(t, err)
	c.Add(ctx, 2, metric.WithAttributes(attribute.String("k", "v")))
	h, err := meter.Float64Histogram("took", metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(1, 2))
	require.NoError(t, err)
	h.Record(ctx, 1.5)
	h.Record(ctx, 3)
	require.NoError(t, p.Shutdown(ctx))

	points := map[string]otlptest.Point{}
	for _, p := range r.Points() {
		points[p.Metric] = p
	}
	require.Equal(t, "{run}", points["runs"].Unit)
	require.InDelta(t, 2, points["runs"].Value, 0)
	require.True(t, points["runs"].Monotonic)
	require.Equal(t, "k=v", points["runs"].Attributes.String())
	require.Equal(t, "histogram", points["took"].Kind)
	require.EqualValues(t, 2, points["took"].Count)
	require.InDelta(t, 4.5, points["took"].Value, 0)
	require.Equal(t, []uint64{0, 1, 1}, points["took"].Buckets)
}

func TestTheReceiverRefusesWhatItCannotRead(t *testing.T) {
	r := receiver(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, c := range map[string]struct {
		typ, enc, body string
		status         int
	}{
		"json":    {"application/json", "", "{}", http.StatusUnsupportedMediaType},
		"garbage": {"application/x-protobuf", "", "\xff\xff", http.StatusBadRequest},
		"gzip":    {"application/x-protobuf", "gzip", "no", http.StatusBadRequest},
		"br":      {"application/x-protobuf", "br", "no", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := http.NewRequest(http.MethodPost, r.URL()+"/v1/traces", strings.NewReader(c.body))
			require.NoError(t, err)
			q.Header.Set("Content-Type", c.typ)
			if c.enc != "" {
				q.Header.Set("Content-Encoding", c.enc)
			}
			a, err := client.Do(q)
			require.NoError(t, err)
			require.NoError(t, a.Body.Close())
			require.Equal(t, c.status, a.StatusCode)
			require.Empty(t, r.Spans())
		})
	}
}

func TestWaitGivesUpWithItsContext(t *testing.T) {
	r := receiver(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, r.Wait(ctx, func() bool { return false }), context.Canceled)
}
