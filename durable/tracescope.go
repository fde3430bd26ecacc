package durable

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// scopeSpan is the span of a branch or an item in this execution. It is begun
// when there is something to put below it: a branch of which everything is
// replayed makes none.
type scopeSpan struct {
	name  string          // "branch pack"
	outer context.Context // that of the function which opened the scope
	// around is the span in it: of the segment, the scope around, or the
	// user's own.
	around trace.SpanID
	of     *mapSpan // of an item: its Map

	mu    sync.Mutex // branches of the scope meet here
	inner context.Context
	span  trace.Span
	began time.Time
	over  bool
}

// traceAs says what the span of s is called; ctx is that of the call which opens
// it, and of is the Map that s is an item of, if it is one. It returns the context for the function of the scope: when nothing in it
// is replayed, the function finds its span there.
func (s *scope) traceAs(ctx context.Context, what, name string, of *mapSpan) context.Context {
	if s.run.spans.segment == nil {
		return ctx
	}
	s.span = &scopeSpan{name: what + " " + name, outer: ctx, around: trace.SpanContextFromContext(ctx).SpanID(), of: of}
	if !s.replay.Empty() {
		return ctx
	}
	return s.tracing(ctx)
}

// tracing returns ctx with the span that what is done in s hangs below: its own,
// unless the user has put one around the call.
func (s *scope) tracing(ctx context.Context) context.Context {
	around := trace.SpanContextFromContext(ctx)
	if s.span == nil {
		if around.IsValid() {
			return ctx
		}
		// A compensation: its context is not that of the run, which may have
		// ended.
		return trace.ContextWithSpan(ctx, trace.SpanFromContext(s.run.ctx))
	}
	if around.SpanID() != s.span.around {
		return ctx
	}
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(s.span.open(s)))
}

// open begins the span, once, and returns the context it is in.
func (t *scopeSpan) open(s *scope) context.Context {
	outer := t.outer
	switch {
	case t.of != nil:
		outer = t.of.inner
	case s.up != nil:
		outer = s.up.tracing(outer)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span == nil {
		r := s.run
		t.began = time.Now()
		t.inner, t.span = r.eng.tracing.Tracer.Start(outer, t.name, trace.WithTimestamp(t.began))
		if t.span.IsRecording() {
			t.span.SetAttributes(telemetry.AttrRun.String(r.id), telemetry.AttrWorkflow.String(r.def.name), telemetry.AttrKey.String(s.path))
		}
	}
	return t.inner
}

// settle ends, and so exports, the spans around what happens in s, the outermost
// first.
func (s *scope) settle() {
	if s.run.spans.segment == nil {
		return
	}
	for up := s; up != nil; up = up.up {
		if up.span == nil {
			continue
		}
		defer up.span.end()
		if up.span.of != nil {
			defer up.span.of.early.Do()
		}
	}
}

// end ends the span as it is.
func (t *scopeSpan) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span != nil && !t.over {
		t.over = true
		t.span.End()
	}
}

