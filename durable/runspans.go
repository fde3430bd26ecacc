package durable

import (
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/telemetry"
)

// enter puts what is known of the trace into the context of everything
// that r does. s may be nil.
func (sp *runSpans) enter(s *telemetry.Segment) {
	r := sp.run
	sp.segment = s
	switch {
	case s != nil && s.Span != nil:
		r.ctx = trace.ContextWithSpan(r.ctx, s.Span)
	case s != nil:
		r.ctx = trace.ContextWithSpanContext(r.ctx, s.Context.WithRemote(false))
	case r.row.Trace != "":
		// Spans of the user's own do as the run does: not sampled, or nobody
		// traces here and the context is only handed on.
		r.ctx = trace.ContextWithRemoteSpanContext(r.ctx, telemetry.Parse(r.row.Trace))
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
		if sc := telemetry.Parse(m.Trace); sc.IsValid() {
			sp.enter(&telemetry.Segment{Context: sc})
			return
		}
	}
	sp.enter(nil)
}

// endSegment ends the span of the segment, once.
func (sp *runSpans) endSegment() {
	r := sp.run
	s := sp.segment
	if s == nil || s.Span == nil {
		return
	}
	span := s.Span
	// Nobody else looks at it: what hangs below has its context from r.ctx.
	s.Span = nil
	if p := r.past; p != nil {
		span.SetAttributes(telemetry.AttrReplayed.Int(int(p.Steps)), telemetry.AttrResumes.Int(int(r.row.Resumes)))
		before := p.Segment
		if before.Epoch == r.row.Epoch {
			before = p.SegmentBefore
		}
		if sc := telemetry.Parse(before.Trace); sc.IsValid() {
			span.AddLink(telemetry.Link(sc, telemetry.LinkPrevious))
		}
	} else {
		span.SetAttributes(telemetry.AttrReplayed.Int(0), telemetry.AttrResumes.Int(0))
	}
	span.End()
}

// trace returns the context of r's segment as events keep it; empty: it
// is not traced.
func (sp *runSpans) trace() string {
	if sp.segment == nil {
		return ""
	}
	return telemetry.Format(sp.segment.Context)
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
		r.eng.tracing.EndRunSpan(r.ctx, &r.row, &r.origin.trace, o.status, o.err,
			telemetry.AttrSteps.Int(steps), telemetry.AttrActive.Float64(active.Seconds()), telemetry.AttrResumes.Int(int(r.row.Resumes)))
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

// startAgain exports the span of r's start once more, if more than one process
// has had r: the one that started it may have been killed before it could. It
// comes before the end of the run is told, and so does a parent before its child.
func (sp *runSpans) startAgain() {
	r := sp.run
	if r.past == nil || r.row.Resumes == 0 && r.past.SegmentBefore.Trace == "" {
		return
	}
	r.eng.tracing.StartAgain(&r.row, &r.origin.trace, r.past.Created.At)
}
