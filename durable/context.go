package durable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// scopeKey is the key under which a context of ours holds a *scope in a workflow
// function, and an *attempt in a step's body.
type scopeKey struct{}

// scopeContext is the context of a workflow function.
type scopeContext struct {
	context.Context
	scope *scope
}

func (c *scopeContext) Value(key any) any {
	if key == (scopeKey{}) {
		return c.scope
	}
	return c.Context.Value(key)
}

// inScope returns the scope whose function was given ctx; false in a step's body and
// outside a run.
func inScope(ctx context.Context) (*scope, bool) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	return s, ok
}

// inBody returns the attempt whose body was given ctx; false in a workflow function and
// outside a run.
func inBody(ctx context.Context) (*attempt, bool) {
	a, ok := ctx.Value(scopeKey{}).(*attempt)
	return a, ok
}

// scopeOf returns the scope in which a durable call is made.
func scopeOf(ctx context.Context, name string) (*scope, error) {
	if ctx == nil {
		return nil, fmt.Errorf("durable: %q was called with a nil context: %w", name, ErrInvalid)
	}
	switch v := ctx.Value(scopeKey{}).(type) {
	case *scope:
		return v, nil
	case *attempt:
		return nil, v.step.call.scope.run.misused(fmt.Errorf("%w: %q was called in the body of %s. Return from the body and make the call in the workflow function", ErrNested, name, v.step.call.key))
	}
	return nil, fmt.Errorf("%w: %q was called outside a run. Start the workflow with Start, and pass on the ctx its function receives", ErrOutsideRun, name)
}

// ErrInWorkflow: a call that is not recorded was made with the context of a workflow function: a
// replay would make it again, or see another outcome. Such are the methods of Engine that send,
// change or read something, and those of operate.Operator that act.
var ErrInWorkflow = errors.New("durable: this call is not the same on replay and cannot be made in a workflow function; make it in a step")

// outsideFunction refuses a call that every replay would make again, or see otherwise, with the
// context of a workflow function.
func outsideFunction(ctx context.Context, call string) error {
	if ctx == nil {
		return nil
	}
	if s, inRun := inScope(ctx); inRun {
		return s.run.misused(fmt.Errorf("%w: %s in run %s", ErrInWorkflow, call, s.run.id))
	}
	return nil
}

// runOf returns the run whose code was given ctx, nil if there is none.
func runOf(ctx context.Context) *run {
	if ctx == nil {
		return nil
	}
	switch v := ctx.Value(scopeKey{}).(type) {
	case *scope:
		return v.run
	case *attempt:
		return v.step.call.scope.run
	}
	return nil
}

type engineKey struct{}

// NewContext returns a context that carries e: Start, Recover and the other
// functions of this package find it there.
func NewContext(ctx context.Context, e *Engine) context.Context {
	return context.WithValue(ctx, engineKey{}, e)
}

var defaultEngine atomic.Pointer[Engine]

// SetDefault makes e the engine for contexts that carry none; nil removes it. A program
// with one engine sets it once, after Open.
func SetDefault(e *Engine) { defaultEngine.Store(e) }

// engineOf finds the engine of ctx: that of the run it belongs to, the one put
// there with NewContext, or the default.
func engineOf(ctx context.Context) (*Engine, error) {
	if ctx == nil {
		return nil, fmt.Errorf("durable: the context is nil: %w", ErrInvalid)
	}
	if r := runOf(ctx); r != nil {
		return r.eng, nil
	}
	if e, ok := ctx.Value(engineKey{}).(*Engine); ok && e != nil {
		return e, nil
	}
	if e := defaultEngine.Load(); e != nil {
		return e, nil
	}
	return nil, ErrNoEngine
}
