package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/store"
)

// A Segment is what one process does of a run, from taking it (by a start or a
// claim) to giving it up. Its span ends once the history has been read; the
// spans of what the process does later are nevertheless below it. Its context is
// in the event that takes the run, so that the next segment can be linked to it,
// and so that a run that is unloaded and loaded again in the same process
// continues below the same segment.
type Segment struct {
	Context trace.SpanContext
	Span    trace.Span // nil: it was ended by an earlier execution here
}

// BeginSegment begins the segment of a run that this process takes, or is about
// to take: a span that is never ended is never exported. It returns nil if this
// process does not trace, or the run is not sampled.
func (tc *Tracing) BeginSegment(row *store.Run, recovered bool) *Segment {
	start := Parse(row.Trace)
	if start.IsValid() && !start.IsSampled() {
		return nil // that was decided when the run was started
	}
	ctx, name := trace.ContextWithRemoteSpanContext(context.Background(), start), "segment "+row.Workflow
	var span trace.Span
	if tc.Link && start.IsValid() {
		_, span = tc.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithNewRoot(), trace.WithLinks(Link(start, linkStart)))
	} else {
		_, span = tc.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer))
	}
	if !span.IsRecording() {
		span.End()
		return nil
	}
	span.SetAttributes(AttrRun.String(row.ID), AttrWorkflow.String(row.Workflow), AttrVersion.String(row.Version),
		attrRecover.Bool(recovered), AttrExecutor.String(tc.ExecutorID))
	if !recovered {
		describeQueue(span, row, "begin", "process")
	}
	return &Segment{Context: span.SpanContext(), Span: span}
}