// endSpan tells how the function of s ended: on its span or, if that had to be
// exported before, on one after it. recorded: the outcome is.
func (s *scope) endSpan(err error, recorded bool) {
	t := s.span
	if t == nil {
		return
	}
	if !recorded {
		t.end() // what was exported below it finds it
		return
	}
	inner := t.open(s)
	if s.up != nil {
		s.up.settle()
	}
	if t.of != nil {
		t.of.early.Do()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	span := t.span
	if t.over {
		_, span = s.run.eng.tracing.Tracer.Start(inner, "end "+t.name, trace.WithTimestamp(t.began))
	}
	t.over = true
	if span.IsRecording() {
		s.run.spans.describe(span, s.path, outcomeFor(err), err)
	}
	span.End()
}

// outcomeFor says what durable.outcome is for an outcome that was recorded.
func outcomeFor(err error) string {
	if err != nil {
		return telemetry.OutcomeFailed
	}
	return telemetry.OutcomeOK
}

// describe puts the outcome of a call into its span.
func (sp *runSpans) describe(span trace.Span, key, outcome string, err error) {
	r := sp.run
	span.SetAttributes(telemetry.AttrRun.String(r.id), telemetry.AttrWorkflow.String(r.def.name), telemetry.AttrKey.String(key), telemetry.AttrOutcome.String(outcome))
	if outcome == telemetry.OutcomeFailed {
		r.eng.tracing.MarkFailed(span, err)
	}
}

// traceContext returns the context for what is exported below s now.
func (s *scope) traceContext() context.Context {
	ctx := s.run.ctx
	if s.span != nil {
		ctx = s.span.open(s)
	}
	s.settle()
	return ctx
}

// mapSpan is the span of a Map. There is one for all the processes that the Map is
// under way in: its context stands in the event by which the Map begins.
type mapSpan struct {
	inner context.Context // the span is in it
	early *commit.Early
}

// traceBegin records that the Map begins, and begins its span.
func (m *mapping[I, O]) traceBegin() {
	s, d := m.scope, &history.Begun{Kind: history.CallMap}
	if s.run.spans.segment == nil {
		s.stash(&m.call, store.Event{Type: store.StepStarted, Data: history.Encode(d)})
		return
	}
	span := m.beginSpan()
	d.Span = telemetry.Format(span.SpanContext())
	s.stashTraced(&m.call, store.Event{Type: store.StepStarted, Data: history.Encode(d)}, m.span.early)
}

// beginSpan begins a span of the Map, which is open until the first thing is to be
// recorded after its beginning.
func (m *mapping[I, O]) beginSpan() trace.Span {
	s := m.scope
	m.began = time.Now()
	inner, span := s.run.eng.tracing.Tracer.Start(s.tracing(m.ctx), "map "+m.call.name, trace.WithTimestamp(m.began))
	if span.IsRecording() {
		span.SetAttributes(telemetry.AttrRun.String(s.run.id), telemetry.AttrWorkflow.String(s.run.def.name), telemetry.AttrKey.String(m.call.key))
	}
	m.span = &mapSpan{inner: inner, early: commit.NewEarly(func() {
		s.settle() // what is around it, before
		span.End()
	})}
	return span
}

// traceAgain takes up the span of a Map that was under way before. It makes another
// one if that is in another trace, to which nothing of this segment belongs, or
// if nobody traced there.
func (m *mapping[I, O]) traceAgain() {
	s := m.scope
	if s.run.spans.segment == nil || m.call.done() {
		return
	}
	before := telemetry.Parse(s.run.past.Spans[m.call.key])
	if before.IsValid() && before.TraceID() == trace.SpanContextFromContext(s.tracing(m.ctx)).TraceID() {
		m.span = &mapSpan{inner: trace.ContextWithRemoteSpanContext(m.ctx, before), early: commit.NewEarly(func() {})}
		return
	}
	if span := m.beginSpan(); before.IsValid() {
		span.AddLink(telemetry.Link(before, telemetry.LinkPrevious))
	}
}

// traceEnd records that the Map is over and tells how it ended: in a span from its
// beginning, over all processes. Both are there once the next thing is recorded.
func (m *mapping[I, O]) traceEnd(items int, err error) {
	s := m.scope
	ev := store.Event{Type: store.StepCompleted, Data: history.Encode(&history.StepEnd{Kind: history.CallMap, Items: items})}
	if m.span == nil {
		s.stash(&m.call, ev)
		return
	}
	began := m.began
	if m.call.rec != nil {
		began = s.run.eng.tracing.LocalTime(m.call.rec.OpenedAt)
	}
	ended, failed, undone := time.Now(), len(m.failed), m.undone
	s.stashTraced(&m.call, ev, commit.NewEarly(func() {
		m.span.early.Do()
		_, span := s.run.eng.tracing.Tracer.Start(m.span.inner, "end map "+m.call.name, trace.WithTimestamp(began))
		defer span.End(trace.WithTimestamp(ended))
		if !span.IsRecording() {
			return
		}
		s.run.spans.describe(span, m.call.key, outcomeFor(err), err)
		span.SetAttributes(telemetry.AttrItems.Int(items), telemetry.AttrItemsFailed.Int(failed), telemetry.AttrItemsUndone.Int(undone))
	}))
}

// waited is something a run has waited for, and how that ended.
type waited struct {
	name    string
	began   store.Time
	outcome string
	err     error
	attrs   []attribute.KeyValue
	link    trace.Link
}

// traceWait makes the span of a wait that is over. It is not open while the run
// waits, which may be for years and in many processes: its beginning is stamped.
func (s *scope) traceWait(key string, w waited) {
	r := s.run
	if r.spans.segment == nil {
		return
	}
	ctx := s.traceContext()
	began := time.Now()
	if w.began != 0 {
		began = r.eng.tracing.LocalTime(w.began)
	}
	_, span := r.eng.tracing.Tracer.Start(ctx, w.name, trace.WithTimestamp(began))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	s.run.spans.describe(span, key, w.outcome, w.err)
	span.SetAttributes(w.attrs...)
	if w.link.SpanContext.IsValid() {
		span.AddLink(w.link)
	}
}
