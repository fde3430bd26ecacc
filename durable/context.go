package durable

import (
	"context"
	"fmt"
	"sync/atomic"
)

type engineKey struct{}

// NewContext returns a context that carries e: Start, Recover and the other
// functions of this package find it there.
func NewContext(ctx context.Context, e *Engine) context.Context {
	return context.WithValue(ctx, engineKey{}, e)
}

var defaultEngine atomic.Pointer[Engine]

// SetDefault makes e the engine for contexts that carry none; nil takes it
// back. A program with one engine sets it once, after Open.
func SetDefault(e *Engine) { defaultEngine.Store(e) }

// engineOf finds the engine of ctx: that of the run it belongs to, the one put
// there with NewContext, or the default.
func engineOf(ctx context.Context) (*Engine, error) {
	if ctx == nil {
		return nil, fmt.Errorf("durable: the context is nil: %w", ErrInvalid)
	}
	switch v := ctx.Value(scopeKey{}).(type) {
	case *scope:
		return v.run.eng, nil
	case *attempt:
		return v.step.call.scope.run.eng, nil
	}
	if e, ok := ctx.Value(engineKey{}).(*Engine); ok && e != nil {
		return e, nil
	}
	if e := defaultEngine.Load(); e != nil {
		return e, nil
	}
	return nil, ErrNoEngine
}
