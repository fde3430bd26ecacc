package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// againKey is where a context has the ids of the span that is begun again in it.
type againKey struct{}

// Again returns the ids of the span that is begun again in ctx, if one is.
func Again(ctx context.Context) (ids trace.SpanContext, ok bool) {
	ids, ok = ctx.Value(againKey{}).(trace.SpanContext)
	return ids, ok
}

// idsKept is whether the SDK keeps ids, once that was asked.
type idsKept struct {
	once sync.Once
	ids  bool
}

// Start is what the history keeps of the span of a start, so that it can be
// made again as it was. It is zero if there is no such span.
type Start struct {
	Around  string // trace context around it
	BeganAt int64  // by the clock of the process that made it, in nanoseconds since 1970
	Linked  string // of a fork: trace context of the start it is linked to
}

// StartOf is what d, of an event that begins a history, says of the start.
func StartOf(d *history.Beginning) Start {
	return Start{Around: d.Around, BeganAt: d.BeganAt, Linked: d.Linked}
}

// KeepIn puts s into d, of an event that begins a history.
func (s Start) KeepIn(d *history.Beginning) {
	d.Around, d.BeganAt, d.Linked = s.Around, s.BeganAt, s.Linked
}

// noParent is what history.Beginning.Around says of a start that nothing is around.
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
// that: what hangs below it must not begin earlier.
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

// orphanStartAgain is StartAgain for a run that recovery has marked failed, of
// which only the row is known here. It returns what is known of that start.
func (tc *Tracing) orphanStartAgain(ctx context.Context, row *store.Run) (s Start) {
	start := Parse(row.Trace)
	if !start.IsSampled() || !tc.keepsIDs(start) {
		return s
	}
	h, err := tc.Store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return s // a trace is not worth the recovery of the others
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

// keepsIDs reports whether the SDK makes spans with the ids it is told (SpanIDs).
// A span is begun for that, the first time it is asked, and not ended.
func (tc *Tracing) keepsIDs(start trace.SpanContext) bool {
	tc.keeps.once.Do(func() {
		_, span := tc.Tracer.Start(context.WithValue(context.Background(), againKey{}, start), "start")
		tc.keeps.ids = span.SpanContext().SpanID() == start.SpanID()
	})
	return tc.keeps.ids
}

// StartAgain begins and ends the span of a run's start, if its ids can be kept; s is
// what its creation says of it, and created is when that was recorded.
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
		return // nobody keeps the ids: what is not ended is not exported
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

// describeStart says of which run, and of what version of it, span is the start.
func describeStart(span trace.Span, row *store.Run, version string) {
	span.SetAttributes(AttrRun.String(row.ID), AttrWorkflow.String(row.Workflow), AttrVersion.String(version))
	if row.Parent != "" {
		span.SetAttributes(attrParentRun.String(row.Parent), AttrKey.String(row.ParentKey))
	}
	if row.ForkedFrom != "" {
		span.SetAttributes(attrForkedFrom.String(row.ForkedFrom))
	}
}
