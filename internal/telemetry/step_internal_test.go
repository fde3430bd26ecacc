package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-dev/holdfast/store"
)

// The clock that says when a body has returned was read before its span began, and may be behind the one that begins it.
func TestTheSpanOfAnAttemptDoesNotEndBeforeItBegins(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")
	before := time.Now()
	st := &Step{scope: &Scope{run: &Run{tracing: &Tracing{Tracer: tracer}}}, name: "step a", call: "a", key: "a"}
	st.inner, st.span = tracer.Start(t.Context(), st.name)
	st.Attempt(t.Context(), 1)
	st.End(AttemptEnd{Number: 1, At: before.Add(-time.Second), Outcome: OutcomeOK}, 0, nil)
	ended := spans.Ended()
	require.Len(t, ended, 2)
	for _, span := range ended {
		require.False(t, span.EndTime().Before(span.StartTime()), span.Name())
	}
}

// The wall clock of the process that started the run was ahead of the one that ends it.
func TestTheSpanOfARunThatAnotherClockBeganDoesNotEndBeforeItBegins(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tc := &Tracing{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("")}
	ctx, around := tc.Tracer.Start(t.Context(), "around")
	began := time.Now().Add(time.Minute)
	tc.EndRunSpan(ctx, &store.Run{ID: "r", Workflow: "w", Trace: Format(around.SpanContext())}, &Start{Around: noParent, BeganAt: began.UnixNano()}, store.Completed, nil)
	ended := spans.Ended()
	require.Len(t, ended, 1)
	require.True(t, began.Equal(ended[0].StartTime()), "it begins with the span of the start")
	require.False(t, ended[0].EndTime().Before(ended[0].StartTime()))
}
