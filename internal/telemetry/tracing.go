// Package telemetry makes the spans of an engine and of its runs, and its metrics.
//
//	tracing.go  what spans are called, and how the trace of a run begins and ends
//	start.go    the span of a start, which may be exported again
//	segment.go  what one process does of a run
//	run.go      the spans of one execution of a run
//	scope.go those of its branches, items and waits
//	step.go     of steps and their attempts
//	map.go      of a Map, one over all processes
//	metrics.go  the instruments
//
// One run is one trace, across all its processes. Start makes a short span, which
// continues the caller's trace, and its context is kept with the run. Each process
// that takes the run makes a segment below that span, and the spans of what it
// does are below its segment. Replayed calls make no spans.
//
// A process may be killed at any moment, and then loses the spans that it has not
// exported, above all those that are still open. So a span with others below it is
// ended, and so exported, before the first of those is and before the run waits:
// every span that arrives finds its parent, and no span is open for days. At the
// end a span "end ..." says how long the whole took, and how it ended; its start
// time is set afterwards.
//
// No payload goes into a span. Messages of errors do, unless Options.OmitTexts leaves
// them out.
package telemetry

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

// The attributes of spans. docs/traces.md lists them.
const (
	AttrRun         = attribute.Key("durable.run.id")
	AttrWorkflow    = attribute.Key("durable.workflow.name")
	AttrVersion     = attribute.Key("durable.workflow.version")
	AttrKey         = attribute.Key("durable.step.key")
	AttrAttempt     = attribute.Key("durable.step.attempt")
	AttrOutcome     = attribute.Key("durable.outcome")
	attrRecover     = attribute.Key("durable.recovered")
	AttrReplayed    = attribute.Key("durable.replayed")
	AttrExecutor    = attribute.Key("durable.executor.id")
	AttrResumes     = attribute.Key("durable.run.resumes")
	AttrStatus      = attribute.Key("durable.run.status")
	AttrCode        = attribute.Key("durable.code")
	AttrSteps       = attribute.Key("durable.run.steps")
	AttrActive      = attribute.Key("durable.run.active")
	attrParentRun   = attribute.Key("durable.parent.run.id")
	attrForkedFrom  = attribute.Key("durable.forked.run.id")
	AttrChild       = attribute.Key("durable.child.run.id")
	AttrWait        = attribute.Key("durable.wait.kind")
	attrSignal      = attribute.Key("durable.signal.name")
	AttrItems       = attribute.Key("durable.map.items")
	AttrItemsFailed = attribute.Key("durable.map.failed")
	AttrItemsUndone = attribute.Key("durable.map.undone")
	attrLink        = attribute.Key("durable.link")
	attrErrorType   = attribute.Key("error.type")
	attrQueue       = attribute.Key("durable.queue.name") // of metrics; spans have those of messages

	// The semantic conventions of messaging, which are in development.
	attrMessaging     = attribute.Key("messaging.system")
	attrOperation     = attribute.Key("messaging.operation.name")
	attrOperationType = attribute.Key("messaging.operation.type")
	attrDestination   = attribute.Key("messaging.destination.name")
	attrPartition     = attribute.Key("messaging.destination.partition.id")
	attrMessage       = attribute.Key("messaging.message.id")

	attrExceptionType    = attribute.Key("exception.type")
	attrExceptionMessage = attribute.Key("exception.message")
)

// What durable.outcome says of an attempt, a step, a branch, an item or a wait.
const (
	OutcomeOK         = "ok"
	OutcomeFailed     = "failed"
	OutcomeStopped    = "stopped"    // from outside: nothing was recorded, and it is made again
	OutcomeUnrecorded = "unrecorded" // it ended, and that could not be recorded here
	OutcomeTimedOut   = "timed_out"
	OutcomeRefused    = "refused"
)

// What durable.link says of a link.
const (
	linkStart    = "start"    // of the run, in TraceLink
	LinkPrevious = "previous" // segment of the run
	LinkChild    = "child"    // the segment in which a child ended
	LinkSender   = "sender"   // of a signal or a request
	LinkForked   = "forked"   // the start of the run that was forked
)

// TracerName is the instrumentation scope.
const TracerName = "github.com/holdfast-dev/holdfast/durable"

// NewTracer returns the tracer of the engine.
func NewTracer(p trace.TracerProvider) trace.Tracer {
	return p.Tracer(TracerName, trace.WithInstrumentationVersion(host.Release()))
}

// Format returns a span context as it is kept in a row or an event: the W3C
// traceparent and, after a blank, the tracestate if there is one.
func Format(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	s := "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + (sc.TraceFlags() & trace.FlagsSampled).String()
	if state := sc.TraceState().String(); state != "" {
		s += " " + state
	}
	return s
}

// Parse reads what Format has written. If it cannot be read, Parse returns an
// empty context: a trace is not worth a run.
func Parse(s string) trace.SpanContext {
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

// Link returns a link to a span; what says which one it is.
func Link(sc trace.SpanContext, what string) trace.Link {
	return trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{attrLink.String(what)}}
}

// A Tracing makes the spans of an engine.
type Tracing struct {
	Tracer     trace.Tracer
	Store      store.Store
	ExecutorID string
	// Link makes each segment begin a trace of its own, linked to the start.
	Link bool
	// TextOf returns the message of an error for a span; nil: spans have none. It need not
	// be called for a span that nobody records.
	TextOf func(error) string
	// KindOf returns the name of an error for places where its message must not
	// appear.
	KindOf func(error) string
	// StoreTime converts a moment of this process's clock to the store's.
	StoreTime func(time.Time) store.Time

	keeps idsKept
}

