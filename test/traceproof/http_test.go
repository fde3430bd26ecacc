package traceproof_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestTheTraceAndTheBaggageOfACallerGoThroughTheAPI(t *testing.T) {
	before := otel.GetTextMapPropagator()
	defer otel.SetTextMapPropagator(before)
	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}))
	spans := tracetest.NewSpanRecorder()
	tracing := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	carried := make(chan string, 1)
	wf := durable.Define("order", func(ctx context.Context, in int) (int, error) {
		carried <- baggage.FromContext(ctx).Member("tenant").Value()
		return in, nil
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, TracerProvider: tracing})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	h := dashboard.Handler(eng, dashboard.Options{})
	server := httptest.NewServer(h)
	defer server.Close()
	c, err := client.New(server.URL, client.Options{})
	require.NoError(t, err)

	member, err := baggage.NewMember("tenant", "acme")
	require.NoError(t, err)
	bag, err := baggage.New(member)
	require.NoError(t, err)
	ctx, span := tracing.Tracer("shop").Start(baggage.ContextWithBaggage(t.Context(), bag), "checkout page")
	_, err = c.Start(ctx, "order", client.StartRequest{ID: "order-42", Input: json.RawMessage("7")})
	require.NoError(t, err)
	span.End()
	require.Equal(t, "acme", <-carried)
	for _, s := range spans.Ended() {
		if s.Name() == "start order" {
			require.Equal(t, span.SpanContext().TraceID(), s.SpanContext().TraceID())
			require.Equal(t, span.SpanContext().SpanID(), s.Parent().SpanID())
			return
		}
	}
	t.Fatal("the start was not traced")
}
