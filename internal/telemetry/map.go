package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/store"
)

// A Map is the span of a Map. There is one for all the processes in which the Map is in
// progress: its context is in the event by which the Map begins. A nil Map is not traced.
type Map struct {
	scope     *Scope
	name, key string
	inner     context.Context // with the span
	kept      trace.SpanContext
	began     time.Time // when the span began; zero: in another process
	early     *commit.Early
}

// Map begins the span of a Map, which is open until the first event after the Map's
// beginning is to be recorded; ctx is that of the call.
func (t *Scope) Map(ctx context.Context, name, key string) *Map {
	if t == nil {
		return nil
	}
	m, _ := t.beginMap(ctx, name, key)
	return m
}

func (t *Scope) beginMap(ctx context.Context, name, key string) (*Map, trace.Span) {
	m := &Map{scope: t, name: name, key: key, began: time.Now()}
	var span trace.Span
	m.inner, span = t.run.tracing.Tracer.Start(t.in(ctx), "map "+name, trace.WithTimestamp(m.began))
	t.run.name(span, key)
	m.kept = span.SpanContext()
	m.early = commit.NewEarly(func() {
		t.Settle() // the spans around it first
		span.End()
	})
	return m, span
}

// MapAgain continues the span of a Map that was in progress before; kept is the context that
// the event of its beginning has. It makes another span if that one is in another trace, to
// which nothing of this segment belongs, or if the Map was not traced before.
func (t *Scope) MapAgain(ctx context.Context, name, key, kept string) *Map {
	if t == nil {
		return nil
	}
	before := Parse(kept)
	if before.IsValid() && before.TraceID() == trace.SpanContextFromContext(t.in(ctx)).TraceID() {
		return &Map{scope: t, name: name, key: key, inner: trace.ContextWithRemoteSpanContext(ctx, before), early: commit.NewEarly(func() {})}
	}
	m, span := t.beginMap(ctx, name, key)
	if before.IsValid() {
		span.AddLink(Link(before, LinkPrevious))
	}
	return m
}

// Begun returns the context of the span for the event by which the Map begins, and what must be
// done before that event is durable: the span is exported.
func (m *Map) Begun() (kept string, early *commit.Early) {
	if m == nil {
		return "", nil
	}
	return Format(m.kept), m.early
}

// Ended returns what must be done before the end of the Map is durable: it exports the
// span, and another one, from the Map's beginning, that says how the Map ended, over all
// processes. opened is when the Map began according to the history; 0: this process has
// begun it.
func (m *Map) Ended(opened store.Time, items, failed, undone int, err error) *commit.Early {
	if m == nil {
		return nil
	}
	t, began := m.scope.run, m.began
	if opened != 0 {
		began = t.tracing.LocalTime(opened)
	}
	ended := notBefore(began, time.Now())
	return commit.NewEarly(func() {
		m.early.Do()
		_, span := t.tracing.Tracer.Start(m.inner, "end map "+m.name, trace.WithTimestamp(began))
		defer span.End(trace.WithTimestamp(ended))
		if !span.IsRecording() {
			return
		}
		t.describe(span, m.key, outcomeFor(err), err)
		span.SetAttributes(AttrItems.Int(items), AttrItemsFailed.Int(failed), AttrItemsUndone.Int(undone))
	})
}
