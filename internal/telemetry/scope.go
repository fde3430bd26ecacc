package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/store"
)

// A Scope is the place of a workflow function, a branch or an item among the spans. A branch or
// an item has a span once Begin has named it, and the span begins when there is something to put
// below it: a branch that is only replayed has none. A run that is not traced has a nil
// Scope, whose methods do nothing.
type Scope struct {
	run *Run
	up  *Scope // the one around it; nil: none

	name  string // "branch pack"; empty: it has no span
	key   string
	outer context.Context // that of the function that opened the scope
	// around is the span in outer: that of the segment, that of the scope around, or the
	// user's own.
	around trace.SpanID
	of     *Map // of an item: its Map

	mu    sync.Mutex // branches of the scope use it concurrently
	inner context.Context
	span  trace.Span
	began time.Time
	over  bool
}

// Root returns the scope of the run's workflow function, and of its compensations, which
// have no span of their own; nil: the run is not traced.
func (t *Run) Root() *Scope {
	if t.Segment == nil {
		return nil
	}
	return &t.root
}

// Child returns the scope of a branch or an item. Without Begin it has no span, and spans
// in it are below those of the scopes around it.
func (t *Scope) Child() *Scope {
	if t == nil {
		return nil
	}
	return &Scope{run: t.run, up: t}
}

// Begin gives the scope its span. ctx is that of the call that opens the scope, and of is
// the Map if the scope is an item of one. It returns the context for the function of the
// scope: if nothing in it is replayed (live), the function finds its span there.
func (t *Scope) Begin(ctx context.Context, what, name, key string, of *Map, live bool) context.Context {
	if t == nil {
		return ctx
	}
	t.name, t.key, t.of = what+" "+name, key, of
	t.outer, t.around = ctx, trace.SpanContextFromContext(ctx).SpanID()
	if !live {
		return ctx
	}
	return t.in(ctx)
}

// in returns ctx with the parent span for what is done in the scope: the scope's own
// span, unless the user has put one around the call.
func (t *Scope) in(ctx context.Context) context.Context {
	around := trace.SpanContextFromContext(ctx)
	if t.name == "" {
		if around.IsValid() {
			return ctx
		}
		// A compensation: its context is not that of the run, which may have
		// ended.
		return trace.ContextWithSpan(ctx, t.run.around)
	}
	if around.SpanID() != t.around {
		return ctx
	}
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(t.open()))
}

// open begins the span, once, and returns the context with it.
func (t *Scope) open() context.Context {
	outer := t.outer
	switch {
	case t.of != nil:
		outer = t.of.inner
	case t.up != nil:
		outer = t.up.in(outer)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span == nil {
		t.began = time.Now()
		t.inner, t.span = t.run.tracing.Tracer.Start(outer, t.name, trace.WithTimestamp(t.began))
		t.run.name(t.span, t.key)
	}
	return t.inner
}

// Settle ends, and so exports, the scope's span and those around it, the outermost first.
func (t *Scope) Settle() {
	if t == nil {
		return
	}
	t.up.Settle()
	if t.name == "" {
		return
	}
	if t.of != nil {
		t.of.early.Do()
	}
	t.end()
}

// Settled returns the context for spans that are exported below the scope now: ctx, the
// run's, if the scope has no span.
func (t *Scope) Settled(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	if t.name != "" {
		ctx = t.open()
	}
	t.Settle()
	return ctx
}

// end ends the span as it is.
func (t *Scope) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span != nil && !t.over {
		t.over = true
		t.span.End()
	}
}

// End reports how the function of the scope ended: on its span or, if that had to be
// exported before, on another one after it. recorded: the outcome is recorded.
func (t *Scope) End(err error, recorded bool) {
	if t == nil || t.name == "" {
		return
	}
	if !recorded {
		t.end() // spans exported below it find it
		return
	}
	inner := t.open()
	t.up.Settle()
	if t.of != nil {
		t.of.early.Do()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	span := t.span
	if t.over {
		_, span = t.run.tracing.Tracer.Start(inner, "end "+t.name, trace.WithTimestamp(t.began))
	}
	t.over = true
	if span.IsRecording() {
		t.run.describe(span, t.key, outcomeFor(err), err)
	}
	span.End()
}

// outcomeFor returns the value of durable.outcome for a recorded outcome.
func outcomeFor(err error) string {
	if err != nil {
		return OutcomeFailed
	}
	return OutcomeOK
}

// A Wait is something that a run has waited for, and how that ended.
type Wait struct {
	Name    string     // of the span
	Began   store.Time // 0: now
	Outcome string
	Err     error
	Attrs   []attribute.KeyValue
	Link    trace.Link // none unless its span context is valid
}

// Waited makes the span of a wait that is over; ctx is the run's. The span is not open while
// the run waits, which may be for years and in many processes: its start time is set
// afterwards.
func (t *Scope) Waited(ctx context.Context, key string, w Wait) {
	if t == nil {
		return
	}
	ctx = t.Settled(ctx)
	began := time.Now()
	if w.Began != 0 {
		began = t.run.tracing.LocalTime(w.Began)
	}
	_, span := t.run.tracing.Tracer.Start(ctx, w.Name, trace.WithTimestamp(began))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	t.run.describe(span, key, w.Outcome, w.Err)
	span.SetAttributes(w.Attrs...)
	if w.Link.SpanContext.IsValid() {
		span.AddLink(w.Link)
	}
}
