package durable

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// OnceOption changes how Once deals with an unknown outcome.
type OnceOption[T any] func(*onceOptions[T])

type onceOptions[T any] struct {
	reconcile func(context.Context) (T, bool, error)
}

// Reconcile gives Once a function that finds out, after a crash, whether the
// effect has happened, for example by asking the service. If it has, v is
// recorded as the result; if it has not, the body runs. If the lease ends meanwhile,
// fn is asked again. An error of fn leaves the outcome unknown, and is recorded.
func Reconcile[T any](fn func(ctx context.Context) (v T, happened bool, err error)) OnceOption[T] {
	return func(o *onceOptions[T]) { o.reconcile = fn }
}

// UnknownOutcomeError says that the body of Once had begun when its process
// ended, and that it is not known what the body has done. It is the recorded
// failure of the step.
type UnknownOutcomeError struct {
	RunID string `json:"run_id"`
	Key   string `json:"key"`
	Why   string `json:"why,omitempty"` // what Reconcile said, if it failed
}

func (e *UnknownOutcomeError) Error() string {
	s := fmt.Sprintf("run %s: %s had begun when its process ended, and its outcome is unknown: find out whether it has happened, or give Once a Reconcile", e.RunID, e.Key)
	if e.Why != "" {
		s += " that succeeds: " + e.Why
	}
	return s
}

// Is matches ErrUnknownOutcome.
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrUnknownOutcome }

// Once is Step for an effect that must not happen twice and cannot be repeated
// safely: its body runs at most once. Once first records that the body is about
// to run, which costs a write. If the process ends before the outcome is
// recorded, the step fails with an *UnknownOutcomeError, unless Reconcile
// decides.
//
// Errors are those of Step. The *UnknownOutcomeError is recorded, and matches
// ErrUnknownOutcome.
func Once[T any](ctx context.Context, name string, fn func(ctx context.Context) (T, error), o ...OnceOption[T]) (T, error) {
	var opts onceOptions[T]
	if err := guard.Options(&opts, o); err != nil {
		var zero T
		return zero, fmt.Errorf("durable: step %q: %w", name, err)
	}
	if fn == nil {
		return perform(ctx, name, once, fn, nil, nil)
	}
	body := func(ctx context.Context) (v T, err error) {
		a, _ := inBody(ctx)
		if a.step.begun() { // else its intent has just been recorded
			unknown := &UnknownOutcomeError{RunID: a.step.call.scope.run.id, Key: a.step.call.key}
			if opts.reconcile == nil {
				return v, Permanent(unknown)
			}
			var happened bool
			if fault := guard.Call(func() { v, happened, err = opts.reconcile(ctx) }); fault != nil {
				err = fmt.Errorf("the function of Reconcile: %w", fault) // it has decided nothing
			}
			switch {
			case err != nil:
				unknown.Why = faults.Message(err)
				return v, Permanent(unknown)
			case happened:
				return v, nil
			}
		}
		if err := a.mayBegin(ctx); err != nil { // the last thing before: whoever has the run now may begin it, or has asked, too
			a.idle = true
			return v, err
		}
		if fake := stepbody.FakeOf(ctx); fake != nil {
			return stepbody.StandIn[T](ctx, fake)
		}
		return fn(ctx)
	}
	return perform(ctx, name, once, body, nil, []StepOption{func(o *stepOptions) { o.long, o.once = true, true }})
}
