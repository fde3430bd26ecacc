package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/store"
)

// A Step has the spans of a step in this execution: its own and that of the attempt in
// progress. A nil Step is not traced.
type Step struct {
	scope   *Scope
	name    string // "step pay"
	call    string // "pay"
	key     string
	inner   context.Context // with the step's own span
	span    trace.Span
	over    bool
	attempt trace.Span      // nil: none is in progress
	began   time.Time       // when that began
	body    context.Context // with the span of the last attempt
}

// Step begins the span of a step that was called with ctx; undo: it is a compensation.
func (t *Scope) Step(ctx context.Context, name, key string, undo bool) *Step {
	if t == nil {
		return nil
	}
	what := "step "
	if undo {
		what = "compensate "
	}
	st := &Step{scope: t, name: what + name, call: name, key: key}
	st.inner, st.span = t.run.tracing.Tracer.Start(t.in(ctx), st.name)
	t.run.name(st.span, key)
	return st
}

// Attempt begins the span of attempt n and returns the context for its body; without a
// tracer that is ctx.
func (st *Step) Attempt(ctx context.Context, n int) context.Context {
	if st == nil {
		return ctx
	}
	t := st.scope.run
	st.began = time.Now()
	st.body, st.attempt = t.tracing.Tracer.Start(st.inner, "attempt "+st.call, trace.WithTimestamp(st.began))
	t.name(st.attempt, st.key, AttrAttempt.Int(n))
	return st.body
}

// Context returns a context with the span of the last attempt; ctx, the run's, if there
// is none.
func (st *Step) Context(ctx context.Context) context.Context {
	if st == nil || st.body == nil {
		return ctx
	}
	return st.body
}

// AttemptEnd is how an attempt, or a step without one, ended.
type AttemptEnd struct {
	Number   int
	At       time.Time // when the body returned; recording comes later
	Took     time.Duration
	Outcome  string
	Err      error // of the body
	Final    bool  // it is the step's outcome
	Recorded bool
}

// Settled returns end with the result err of recording it; final: it is to be the step's
// outcome.
func (end AttemptEnd) Settled(err error, final bool) AttemptEnd {
	end.Final, end.Recorded = final, err == nil
	if err != nil {
		end.Outcome = OutcomeUnrecorded
	}
	return end
}

// Last reports whether the step has ended with this attempt.
func (end *AttemptEnd) Last() bool { return end.Final && end.Recorded }

// A Failure is a failed attempt that was followed by another.
type Failure struct {
	Attempt int
	At      store.Time
	Err     error
}

// End ends the span of an attempt, and before it those around it. began is when the step's first
// attempt began; before are the step's failures if this attempt was the last.
func (st *Step) End(end AttemptEnd, began store.Time, before []Failure) {
	if st == nil {
		return
	}
	t := st.scope.run
	st.scope.Settle()
	if !st.over {
		if end.Last() && st.span.IsRecording() {
			st.span.SetAttributes(AttrAttempt.Int(end.Number))
			t.describe(st.span, st.key, end.Outcome, end.Err)
		}
		st.over = true
		st.span.End()
	}
	if span := st.attempt; span != nil {
		st.attempt = nil
		end.At = notBefore(st.began, end.At)
		if span.IsRecording() {
			t.describe(span, st.key, end.Outcome, end.Err)
			if end.Outcome == OutcomeFailed {
				t.tracing.AddException(span, end.Err, end.At)
			}
		}
		span.End(trace.WithTimestamp(end.At))
	}
	if len(before) > 0 {
		st.endWhole(end, began, before)
	}
}

// endWhole makes the span of a step that took several attempts, maybe in
// several processes: from the beginning of the first one to now, with an event for each
// failure.
func (st *Step) endWhole(end AttemptEnd, began store.Time, before []Failure) {
	t := st.scope.run
	_, span := t.tracing.Tracer.Start(st.inner, "end "+st.name, trace.WithTimestamp(t.tracing.LocalTime(began)))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(AttrAttempt.Int(end.Number))
	for i := range before {
		f := &before[i]
		t.tracing.AddException(span, f.Err, t.tracing.LocalTime(f.At), AttrAttempt.Int(f.Attempt))
	}
	if end.Outcome == OutcomeFailed {
		t.tracing.AddException(span, end.Err, end.At, AttrAttempt.Int(end.Number))
	}
	t.describe(span, st.key, end.Outcome, end.Err)
}
