package durable

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// What runs and their surroundings say to each other is seen on both sides: a
// signal is a span of its sender, and the wait that takes it is linked to that;
// a child's start hangs below its parent's segment, and the wait of the parent
// is linked to the segment in which the child ended.

// startSend begins the span of a signal or request to a run, whose context
// travels with the message. The function it returns ends it.
func (tc *tracing) startSend(ctx context.Context, m *store.Message) (end func(error)) {
	end = func(error) {}
	if m.Kind != store.KindSignal && m.Kind != store.KindRequest || m.Data != nil {
		return end
	}
	_, span := tc.tracer.Start(ctx, string(m.Kind)+" "+m.Name, trace.WithSpanKind(trace.SpanKindProducer))
	if !span.IsRecording() {
		span.End()
		return end
	}
	span.SetAttributes(attrRun.String(m.To), attrSignal.String(m.Name))
	if data, err := json.Marshal(history.MessageData{Trace: formatTrace(span.SpanContext())}); err == nil {
		m.Data = data
	}
	return func(err error) {
		if err != nil {
			tc.markFailed(span, err)
		}
		span.End()
	}
}

// traceAwait makes the span of a wait for a message that has ended; m is the one
// it has taken, if any.
func (s *scope) traceAwait(c *call, a *awaiting, began store.Time, outcome string, m *store.Message) {
	if s.run.segment == nil {
		return
	}
	kind := string(a.kind)
	if a.prompt != "" {
		kind = "approval"
	}
	w := waited{name: "wait " + a.name, began: began, outcome: outcome, attrs: []attribute.KeyValue{attrWait.String(kind)}}
	if m != nil {
		d, _ := history.DataOfMessage(m) // without its sender the wait has no link
		w.link = linkTo(parseTrace(d.Trace), linkSender)
	}
	s.traceWait(c.key, w)
}

// traceChild makes the span of a child run of which the outcome has come.
func (s *scope) traceChild(ch *child, told *history.ChildData) {
	if s.run.segment == nil {
		return
	}
	w := waited{
		name: "child " + told.Workflow, began: ch.began, outcome: outcomeOK,
		attrs: []attribute.KeyValue{attrWait.String("child"), attrChild.String(ch.id), attrStatus.String(string(told.Status))},
		link:  linkTo(parseTrace(told.Trace), linkChild),
	}
	if told.Status != store.Completed {
		w.outcome, w.err = outcomeFailed, s.run.eng.program.errors.restore(told.Error)
	}
	s.traceWait(ch.call.key, w)
}
