package durable

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// One run is one trace, across all the processes it lives in. Start makes a
// short span, which continues the caller's trace, and its context is kept with
// the run; each process that takes the run makes a segment below that, and what
// it does hangs below its segment. What is replayed makes no spans.
//
// A process may be killed at any moment, and what it has not exported then is
// lost, spans that are still open above all. So a span with others below it is
// ended, and so exported, before the first of those is and before the run waits:
// whatever arrives has its parent there, and no span is open for days. How long
// the whole took, and how it ended, is said at its end by a span "end ...",
// whose beginning is stamped.
//
// No payload and no message of an error goes into a span, unless
// Options.Verbatim asks for it: they may hold secrets.

// TraceMode says how the spans of a run's processes belong together. In every
// mode a run that was not sampled when it was started is not traced later.
type TraceMode int

// The modes.
const (
	// TraceParent makes one trace of a run: each segment is a child of the span
	// of the start. It is the default.
	TraceParent TraceMode = iota
	// TraceLink makes a trace of each segment, linked to the span of the start
	// and to the segment before: for runs that last longer than a backend keeps
	// a trace open, or a tail sampler waits for its end.
	TraceLink
)

// The attributes of spans. docs/telemetry.md lists them.
const (
	attrRun         = attribute.Key("durable.run.id")
	attrWorkflow    = attribute.Key("durable.workflow.name")
	attrVersion     = attribute.Key("durable.workflow.version")
	attrKey         = attribute.Key("durable.step.key")
	attrAttempt     = attribute.Key("durable.step.attempt")
	attrOutcome     = attribute.Key("durable.outcome")
	attrRecover     = attribute.Key("durable.recovered")
	attrReplayed    = attribute.Key("durable.replayed")
	attrExecutor    = attribute.Key("durable.executor.id")
	attrResumes     = attribute.Key("durable.run.resumes")
	attrStatus      = attribute.Key("durable.run.status")
	attrCode        = attribute.Key("durable.code")
	attrSteps       = attribute.Key("durable.run.steps")
	attrActive      = attribute.Key("durable.run.active")
	attrParentRun   = attribute.Key("durable.parent.run.id")
	attrForkedFrom  = attribute.Key("durable.forked.run.id")
	attrChild       = attribute.Key("durable.child.run.id")
	attrWait        = attribute.Key("durable.wait.kind")
	attrSignal      = attribute.Key("durable.signal.name")
	attrItems       = attribute.Key("durable.map.items")
	attrItemsFailed = attribute.Key("durable.map.failed")
	attrItemsUndone = attribute.Key("durable.map.undone")
	attrLink        = attribute.Key("durable.link")
	attrErrorType   = attribute.Key("error.type")

	attrExceptionType    = attribute.Key("exception.type")
	attrExceptionMessage = attribute.Key("exception.message")
)

// What durable.outcome says of an attempt, a step, a branch, an item or a wait.
const (
	outcomeOK         = "ok"
	outcomeFailed     = "failed"
	outcomeStopped    = "stopped"    // from outside: nothing was recorded, and it is made again
	outcomeUnrecorded = "unrecorded" // it came to its end, and that could not be recorded here
	outcomeTimedOut   = "timed_out"
	outcomeRefused    = "refused"
)

// What durable.link says of a link.
const (
	linkStart    = "start"    // of the run, in TraceLink
	linkPrevious = "previous" // segment of the run
	linkChild    = "child"    // the segment in which a child ended
	linkSender   = "sender"   // of a signal or a request
	linkForked   = "forked"   // the start of the run that was forked
)

// tracerName is the instrumentation scope.
const tracerName = "github.com/holdfast-dev/holdfast/durable"

// maxReason bounds the text of an error in a span, in bytes.
const maxReason = 4 << 10

func newTracer(p trace.TracerProvider) trace.Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return p.Tracer(tracerName)
}

// formatTrace returns a span context as it is kept in a row or an event: the W3C
// traceparent and, behind a blank, the tracestate if there is one.
func formatTrace(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	s := "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + (sc.TraceFlags() & trace.FlagsSampled).String()
	if state := sc.TraceState().String(); state != "" {
		s += " " + state
	}
	return s
}

