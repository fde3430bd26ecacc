package durable

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/store"
)

// One run is one trace, across all the processes it lives in. Start makes a
// short span, which continues the caller's trace, and its context is kept with
// the run; each execution is a span below that, and each attempt of a step one
// below the execution. What is replayed makes no spans. No payload and no
// message of an error goes into a span, only its type of outcome: they may
// hold secrets.

// The attributes of spans.
const (
	attrRun      = attribute.Key("durable.run.id")
	attrWorkflow = attribute.Key("durable.workflow.name")
	attrVersion  = attribute.Key("durable.workflow.version")
	attrKey      = attribute.Key("durable.step.key")
	attrAttempt  = attribute.Key("durable.step.attempt")
	attrRecover  = attribute.Key("durable.recovered")
	attrReplayed = attribute.Key("durable.replayed")
	attrStatus   = attribute.Key("durable.run.status")
)

// tracerName is the instrumentation scope.
const tracerName = "github.com/holdfast-dev/holdfast/durable"

func newTracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(tracerName)
}

// startSpan records that a run is started and returns the context to keep with
// it: empty when nobody traces.
func (e *Engine) startSpan(ctx context.Context, row *store.Run) string {
	ctx, span := e.tracer.Start(ctx, "start "+row.Workflow, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(attrRun.String(row.ID), attrWorkflow.String(row.Workflow), attrVersion.String(row.Version)))
	defer span.End()
	if !span.SpanContext().IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier.Get("traceparent")
}

// traceExecution begins the span of this execution of r and puts it into the
// context of everything below.
func (r *run) traceExecution() {
	ctx := propagation.TraceContext{}.Extract(r.ctx, propagation.MapCarrier{"traceparent": r.row.Trace})
	ctx, span := r.eng.tracer.Start(ctx, "run "+r.row.Workflow, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attrRun.String(r.id), attrWorkflow.String(r.row.Workflow), attrVersion.String(r.row.Version), attrRecover.Bool(r.fromClaim)))
	if !span.IsRecording() {
		span.End()
		return
	}
	r.span, r.ctx = span, ctx
}

// endTrace ends the span of this execution.
func (r *run) endTrace() {
	if r.span == nil {
		return
	}
	if r.past != nil {
		r.span.SetAttributes(attrReplayed.Int(int(r.past.steps)))
	}
	r.span.SetAttributes(attrStatus.String(string(r.outcome.status)))
	if r.outcome.err != nil && r.outcome.next == nil {
		r.span.SetStatus(codes.Error, outcomeWord(r.outcome.err))
	}
	r.span.End()
}

// outcomeWord names the kind of an error, without its message.
func outcomeWord(err error) string {
	for word, target := range map[string]error{
		"interrupted": ErrInterrupted, "cancelled": ErrRunCancelled, "failed": ErrRunFailed, "lost": ErrLost,
	} {
		if errors.Is(err, target) {
			return word
		}
	}
	return "failed"
}

// traceAttempt begins the span of an attempt; without a tracer it does nothing.
func (st *step) traceAttempt(ctx context.Context, n int) (context.Context, trace.Span) {
	r := st.call.scope.run
	if r.span == nil {
		return ctx, nil
	}
	return r.eng.tracer.Start(ctx, "step "+st.call.name, trace.WithAttributes(
		attrRun.String(r.id), attrKey.String(st.call.key), attrAttempt.Int(n)))
}

// endAttempt ends the span of an attempt.
func endAttempt(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		word := "failed"
		if p := (*PanicError)(nil); errors.As(err, &p) {
			word = "panic"
		}
		span.SetStatus(codes.Error, word)
	}
	span.End()
}
