package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// againKey is the key under which a context has the ids of the span that is begun
// again in it.
type againKey struct{}

// Again returns the ids of the span that is begun again in ctx, if one is.
func Again(ctx context.Context) (ids trace.SpanContext, ok bool) {
	ids, ok = ctx.Value(againKey{}).(trace.SpanContext)
	return ids, ok
}

// idsKept says whether the SDK keeps ids, once that was found out.
type idsKept struct {
	once sync.Once
	ids  bool
}

// Start is what the history keeps of the span of a start, so that the same span can
// be made again. It is zero if there is no such span.
type Start struct {
	Around  string // trace context around it
	BeganAt int64  // by the clock of the process that made it, in nanoseconds since 1970
	Linked  string // of a fork: trace context of the start it is linked to
}

// StartOf returns what d, from an event that begins a history, says of the start.
func StartOf(d *history.Beginning) Start {
	return Start{Around: d.Around, BeganAt: d.BeganAt, Linked: d.Linked}
}

// KeepIn puts s into d, for an event that begins a history.
func (s Start) KeepIn(d *history.Beginning) {
	d.Around, d.BeganAt, d.Linked = s.Around, s.BeganAt, s.Linked
}

// noParent is the value of history.Beginning.Around for a start without a span
// around it.
const noParent = "none"

// traceOfStart describes a span of a start that began at that time in ctx.
func traceOfStart(ctx context.Context, span trace.Span, began time.Time) Start {
	if !span.IsRecording() {
		return Start{}
	}
	s := Start{Around: noParent, BeganAt: began.UnixNano()}
	if around := trace.SpanContextFromContext(ctx); around.IsValid() {
		s.Around = Format(around)
	}
	return s
}

// began returns when the span of row's start began, or a time that is not before
// that: spans below it must not begin earlier.
func (s *Start) began(tc *Tracing, row *store.Run) time.Time {
	if s.Around != "" && s.BeganAt != 0 {
		return time.Unix(0, s.BeganAt)
	}
	// CreatedAt is cut to the microsecond.
	at, now := tc.LocalTime(row.CreatedAt).Add(time.Microsecond), time.Now()
	if at.After(now) {
		return now
	}
	return at
}

// orphanStartAgain is StartAgain for a run that recovery has marked failed, and of
// which only the row is known here. It returns what is known of the run's start.
func (tc *Tracing) orphanStartAgain(ctx context.Context, row *store.Run) (s Start) {
	start := Parse(row.Trace)
	if !start.IsSampled() || !tc.keepsIDs(start) {
		return s
	}
	h, err := tc.Store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return s // a trace is not worth delaying the recovery of the others
	}
	for first, err := range h.Events {
		if d, bad := history.Of[history.Beginning](&first); err == nil && bad == nil {
			s = StartOf(&d)
			tc.StartAgain(row, &s, first.At)
		}
		break
	}
	return s
}

// keepsIDs reports whether the SDK makes spans with given ids (SpanIDs). To find
// out, the first call begins a span and never ends it.
func (tc *Tracing) keepsIDs(start trace.SpanContext) bool {
	tc.keeps.once.Do(func() {
		_, span := tc.Tracer.Start(context.WithValue(context.Background(), againKey{}, start), "start")
		tc.keeps.ids = span.SpanContext().SpanID() == start.SpanID()
	})
	return tc.keeps.ids
}

// StartAgain begins and ends the span of a run's start, if its ids can be kept; s is
// what the run's creation says of the span, and created is when that was recorded.
func (tc *Tracing) StartAgain(row *store.Run, s *Start, created store.Time) {
	start := Parse(row.Trace)
	if s.Around == "" || !start.IsSampled() {
		return
	}
	ctx := context.Background()
	if s.Around != noParent {
		ctx = trace.ContextWithRemoteSpanContext(ctx, Parse(s.Around))
	}
	began := s.began(tc, row)
	_, span := tc.Tracer.Start(context.WithValue(ctx, againKey{}, start), "start "+row.Workflow,
		trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(began))
	if sc := span.SpanContext(); sc.SpanID() != start.SpanID() || sc.TraceID() != start.TraceID() || !span.IsRecording() {
		return // the SDK does not keep the ids: a span that is not ended is not exported
	}
	describeStart(span, row, row.InitialVersion)
	if from := Parse(s.Linked); from.IsValid() {
		span.AddLink(Link(from, LinkForked))
	}
	end := began
	if at := tc.LocalTime(created); row.Generation == 0 && at.After(end) {
		end = at
	}
	span.End(trace.WithTimestamp(end))
}

// describeStart puts into span of which run, and of what version of it, it is the
// start.
func describeStart(span trace.Span, row *store.Run, version string) {
	span.SetAttributes(AttrRun.String(row.ID), AttrWorkflow.String(row.Workflow), AttrVersion.String(version))
	describeQueue(span, row, "enqueue", "send")
	if row.Parent != "" {
		span.SetAttributes(attrParentRun.String(row.Parent), AttrKey.String(row.ParentKey))
	}
	if row.ForkedFrom != "" {
		span.SetAttributes(attrForkedFrom.String(row.ForkedFrom))
	}
}

// describeQueue puts into the span of the start of a run on a queue, and into that of its
// first segment, that the queue has carried the run from one to the other.
func describeQueue(span trace.Span, row *store.Run, operation, typ string) {
	if row.Queue == "" {
		return
	}
	span.SetAttributes(attrMessaging.String("durable"), attrOperation.String(operation), attrOperationType.String(typ),
		attrDestination.String(row.Queue), attrMessage.String(row.ID))
	if row.Partition != "" {
		span.SetAttributes(attrPartition.String(row.Partition))
	}
}
