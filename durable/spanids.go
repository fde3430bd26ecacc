package durable

import (
	"context"
	crand "crypto/rand"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
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

// startTrace is what the history keeps of the span of a start, so that it can be
// made again as it was. It is zero if there is no such span.
type startTrace struct {
	Around  string // trace context around it
	BeganAt int64  // by the clock of the process that made it, in nanoseconds since 1970
	Linked  string // of a fork: trace context of the start it is linked to
}

// startTraceOf is what d, of an event that begins a history, says of the start.
func startTraceOf(d *history.Data) startTrace {
	return startTrace{Around: d.Around, BeganAt: d.BeganAt, Linked: d.Linked}
}

// keepIn puts s into d, of an event that begins a history.
func (s startTrace) keepIn(d *history.Data) {
	d.Around, d.BeganAt, d.Linked = s.Around, s.BeganAt, s.Linked
}

// noParent is what history.Data.Around says of a start that nothing is around.
const noParent = "none"

// traceOfStart describes a span of a start that began at that time in ctx.
func traceOfStart(ctx context.Context, span trace.Span, began time.Time) startTrace {
	if !span.IsRecording() {
		return startTrace{}
	}
	s := startTrace{Around: noParent, BeganAt: began.UnixNano()}
	if around := trace.SpanContextFromContext(ctx); around.IsValid() {
		s.Around = formatTrace(around)
	}
	return s
}

// began returns when the span of row's start began, or a time that is not before
// that: what hangs below it must not begin earlier.
func (s *startTrace) began(e *Engine, row *store.Run) time.Time {
	if s.Around != "" && s.BeganAt != 0 {
		return time.Unix(0, s.BeganAt)
	}
	// CreatedAt is cut to the microsecond.
	at, now := e.tracing.localTime(row.CreatedAt).Add(time.Microsecond), time.Now()
	if at.After(now) {
		return now
	}
	return at
}

// startAgain exports the span of r's start once more, if more than one process
// has had r: the one that started it may have been killed before it could. It
// comes before the end of the run is told, and so does a parent before its child.
func (sp *runSpans) startAgain() {
	r := sp.run
	if r.past == nil || r.row.Resumes == 0 && r.past.SegmentBefore.Trace == "" {
		return
	}
	r.eng.tracing.startAgain(&r.row, &r.origin.trace, r.past.Created.At)
}

// orphanStartAgain is startAgain for a run that recovery has marked failed, of
// which only the row is known here. It returns what is known of that start.
func (tc *tracing) orphanStartAgain(ctx context.Context, row *store.Run) (s startTrace) {
	start := parseTrace(row.Trace)
	if !start.IsSampled() || !tc.keepsIDs(start) {
		return s
	}
	h, err := tc.eng.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return s // a trace is not worth the recovery of the others
	}
	for first, err := range h.Events {
		if d, bad := history.DataOf(&first); err == nil && bad == nil {
			s = startTraceOf(&d)
			tc.startAgain(row, &s, first.At)
		}
		break
	}
	return s
}

// keepsIDs reports whether the SDK makes spans with the ids it is told (SpanIDs).
// A span is begun for that, the first time it is asked, and not ended.
func (tc *tracing) keepsIDs(start trace.SpanContext) bool {
	tc.keeps.once.Do(func() {
		_, span := tc.tracer.Start(context.WithValue(context.Background(), againKey{}, start), "start")
		tc.keeps.ids = span.SpanContext().SpanID() == start.SpanID()
	})
	return tc.keeps.ids
}

// startAgain begins and ends the span of a run's start, if its ids can be kept; s is
// what its creation says of it, and created is when that was recorded.
func (tc *tracing) startAgain(row *store.Run, s *startTrace, created store.Time) {
	start := parseTrace(row.Trace)
	if s.Around == "" || !start.IsSampled() {
		return
	}
	ctx := context.Background()
	if s.Around != noParent {
		ctx = trace.ContextWithRemoteSpanContext(ctx, parseTrace(s.Around))
	}
	began := s.began(tc.eng, row)
	_, span := tc.tracer.Start(context.WithValue(ctx, againKey{}, start), "start "+row.Workflow,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(began))
	if sc := span.SpanContext(); sc.SpanID() != start.SpanID() || sc.TraceID() != start.TraceID() || !span.IsRecording() {
		return // nobody keeps the ids: what is not ended is not exported
	}
	describeStart(span, row, row.InitialVersion)
	if from := parseTrace(s.Linked); from.IsValid() {
		span.AddLink(linkTo(from, linkForked))
	}
	end := began
	if at := tc.localTime(created); row.Generation == 0 && at.After(end) {
		end = at
	}
	span.End(trace.WithTimestamp(end))
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
