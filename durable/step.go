package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/retry"
	"github.com/holdfast-dev/holdfast/internal/stepbody"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Step runs fn and records its result, or its error, before it returns: from
// then on the outcome never changes, and a replay returns it without running fn
// again. If the process dies while fn runs, or before the outcome is recorded,
// fn runs again after recovery, with the same IdempotencyKey.
//
// The result must survive the codec (JSON by default): what Step returns is
// what a replay will return. A panic of fn is recorded as an error. Within one
// workflow function (and each scope it opens) make steps one after the other.
//
// fn must not make durable calls with its own context, and must not carry state
// past the step in captured variables: on replay fn does not run.
//
// Errors: a *StepError is the failure of fn, as recorded. Any other error records nothing:
// ErrInvalid for a name or options that cannot be used, and those of every durable call
// (package documentation, Errors).
func Step[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error), o ...StepOption) (T, error) {
	return perform(ctx, name, once, fn, nil, o)
}

// Do is Step for a function without a result.
//
// Errors are those of Step.
func Do(ctx context.Context, name string, fn func(ctx context.Context) error, o ...StepOption) error {
	_, err := perform(ctx, name, once, withoutResult(fn), nil, o)
	return err
}

// withoutResult makes a step's body of a function without a result.
func withoutResult(fn func(context.Context) error) func(context.Context) (struct{}, error) {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }
}

// Retry is a Step that is tried again as p says. Every failed attempt is
// recorded before the pause begins: after a crash the step goes on with the
// attempt that was in progress, knows the earlier failures (Attempt), and waits
// only for what is left of the pause.
//
// Errors are those of Step: the *StepError is that of the last attempt. ErrInvalid also for a
// Policy that cannot be used.
func Retry[T any](ctx context.Context, name string, p Policy, fn func(ctx context.Context) (T, error), o ...StepOption) (T, error) {
	return perform(ctx, name, &p, fn, nil, o)
}

// RetryDo is Retry for a function without a result.
//
// Errors are those of Retry.
func RetryDo(ctx context.Context, name string, p Policy, fn func(ctx context.Context) error, o ...StepOption) error {
	_, err := perform(ctx, name, &p, withoutResult(fn), nil, o)
	return err
}

// Seek is Retry until check accepts the result: a result it refuses is a failed
// attempt whose output is recorded and shown to the next one, in
// Attempt(ctx).Failures. check must not have side effects.
//
// Errors are those of Retry. ErrInvalid also for a check that is nil.
func Seek[T any](ctx context.Context, name string, p Policy, fn func(ctx context.Context) (T, error), check func(T) error, o ...StepOption) (T, error) {
	if check == nil {
		var zero T
		return zero, fmt.Errorf("durable: Seek %q: check is nil: %w", name, ErrInvalid)
	}
	return perform(ctx, name, &p, fn, check, o)
}

// StepOption changes one step.
type StepOption func(*stepOptions)

type stepOptions struct {
	relaxed bool
	long    bool
	once    bool
	// transact: the body runs in a transaction.
	transact bool
	input    any
	hasIn    bool
}

// Relaxed lets a cheap step without side effects cost no write of its own: its
// result is recorded with the run's next durable write. If the process dies
// before that, the step runs again.
func Relaxed() StepOption { return func(o *stepOptions) { o.relaxed = true } }

// LongOperation records that the step has begun before its body runs, so that
// an operator sees it in progress. It costs a write.
func LongOperation() StepOption { return func(o *stepOptions) { o.long = true } }

// WithInput records a hash of what the step works on. If a replay passes
// another value, the run stops as if its definition had changed: its history
// would not fit what the code does now.
func WithInput(v any) StepOption {
	return func(o *stepOptions) { o.input, o.hasIn = v, true }
}

// Checkpoint makes the results that Relaxed steps hold back durable now.
//
// Errors are those of every durable call (package documentation, Errors).
func Checkpoint(ctx context.Context) error {
	s, err := scopeOf(ctx, "Checkpoint")
	if err != nil {
		return err
	}
	if err := s.run.alive(); err != nil {
		return err
	}
	return s.run.flush()
}

