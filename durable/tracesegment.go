package durable

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A segment is what one process does of a run, from taking it (by a start or a
// claim) to giving it up. Its span is over once the history has been read; what
// the process does later hangs below it all the same. Its context stands in the
// event that takes the run, so that the next segment can be linked to it, and so
// that a run which is unloaded and loaded again in the same process goes on
// below the same one.
type segment struct {
	context trace.SpanContext
	span    trace.Span // nil: it was ended by an earlier execution here
}

// beginSegment begins the segment of a run that this process takes, or is about
// to take: a span that is never ended is never exported. It returns nil when
// nobody traces, or the run is not sampled.
func (tc *tracing) beginSegment(row *store.Run, recovered bool) *segment {
	start := parseTrace(row.Trace)
	if start.IsValid() && !start.IsSampled() {
		return nil // decided when it was started
	}
	ctx, name := trace.ContextWithRemoteSpanContext(context.Background(), start), "segment "+row.Workflow
	var span trace.Span
	if tc.eng.options.TraceMode == TraceLink && start.IsValid() {
		_, span = tc.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithNewRoot(), trace.WithLinks(linkTo(start, linkStart)))
	} else {
		_, span = tc.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer))
	}
	if !span.IsRecording() {
		span.End()
		return nil
	}
	span.SetAttributes(attrRun.String(row.ID), attrWorkflow.String(row.Workflow), attrVersion.String(row.Version),
		attrRecover.Bool(recovered), attrExecutor.String(tc.eng.id))
	return &segment{context: span.SpanContext(), span: span}
}

// segmentsOf lets the claim c begin the segment of each run it takes and keep its
// context in the event of the claim, for which it costs no write. What it
// returns is filled by the claim.
func (tc *tracing) segmentsOf(c *store.Claim, d *history.Data) map[string]*segment {
	segments := map[string]*segment{}
	c.DataOf = func(row *store.Run) []byte {
		own := *d
		own.Version = tc.eng.program.defs.pins(row)
		s := tc.beginSegment(row, row.StartedAt != 0)
		if s == nil && own.Version == "" {
			return c.Data
		}
		if s != nil {
			segments[row.ID] = s
			own.Segment = formatTrace(s.context)
		}
		return own.Encode()
	}
	return segments
}

// enter puts what is known of the trace into the context of everything
// that r does. s may be nil.
func (sp *runSpans) enter(s *segment) {
	r := sp.run
	sp.segment = s
	switch {
	case s != nil && s.span != nil:
		r.ctx = trace.ContextWithSpan(r.ctx, s.span)
	case s != nil:
		r.ctx = trace.ContextWithSpanContext(r.ctx, s.context.WithRemote(false))
	case r.row.Trace != "":
		// Spans of the user's own do as the run does: not sampled, or nobody
		// traces here and the context is only handed on.
		r.ctx = trace.ContextWithRemoteSpanContext(r.ctx, parseTrace(r.row.Trace))
	}
}

// reenter takes up the segment of a run that is loaded again, which
// stands in the history.
func (sp *runSpans) reenter() {
	r := sp.run
	if sp.segment != nil || r.claimed.counts {
		return // it has entered one, or is not traced
	}
	if m := r.past.Segment; m.Epoch == r.row.Epoch {
		if sc := parseTrace(m.Trace); sc.IsValid() {
			sp.enter(&segment{context: sc})
			return
		}
	}
	sp.enter(nil)
}

// endSegment ends the span of the segment, once.
func (sp *runSpans) endSegment() {
	r := sp.run
	s := sp.segment
	if s == nil || s.span == nil {
		return
	}
	span := s.span
	// Nobody else looks at it: what hangs below has its context from r.ctx.
	s.span = nil
	if p := r.past; p != nil {
		span.SetAttributes(attrReplayed.Int(int(p.Steps)), attrResumes.Int(int(r.row.Resumes)))
		before := p.Segment
		if before.Epoch == r.row.Epoch {
			before = p.SegmentBefore
		}
		if sc := parseTrace(before.Trace); sc.IsValid() {
			span.AddLink(linkTo(sc, linkPrevious))
		}
	} else {
		span.SetAttributes(attrReplayed.Int(0), attrResumes.Int(0))
	}
	span.End()
}

// trace returns the context of r's segment as events keep it; empty: it
// is not traced.
func (sp *runSpans) trace() string {
	if sp.segment == nil {
		return ""
	}
	return formatTrace(sp.segment.context)
}

// end ends what r has begun to trace.
func (sp *runSpans) end() {
	r := sp.run
	if sp.segment == nil {
		return
	}
	sp.endSegment()
	if o := &r.outcome; o.status != "" {
		sp.startAgain()
		steps, active := r.log.Totals()
		r.eng.tracing.endRunSpan(r.ctx, &r.row, &r.origin.trace, o.status, o.err,
			attrSteps.Int(steps), attrActive.Float64(active.Seconds()), attrResumes.Int(int(r.row.Resumes)))
	}
}

// carry gives the run's context the baggage that it was started with, in every
// process.
func (sp *runSpans) carry(kept string) {
	r := sp.run
	if kept == "" {
		return
	}
	if b, err := baggage.Parse(kept); err == nil {
		r.ctx = baggage.ContextWithBaggage(r.ctx, b)
	}
}
