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
// below it: a branch of which everything is replayed has none. All methods of a nil Scope,
// that of a run which nobody traces, do nothing.
type Scope struct {
	run *Run
	up  *Scope // the one around it; nil: none

	name  string // "branch pack"; empty: it has no span
	key   string
	outer context.Context // that of the function which opened the scope
	// around is the span in it: of the segment, the scope around, or the
	// user's own.
	around trace.SpanID
	of     *Map // of an item: its Map

	mu    sync.Mutex // branches of the scope meet here
	inner context.Context
	span  trace.Span
	began time.Time
	over  bool
}

// Root returns the scope of the run's workflow function, and that of its compensations, which
// have no span of their own; nil: nobody traces.
func (t *Run) Root() *Scope {
	if t.Segment == nil {
		return nil
	}
	return &t.root
}

// Child returns the scope of a branch or an item. Without Begin it has no span, and what is in
// it is below the scopes around it.
func (t *Scope) Child() *Scope {
	if t == nil {
		return nil
	}
	return &Scope{run: t.run, up: t}
}

// Begin gives the scope its span. ctx is that of the call which opens the scope, and of is the
// Map that the scope is an item of, if it is one. It returns the context for the function of the
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

// in returns ctx with the span that what is done in the scope is below: the scope's own,
// unless the user has put one around the call.
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

// open begins the span, once, and returns the context it is in.
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

// Settle ends, and so exports, the spans around what happens in the scope, the outermost
// first.
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

// Settled returns the context for what is exported below the scope now: ctx, the run's, if
// the scope has no span.
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
// exported before, on one after it. recorded: the outcome is.
func (t *Scope) End(err error, recorded bool) {
	if t == nil || t.name == "" {
		return
	}
	if !recorded {
		t.end() // what was exported below it finds it
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

// outcomeFor returns durable.outcome for an outcome that was recorded.
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
// the run waits, which may be for years and in many processes: its beginning is stamped.
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