// perform is every step: find the record, or run the body and make one.
func perform[T any](ctx context.Context, name string, p *Policy, fn func(context.Context) (T, error), check func(T) error, o []StepOption) (T, error) {
	var zero T
	if fn == nil {
		return zero, fmt.Errorf("durable: step %q: the function is nil: %w", name, ErrInvalid)
	}
	s, err := scopeOf(ctx, name)
	if err != nil {
		return zero, err
	}
	st := steps.Get().(*step)
	if st.policy, err = (*retry.Policy)(p).WithDefaults(); err != nil {
		return zero, fmt.Errorf("step %q: %w", name, err)
	}
	if len(o) > 0 {
		if err := st.apply(s.run, name, o); err != nil {
			return zero, err
		}
	}
	if err := s.begin(&st.call, name, history.CallStep); err != nil {
		return zero, err
	}
	defer st.end()
	if err := st.checkInput(); err != nil {
		return zero, err
	}
	if st.call.done() {
		return replayed[T](st, st.call.rec)
	}
	b, ok := st.code.(*bodyOf[T])
	if !ok {
		b = &bodyOf[T]{step: st}
		st.code = b
	}
	b.fn, b.check = fn, check
	if err := st.attempts(ctx, b); err != nil {
		return zero, err
	}
	st.reusable = st.unseen && st.tx == nil
	return b.result, nil
}

// apply applies the options of a step.
func (st *step) apply(r *run, name string, list []StepOption) error {
	var o stepOptions
	if err := guard.Options(&o, list); err != nil {
		return fmt.Errorf("durable: step %q: %w", name, err)
	}
	st.relaxed, st.long, st.once, st.given = o.relaxed, o.long, o.once, o.input
	if o.transact {
		if err := st.useTransaction(&o); err != nil {
			return err
		}
	}
	if err := st.hashInput(r.eng, &o); err != nil {
		return &EncodeError{RunID: r.id, Key: name, Type: fmt.Sprintf("%T", o.input), Err: err}
	}
	return nil
}

// bodyOf is the body of a step with its types. It belongs to the memory of the step, and is used
// again with that for a step with a result of the same type.
type bodyOf[T any] struct {
	step   *step
	fn     func(context.Context) (T, error)
	check  func(T) error
	result T // as a replay will see it
}

// body is what a step runs, without its types.
type body interface {
	// once runs the body and returns the envelope of its result. With an error,
	// it returns the envelope of the result that check refused, if any.
	once(ctx context.Context) (payload []byte, err error)
	// faked is once with a fake in the place of the body.
	faked(ctx context.Context, fake stepbody.Fake) (payload []byte, err error)
	// renew lets go of what belongs to the step that has ended.
	renew()
}

func (b *bodyOf[T]) renew() {
	var none T
	b.fn, b.check, b.result = nil, nil, none
}

func (b *bodyOf[T]) once(ctx context.Context) ([]byte, error) {
	value, err := b.fn(ctx)
	if err != nil {
		return nil, err
	}
	return b.outcome(value)
}

func (b *bodyOf[T]) faked(ctx context.Context, fake stepbody.Fake) ([]byte, error) {
	value, err := stepbody.StandIn[T](ctx, fake)
	if err != nil {
		return nil, err
	}
	return b.outcome(value)
}

// outcome returns the envelope of a result, and checks the result.
func (b *bodyOf[T]) outcome(value T) ([]byte, error) {
	s := b.step.call.scope
	r := s.run
	b.result = value
	payload, err := payload.EncodeAt(r.eng.sealer, r.origin.maxPayload, &b.result, &s.memory.results)
	if err != nil {
		return nil, Permanent(r.refuses(&EncodeError{RunID: r.id, Key: b.step.call.key, Type: reflect.TypeFor[T]().String(), Err: err}))
	}
	if b.check != nil {
		if err := b.check(b.result); err != nil {
			return payload, err
		}
	}
	return payload, nil
}

