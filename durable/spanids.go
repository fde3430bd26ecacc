package durable

import (
	"context"
	crand "crypto/rand"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/store"
)

// SpanIDs makes the ids of traces and spans, for an SDK of OpenTelemetry whose
// processes may be killed:
//
//	sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(durable.SpanIDs{}), ...)
//
// A process that is killed loses the spans that it has not exported, and with the
// span of a run's start its trace loses the root. With SpanIDs the process in
// which such a run ends exports that span again, under the ids it had: it is
// there, and where both have arrived a backend that knows spans by their ids has
// one. Without it nothing is exported again, since a span with other ids would
// be another one.
//
// The zero value is ready for use, and is safe for concurrent use as far as Base
// is.
type SpanIDs struct {
	// Base makes the ids of all other spans, for backends with ids of a special
	// form; nil: they are random.
	Base interface {
		NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID)
		NewSpanID(ctx context.Context, traceID trace.TraceID) trace.SpanID
	}
}

// againKey is where a context has the ids of the span that is begun again in it.
type againKey struct{}

// NewIDs returns the ids of a span without a parent; the SDK calls it.
func (g SpanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if again, ok := ctx.Value(againKey{}).(trace.SpanContext); ok {
		return again.TraceID(), again.SpanID()
	}
	if g.Base != nil {
		return g.Base.NewIDs(ctx)
	}
	var id trace.TraceID
	for !id.IsValid() {
		_, _ = crand.Read(id[:]) // never fails, says its documentation
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID returns the id of a span in a trace; the SDK calls it.
func (g SpanIDs) NewSpanID(ctx context.Context, traceID trace.TraceID) trace.SpanID {
	if again, ok := ctx.Value(againKey{}).(trace.SpanContext); ok && again.TraceID() == traceID {
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

// idsKept is whether the SDK keeps ids, once that was asked.
type idsKept struct {
	once sync.Once
	ids  bool
}

// noParent is what eventData.Around says of a start that nothing is around.
const noParent = "none"

// aroundStart returns what the history keeps of the surroundings of a start, so
// that its span can be made again: nothing if there is no such span.
func aroundStart(ctx context.Context, span trace.Span) string {
	if !span.IsRecording() {
		return ""
	}
	if around := trace.SpanContextFromContext(ctx); around.IsValid() {
		return formatTrace(around)
	}
	return noParent
}

// startAgain exports the span of r's start once more, if more than one process
// has had r: the one that started it may have been killed before it could. It
// comes before the end of the run is told, and so does a parent before its child.
func (r *run) startAgain() {
	if r.past == nil || r.row.Resumes == 0 && r.past.segmentBefore.trace == "" {
		return
	}
	r.eng.startAgain(&r.row, r.around, r.linked, r.past.created.At)
}

// orphanStartAgain is startAgain for a run that recovery has marked failed, of
// which only the row is known here.
func (e *Engine) orphanStartAgain(ctx context.Context, row *store.Run) {
	start := parseTrace(row.Trace)
	if !start.IsSampled() || !e.keepsIDs(start) {
		return
	}
	h, err := e.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return // a trace is not worth the recovery of the others
	}
	for first, err := range h.Events {
		if d, bad := dataOf(&first); err == nil && bad == nil {
			e.startAgain(row, d.Around, d.Linked, first.At)
		}
		return
	}
}

// keepsIDs reports whether the SDK makes spans with the ids it is told (SpanIDs).
// A span is begun for that, the first time it is asked, and not ended.
func (e *Engine) keepsIDs(start trace.SpanContext) bool {
	e.keeps.once.Do(func() {
		_, span := e.tracer.Start(context.WithValue(context.Background(), againKey{}, start), "start")
		e.keeps.ids = span.SpanContext().SpanID() == start.SpanID()
	})
	return e.keeps.ids
}

// startAgain begins and ends the span of a run's start, if its ids can be kept;
// around and linked are what its creation says of its surroundings, and created is
// when it was recorded.
func (e *Engine) startAgain(row *store.Run, around, linked string, created store.Time) {
	start := parseTrace(row.Trace)
	if around == "" || !start.IsSampled() {
		return
	}
	ctx := context.Background()
	if around != noParent {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parseTrace(around))
	}
	born := row.CreatedAt
	_, span := e.tracer.Start(context.WithValue(ctx, againKey{}, start), "start "+row.Workflow,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(e.localTime(born)))
	if sc := span.SpanContext(); sc.SpanID() != start.SpanID() || sc.TraceID() != start.TraceID() || !span.IsRecording() {
		return // nobody keeps the ids: what is not ended is not exported
	}
	describeStart(span, row, row.InitialVersion)
	if from := parseTrace(linked); from.IsValid() {
		span.AddLink(linkTo(from, linkForked))
	}
	if row.Generation == 0 {
		born = max(born, created)
	}
	span.End(trace.WithTimestamp(e.localTime(born)))
}

// describeStart says of which run, and of what version of it, span is the start.
func describeStart(span trace.Span, row *store.Run, version string) {
	span.SetAttributes(attrRun.String(row.ID), attrWorkflow.String(row.Workflow), attrVersion.String(version))
	if row.Parent != "" {
		span.SetAttributes(attrParentRun.String(row.Parent), attrKey.String(row.ParentKey))
	}
	if row.ForkedFrom != "" {
		span.SetAttributes(attrForkedFrom.String(row.ForkedFrom))
	}
}
