package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Run makes the spans of one execution of a run. Scope makes those of what happens in
// the run.
type Run struct {
	tracing      *Tracing
	id, workflow string
	root         Scope
	around       trace.Span // what happens in the run is below it

	// Start is the span of the run's start if the run was started here. It ends before any
	// span below it does.
	Start trace.Span
	// Segment is the segment that this execution belongs to; nil: the run is not traced.
	// Enter sets it.
	Segment *Segment
}

// NewRun returns the spans of an execution of the run with this id.
func (tc *Tracing) NewRun(id, workflow string) Run {
	return Run{tracing: tc, id: id, workflow: workflow}
}

// Enter makes s the segment of the run, before the run executes any code, and returns ctx with
// what is known of the trace: everything that the run does has that context. s may be
// nil; kept is the trace context in the run's row.
func (t *Run) Enter(ctx context.Context, s *Segment, kept string) context.Context {
	t.Segment = s
	switch {
	case s != nil && s.Span != nil:
		ctx = trace.ContextWithSpan(ctx, s.Span)
	case s != nil:
		ctx = trace.ContextWithSpanContext(ctx, s.Context.WithRemote(false))
	case kept != "":
		// The user's own spans follow the run: it is not sampled, or this process does
		// not trace and only passes on the context.
		ctx = trace.ContextWithRemoteSpanContext(ctx, Parse(kept))
	}
	t.root.run, t.around = t, trace.SpanFromContext(ctx)
	return ctx
}

// Reenter is Enter for a run that is loaded again, whose segment is in its history. It returns
// ctx if the run has a segment already.
func (t *Run) Reenter(ctx context.Context, row *store.Run, past *history.Past) context.Context {
	if t.Segment != nil {
		return ctx
	}
	if m := past.Segment; m.Epoch == row.Epoch {
		if sc := Parse(m.Trace); sc.IsValid() {
			return t.Enter(ctx, &Segment{Context: sc}, row.Trace)
		}
	}
	return t.Enter(ctx, nil, row.Trace)
}

// Trace returns the context of the run's segment as events keep it; empty: the run is not
// traced.
func (t *Run) Trace() string {
	if t.Segment == nil {
		return ""
	}
	return Format(t.Segment.Context)
}

// EndSegment ends the span of the segment, once. past is nil if the run has no history yet.
func (t *Run) EndSegment(row *store.Run, past *history.Past) {
	s := t.Segment
	if s == nil || s.Span == nil {
		return
	}
	span := s.Span
	// Nothing else uses it: the spans below it have their context from Enter.
	s.Span = nil
	if past != nil {
		span.SetAttributes(AttrReplayed.Int(int(past.Steps)), AttrResumes.Int(int(row.Resumes)))
		before := past.Segment
		if before.Epoch == row.Epoch {
			before = past.SegmentBefore
		}
		if sc := Parse(before.Trace); sc.IsValid() {
			span.AddLink(Link(sc, LinkPrevious))
		}
	} else {
		span.SetAttributes(AttrReplayed.Int(0), AttrResumes.Int(0))
	}
	span.End()
}

// Ended is how a run has ended. It is zero if only this execution of the run has ended.
type Ended struct {
	Status store.Status
	Err    error
	Steps  int
	Active time.Duration
}

// End ends the spans that the execution has begun, and reports the end of the run if it
// has ended. of is what is known of the run's start.
func (t *Run) End(ctx context.Context, row *store.Run, past *history.Past, of *Start, end Ended) {
	if t.Segment == nil {
		return
	}
	t.EndSegment(row, past)
	if end.Status == "" {
		return
	}
	// If more than one process has executed the run, the one that started it may have been
	// killed before it could export the span of the start. It is exported again, before the
	// span of the end, as a parent is before its child.
	if past != nil && (row.Resumes != 0 || past.SegmentBefore.Trace != "") {
		t.tracing.StartAgain(row, of, past.Created.At)
	}
	t.tracing.EndRunSpan(ctx, row, of, end.Status, end.Err,
		AttrSteps.Int(end.Steps), AttrActive.Float64(end.Active.Seconds()), AttrResumes.Int(int(row.Resumes)))
}

// describe puts the outcome of a call into its span.
func (t *Run) describe(span trace.Span, key, outcome string, err error) {
	t.name(span, key, AttrOutcome.String(outcome))
	if outcome == OutcomeFailed {
		t.tracing.MarkFailed(span, err)
	}
}

// name puts the call of a span into it, and more, all at once: a second call would grow the
// span's list.
func (t *Run) name(span trace.Span, key string, more ...attribute.KeyValue) {
	if span.IsRecording() {
		all := append(make([]attribute.KeyValue, 0, 3+len(more)), AttrRun.String(t.id), AttrWorkflow.String(t.workflow), AttrKey.String(key))
		span.SetAttributes(append(all, more...)...)
	}
}

// WithBaggage returns ctx with the baggage that a run was started with, as Baggage has returned
// it: the run has it in every process.
func WithBaggage(ctx context.Context, kept string) context.Context {
	if kept == "" {
		return ctx
	}
	b, err := baggage.Parse(kept)
	if err != nil {
		return ctx
	}
	return baggage.ContextWithBaggage(ctx, b)
}