// StartSpan begins the span of the start of a run and keeps its context in the
// row. The caller ends it once the run exists, but not if the run existed before
// or could not be started: a span that is not ended is not exported. The returned
// Start is to be kept in the history.
func (tc *Tracing) StartSpan(ctx context.Context, row *store.Run, links ...trace.Link) (trace.Span, Start) {
	around := trace.SpanContextFromContext(ctx)
	if row.Parent != "" && around.IsValid() && !around.IsSampled() {
		row.Trace = Format(around) // decided when the parent was started, for its children too
		return trace.SpanFromContext(context.Background()), Start{}
	}
	began := time.Now()
	_, span := tc.Tracer.Start(ctx, "start "+row.Workflow, trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(began))
	row.Trace = Format(span.SpanContext())
	if !span.IsRecording() {
		return span, Start{}
	}
	describeStart(span, row, row.Version)
	for _, l := range links {
		if l.SpanContext.IsValid() {
			span.AddLink(l)
		}
	}
	return span, traceOfStart(ctx, span, began)
}

// EndRunSpan reports that a run has ended, and how: its span reaches from the
// creation of the run to now, over all processes. It is below the span of the
// start or, if there is none, the one in ctx. s is what is known of the start.
func (tc *Tracing) EndRunSpan(ctx context.Context, row *store.Run, s *Start, status store.Status, err error, more ...attribute.KeyValue) {
	if start := Parse(row.Trace); start.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, start)
	}
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	began := s.began(tc, row)
	_, span := tc.Tracer.Start(ctx, "end "+row.Workflow, trace.WithTimestamp(began))
	defer func() { span.End(trace.WithTimestamp(notBefore(began, time.Now()))) }()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(AttrRun.String(row.ID), AttrWorkflow.String(row.Workflow), AttrVersion.String(row.Version), AttrStatus.String(string(status)))
	span.SetAttributes(more...)
	if status == store.Failed {
		tc.MarkFailed(span, err)
	}
}

// EndOrphanSpan is EndRunSpan for a run that recovery has marked failed.
func (tc *Tracing) EndOrphanSpan(ctx context.Context, row *store.Run, code string) {
	start := tc.orphanStartAgain(ctx, row)
	tc.EndRunSpan(context.Background(), row, &start, store.Failed, nil, AttrCode.String(code), AttrResumes.Int(int(row.Resumes)))
}

// MarkFailed gives a span the status of an error.
func (tc *Tracing) MarkFailed(span trace.Span, err error) {
	kind := tc.KindOf(err)
	text := kind
	if tc.TextOf != nil && err != nil && span.IsRecording() {
		text = tc.TextOf(err)
	}
	span.SetStatus(codes.Error, text)
	span.SetAttributes(attrErrorType.String(kind))
}

// AddException adds an error to a span, as an event.
func (tc *Tracing) AddException(span trace.Span, err error, at time.Time, more ...attribute.KeyValue) {
	attrs := append(more, attrExceptionType.String(tc.KindOf(err)))
	if tc.TextOf != nil && err != nil && span.IsRecording() {
		attrs = append(attrs, attrExceptionMessage.String(tc.TextOf(err)))
	}
	span.AddEvent("exception", trace.WithTimestamp(at), trace.WithAttributes(attrs...))
}

// LocalTime is the inverse of StoreTime for a moment that has passed: all spans of one process use one clock. The store's
// may have been set back since, or the clock of the process that has recorded the moment may have been ahead.
func (tc *Tracing) LocalTime(t store.Time) time.Time {
	now := time.Now()
	return now.Add(min(t.Sub(tc.StoreTime(now)), 0))
}

// notBefore returns at, by the monotonic clock if both have it, and began if at would be before that. A wall clock may have been
// set, or be another process's. And it is read apart from the monotonic one: a machine that takes the processor away in
// between makes a later moment look earlier.
func notBefore(began, at time.Time) time.Time { return began.Add(max(0, at.Sub(began))) }

// maxBaggage is the largest baggage that W3C provides for, in bytes.
const maxBaggage = 8 << 10

// Baggage returns the baggage of the caller of Start as it is kept with the run;
// empty if it is too large.
func Baggage(ctx context.Context) string {
	if s := baggage.FromContext(ctx).String(); len(s) <= maxBaggage {
		return s
	}
	return ""
}

// Communication of a run shows on both sides: a signal is a span of its sender,
// and the wait that takes it is linked to that span; a child's start is below its
// parent's segment, and the wait of the parent is linked to the segment in which
// the child ended.

// StartSend begins the span of a signal or request to a run, whose context
// travels with the message. The function that it returns ends the span.
func (tc *Tracing) StartSend(ctx context.Context, m *store.Message) (end func(error)) {
	end = func(error) {}
	if m.Kind != store.KindSignal && m.Kind != store.KindRequest || m.Data != nil {
		return end
	}
	_, span := tc.Tracer.Start(ctx, string(m.Kind)+" "+m.Name, trace.WithSpanKind(trace.SpanKindProducer))
	if !span.IsRecording() {
		span.End()
		return end
	}
	span.SetAttributes(AttrRun.String(m.To), attrSignal.String(m.Name))
	if data, err := json.Marshal(history.MessageData{Trace: Format(span.SpanContext())}); err == nil {
		m.Data = data
	}
	return func(err error) {
		if err != nil {
			tc.MarkFailed(span, err)
		}
		span.End()
	}
}