// parseTrace is the other direction. What cannot be read is no context: a trace
// is not worth a run.
func parseTrace(s string) trace.SpanContext {
	parent, state, _ := strings.Cut(s, " ")
	part := strings.Split(parent, "-")
	if len(part) != 4 || part[0] != "00" {
		return trace.SpanContext{}
	}
	traceID, err := trace.TraceIDFromHex(part[1])
	if err != nil {
		return trace.SpanContext{}
	}
	spanID, err := trace.SpanIDFromHex(part[2])
	if err != nil {
		return trace.SpanContext{}
	}
	c := trace.SpanContextConfig{TraceID: traceID, SpanID: spanID, Remote: true}
	if part[3] == "01" {
		c.TraceFlags = trace.FlagsSampled
	}
	if ts, err := trace.ParseTraceState(state); err == nil {
		c.TraceState = ts
	}
	return trace.NewSpanContext(c)
}

func linkTo(sc trace.SpanContext, what string) trace.Link {
	return trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{attrLink.String(what)}}
}

// tracing makes the spans of an engine.
type tracing struct {
	eng    *Engine
	tracer trace.Tracer
	keeps  idsKept
}

// startSpan begins the span of the start of a run and keeps its context in the
// row. It is to be ended once the run is there, and not when it was there before
// or could not be started: what is not ended is not exported. What it also returns is
// to be kept in the history.
func (tc *tracing) startSpan(ctx context.Context, row *store.Run, links ...trace.Link) (trace.Span, startTrace) {
	around := trace.SpanContextFromContext(ctx)
	if row.Parent != "" && around.IsValid() && !around.IsSampled() {
		row.Trace = formatTrace(around) // decided when the parent was started, for its children too
		return trace.SpanFromContext(context.Background()), startTrace{}
	}
	began := time.Now()
	_, span := tc.tracer.Start(ctx, "start "+row.Workflow, trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(began))
	row.Trace = formatTrace(span.SpanContext())
	if !span.IsRecording() {
		return span, startTrace{}
	}
	describeStart(span, row, row.Version)
	for _, l := range links {
		if l.SpanContext.IsValid() {
			span.AddLink(l)
		}
	}
	return span, traceOfStart(ctx, span, began)
}

// endRunSpan tells that a run has ended and how: its span reaches from the
// creation of the run to now, over all processes, below the span of the start or,
// if nobody made that, the one in ctx. s is what is known of the start.
func (tc *tracing) endRunSpan(ctx context.Context, row *store.Run, s *startTrace, status store.Status, err error, more ...attribute.KeyValue) {
	if start := parseTrace(row.Trace); start.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, start)
	}
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	_, span := tc.tracer.Start(ctx, "end "+row.Workflow, trace.WithTimestamp(s.began(tc.eng, row)))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attrRun.String(row.ID), attrWorkflow.String(row.Workflow), attrVersion.String(row.Version), attrStatus.String(string(status)))
	span.SetAttributes(more...)
	if status == store.Failed {
		tc.markFailed(span, err)
	}
}

// endOrphanSpan is endRunSpan for a run that recovery has marked failed.
func (tc *tracing) endOrphanSpan(ctx context.Context, row *store.Run, code string) {
	start := tc.orphanStartAgain(ctx, row)
	tc.endRunSpan(context.Background(), row, &start, store.Failed, nil, attrCode.String(code), attrResumes.Int(int(row.Resumes)))
}

// markFailed gives a span the status of an error.
func (tc *tracing) markFailed(span trace.Span, err error) {
	kind := tc.eng.program.errors.KindOf(err)
	text := kind
	if tc.eng.options.Verbatim && err != nil {
		text = guard.Text(err.Error(), maxReason)
	}
	span.SetStatus(codes.Error, text)
	span.SetAttributes(attrErrorType.String(kind))
}

// addException adds what has failed as an event of a span.
func (tc *tracing) addException(span trace.Span, err error, at time.Time, more ...attribute.KeyValue) {
	attrs := append(more, attrExceptionType.String(tc.eng.program.errors.KindOf(err)))
	if tc.eng.options.Verbatim && err != nil {
		attrs = append(attrs, attrExceptionMessage.String(guard.Text(err.Error(), maxReason)))
	}
	span.AddEvent("exception", trace.WithTimestamp(at), trace.WithAttributes(attrs...))
}

// localTime is storeTime the other way: spans of one process are of one clock.
func (tc *tracing) localTime(t store.Time) time.Time {
	now := time.Now()
	return now.Add(t.Sub(tc.eng.storeTime(now)))
}

// maxBaggage is what W3C lets a baggage have, in bytes.
const maxBaggage = 8 << 10

// baggageOf returns the baggage of the caller of Start as it is kept with the run;
// one that is too large is not.
func baggageOf(ctx context.Context) string {
	if s := baggage.FromContext(ctx).String(); len(s) <= maxBaggage {
		return s
	}
	return ""
}

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
