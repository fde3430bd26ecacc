package durable

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// stepSpans are the spans of a step in this execution: its own and that of the
// attempt under way. It is made only when the run is traced.
type stepSpans struct {
	outer   context.Context // the span around the step is in it
	inner   context.Context // the step's own is
	span    trace.Span
	over    bool
	attempt trace.Span      // nil: none is under way
	body    context.Context // the span of the last attempt is in it
}

// attemptEnd is how an attempt, or a step without one, came to its end.
type attemptEnd struct {
	number   int
	at       time.Time // when the body returned; what came later is recording
	took     time.Duration
	outcome  string
	err      error // of the body
	final    bool  // it is the step's outcome
	recorded bool
}

// settled returns end with what became of recording it: final if it is to be the
// step's outcome.
func (end attemptEnd) settled(err error, final bool) attemptEnd {
	end.final, end.recorded = final, err == nil
	if err != nil {
		end.outcome = telemetry.OutcomeUnrecorded
	}
	return end
}

// notOfStep returns what step.fail returned unless that is the recorded failure.
func notOfStep(err error) error {
	if _, ok := err.(*StepError); ok {
		return nil
	}
	return err
}

// giveUp records that the step failed without a further attempt.
func (st *step) giveUp(ctx context.Context, n int, err error, reason string) error {
	failed := st.fail(&attempt{step: st, number: n}, err, reason, 0)
	end := attemptEnd{number: n, at: time.Now(), outcome: telemetry.OutcomeFailed, err: err}
	unrecorded := notOfStep(failed)
	if unrecorded == nil && st.start != 0 {
		st.measureStep(failed)
	}
	st.report(ctx, end.settled(unrecorded, true))
	return failed
}

// what says what a step is called in spans: those of compensations undo others.
func (st *step) what() string {
	if st.call.scope.undo {
		return "compensate "
	}
	return "step "
}

// traceStep begins the span of the step, if that is not done.
func (st *step) traceStep(ctx context.Context) *stepSpans {
	if st.spans == nil {
		s := st.call.scope
		t := &stepSpans{outer: s.tracing(ctx)}
		t.inner, t.span = s.run.eng.tracing.Tracer.Start(t.outer, st.what()+st.call.name)
		if t.span.IsRecording() {
			t.span.SetAttributes(telemetry.AttrRun.String(s.run.id), telemetry.AttrWorkflow.String(s.run.def.name), telemetry.AttrKey.String(st.call.key))
		}
		st.spans = t
	}
	return st.spans
}

// traceAttempt begins the span of attempt n and returns the context for its
// body; without a tracer it does nothing.
func (st *step) traceAttempt(ctx context.Context, n int) context.Context {
	r := st.call.scope.run
	if r.spans.segment == nil {
		return ctx
	}
	t := st.traceStep(ctx)
	inner, span := r.eng.tracing.Tracer.Start(t.inner, "attempt "+st.call.name)
	if span.IsRecording() {
		span.SetAttributes(telemetry.AttrRun.String(r.id), telemetry.AttrWorkflow.String(r.def.name), telemetry.AttrKey.String(st.call.key), telemetry.AttrAttempt.Int(n))
	}
	t.attempt, t.body = span, inner
	return inner
}

// traced reports whether anybody hears of an attempt that went well.
func (st *step) traced(ctx context.Context) bool {
	r := st.call.scope.run
	return r.spans.segment != nil || r.eng.log.Enabled(ctx, slog.LevelDebug)
}

// report says how an attempt ended, in spans and in the log, once what it came to
// is recorded: a process that is killed before has made no attempt that counts.
func (st *step) report(ctx context.Context, end attemptEnd) {
	if st.call.scope.run.spans.segment != nil {
		st.traceEnd(ctx, end)
	}
	st.logAttempt(ctx, end)
}

// traceEnd ends the span of an attempt, and before it those around it.
func (st *step) traceEnd(ctx context.Context, end attemptEnd) {
	s := st.call.scope
	e := s.run.eng
	t := st.traceStep(ctx)
	s.settle()
	last := end.final && end.recorded
	if !t.over {
		if last && t.span.IsRecording() {
			t.span.SetAttributes(telemetry.AttrAttempt.Int(end.number))
			s.run.spans.describe(t.span, st.call.key, end.outcome, end.err)
		}
		t.over = true
		t.span.End()
	}
	if span := t.attempt; span != nil {
		t.attempt = nil
		if span.IsRecording() {
			s.run.spans.describe(span, st.call.key, end.outcome, end.err)
			if end.outcome == telemetry.OutcomeFailed {
				e.tracing.AddException(span, end.err, end.at)
			}
		}
		span.End(trace.WithTimestamp(end.at))
	}
	if last && len(st.failures) > 0 {
		st.traceWhole(t, end)
	}
}

// traceWhole makes the span of a step that took several attempts, maybe in
// several processes: from the first one's beginning to now, each failure an
// event.
func (st *step) traceWhole(t *stepSpans, end attemptEnd) {
	s := st.call.scope
	e := s.run.eng
	_, span := e.tracing.Tracer.Start(t.inner, "end "+st.what()+st.call.name, trace.WithTimestamp(e.tracing.LocalTime(st.start)))
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(telemetry.AttrAttempt.Int(end.number))
	for i := range st.failures {
		f := &st.failures[i]
		e.tracing.AddException(span, f.Err, e.tracing.LocalTime(store.TimeOf(f.At)), telemetry.AttrAttempt.Int(f.Attempt))
	}
	if end.outcome == telemetry.OutcomeFailed {
		e.tracing.AddException(span, end.err, end.at, telemetry.AttrAttempt.Int(end.number))
	}
	s.run.spans.describe(span, st.call.key, end.outcome, end.err)
}

// logAttempt logs how an attempt ended: at DEBUG, and at WARN when nothing is
// tried any more.
func (st *step) logAttempt(ctx context.Context, end attemptEnd) {
	r := st.call.scope.run
	level := slog.LevelDebug
	exhausted := end.final && end.recorded && end.outcome == telemetry.OutcomeFailed && st.policy.MaxAttempts != 1
	if exhausted {
		level = slog.LevelWarn
	}
	log := r.eng.log.Logger
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := append(runlog.RunAttrs(st.measuredIn(), &r.row), slog.String("step", st.call.key), slog.Int("attempt", end.number), slog.String("outcome", end.outcome),
		slog.Float64("took_ms", runlog.Millis(end.took)))
	if end.err != nil {
		attrs = append(attrs, r.eng.log.ErrorAttr(end.err))
	}
	if exhausted {
		log.LogAttrs(ctx, level, "durable: step failed and is not tried again", attrs...)
		return
	}
	log.LogAttrs(ctx, level, "durable: attempt ended", attrs...)
}

// measureStep records how long the step took to come to an outcome, which is recorded.
func (st *step) measureStep(err error) {
	r := st.call.scope.run
	r.eng.metrics.StepEnded(st.measuredIn(), r.row.Workflow, st.start, err)
}

// measuredIn returns a context with the span of the attempt that was made last,
// or of the run.
func (st *step) measuredIn() context.Context {
	if t := st.spans; t != nil && t.body != nil {
		return t.body
	}
	return st.call.scope.run.ctx
}