// replayed returns the recorded outcome of a finished step.
func replayed[T any](st *step, rec *history.Call) (T, error) {
	var value T
	s, r := st.call.scope, st.call.scope.run
	s.lastAt = rec.LastAt
	ev := &rec.Outcome
	if ev.Type == store.StepFailed {
		d, err := history.Of[history.StepEnd](ev)
		if err != nil || d.Error == nil {
			return value, r.damaged(ev.Seq, errors.New("its error is not readable"))
		}
		return value, st.failure(int(ev.Attempt), &d)
	}
	if payload.DecodeInt(ev.Payload, &value) {
		st.reusable = true
		return value, nil
	}
	if recorded, err := r.eng.sealer.DecodeOutcome(payload.PlaceOf(r.id, ev), ev.Payload, &value); err != nil {
		var zero T
		return zero, r.undecodable(rec.Key, recorded, reflect.TypeFor[T](), err)
	}
	st.reusable = true
	return value, nil
}

// trace returns the spans of the step, and begins them if that is not done; nil: nobody traces.
func (st *step) trace(ctx context.Context) *telemetry.Step {
	if st.spans == nil {
		s := st.call.scope
		st.spans = s.trace.Step(ctx, st.call.name, st.call.key, s.undo)
	}
	return st.spans
}

// traced reports whether an attempt that went well is reported anywhere.
func (st *step) traced(ctx context.Context) bool {
	s := st.call.scope
	return s.trace != nil || s.run.eng.log.Enabled(ctx, slog.LevelDebug)
}

// report says how an attempt ended, in spans and in the log, once its outcome is recorded: if the
// process is killed before that, the attempt does not count.
func (st *step) report(ctx context.Context, end telemetry.AttemptEnd) {
	r := st.call.scope.run
	if t := st.trace(ctx); t != nil {
		var before []telemetry.Failure
		if end.Last() {
			for i := range st.failures {
				f := &st.failures[i]
				before = append(before, telemetry.Failure{Attempt: f.Attempt, At: store.TimeOf(f.At), Err: f.Err})
			}
		}
		t.End(end, st.start, before)
	}
	r.eng.log.AttemptEnded(ctx, st.measuredIn(), &r.row, st.call.key, end, st.policy.MaxAttempts != 1)
}

// measureStep records how long the step took to come to an outcome, which is recorded.
func (st *step) measureStep(err error) {
	r := st.call.scope.run
	r.eng.metrics.StepEnded(st.measuredIn(), r.row.Workflow, st.start, err)
}

// measuredIn returns a context with the span of the attempt that was made last,
// or of the run.
func (st *step) measuredIn() context.Context { return st.spans.Context(st.call.scope.run.ctx) }

// giveUp records that the step failed without a further attempt.
func (st *step) giveUp(ctx context.Context, n int, err error, reason string) error {
	failed := st.fail(&attempt{step: st, number: n}, err, reason, 0)
	end := telemetry.AttemptEnd{Number: n, At: time.Now(), Outcome: telemetry.OutcomeFailed, Err: err}
	unrecorded := notOfStep(failed)
	if unrecorded == nil && st.start != 0 {
		st.measureStep(failed)
	}
	st.report(ctx, end.Settled(unrecorded, true))
	return failed
}

// notOfStep returns what step.fail returned unless that is the recorded failure.
func notOfStep(err error) error {
	if _, ok := err.(*StepError); ok {
		return nil
	}
	return err
}

// StepError is the recorded failure of a step. Step and Retry return the same one live
// and on replay.
type StepError struct {
	RunID     string
	Key       string // of the step
	Attempt   int    // the last attempt
	Max       int    // attempts allowed; 0: no limit
	Permanent bool   // the error was marked Permanent or is one that cannot be mended
	Err       error  // as recorded: message, registered sentinels and types
}

func (e *StepError) Error() string {
	// An error of the engine about the step says itself which one it is.
	why := strings.TrimPrefix(fmt.Sprint(e.Err), fmt.Sprintf("run %s: step %s: ", e.RunID, e.Key))
	switch {
	case e.Max == 0:
		why = fmt.Sprintf("attempt %d: %s", e.Attempt, why)
	case e.Max != 1:
		why = fmt.Sprintf("attempt %d of %d: %s", e.Attempt, e.Max, why)
	}
	return fmt.Sprintf("step %s: %s", e.Key, why)
}

func (e *StepError) Unwrap() error { return e.Err }
