package durable

import (
	"context"
	crand "crypto/rand"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/telemetry"
)

// TraceMode says how the spans that several processes make of one run belong
// together. In every mode a run that was not sampled when it was started is not
// traced later.
type TraceMode int

// The modes.
const (
	// TraceParent makes one trace of a run: each segment is a child of the span
	// of the start. It is the default.
	TraceParent TraceMode = iota
	// TraceLink makes a trace of each segment, linked to the span of the start
	// and to the previous segment. It is for runs that last longer than a backend
	// keeps a trace open, or a tail sampler waits for its end.
	TraceLink
)

// SpanIDs makes the ids of traces and spans, for an SDK of OpenTelemetry whose
// processes may be killed:
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(durable.SpanIDs{}), ...)
//
// A process that is killed loses the spans that it has not exported, and with the
// span of a run's start its trace loses the root. With SpanIDs the process in
// which such a run ends exports that span again, with the same ids, so that the
// span is there; if both have arrived, a backend that identifies spans by their
// ids has one. Without SpanIDs nothing is exported again, because a span with
// other ids would be another span.
//
// The zero value is ready for use. SpanIDs is safe for concurrent use if Base is.
type SpanIDs struct {
	// Base makes the ids of all other spans, for backends with ids of a special
	// form; nil: they are random.
	Base interface {
		NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID)
		NewSpanID(ctx context.Context, traceID trace.TraceID) trace.SpanID
	}
}

// NewIDs returns the ids of a span without a parent; the SDK calls it.
func (g SpanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if again, ok := telemetry.Again(ctx); ok {
		return again.TraceID(), again.SpanID()
	}
	if g.Base != nil {
		return g.Base.NewIDs(ctx)
	}
	var id trace.TraceID
	for !id.IsValid() {
		_, _ = crand.Read(id[:]) // never fails, according to its documentation
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID returns the id of a span in a trace; the SDK calls it.
func (g SpanIDs) NewSpanID(ctx context.Context, traceID trace.TraceID) trace.SpanID {
	if again, ok := telemetry.Again(ctx); ok && again.TraceID() == traceID {
		return again.SpanID()
	}
	if g.Base != nil {
		return g.Base.NewSpanID(ctx, traceID)
	}
	var id trace.SpanID
	for !id.IsValid() {
		_, _ = crand.Read(id[:])
	}
	return id
}
