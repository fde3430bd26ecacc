package durable

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// Options.Around wraps every attempt. It belongs to this process, and the
// history shows of it only the attempt's outcome, so a program may change it
// from one deployment to the next.

// ErrNoResult: a function of Options.Around returned nil without having called
// next, so the attempt has no result. It is recorded as a failed attempt.
var ErrNoResult = errors.New("durable: a function of Options.Around returned nil without having called next: the attempt has no result. Return an error to fail it")

// errNextAgain is what next returns when the body may no longer run.
var errNextAgain = errors.New("durable: Options.Around: next was called a second time, or after the attempt had ended; a body runs once in an attempt")

// checkAround returns an error unless every function can be called.
func checkAround(list []func(context.Context, AttemptInfo, func(context.Context) error) error) error {
	for i, f := range list {
		if f == nil {
			return fmt.Errorf("durable: Options.Around[%d] is nil: %w", i, ErrInvalid)
		}
	}
	return nil
}

// chain is one attempt that runs within Options.Around.
type chain struct {
	list    []func(context.Context, AttemptInfo, func(context.Context) error) error
	attempt *attempt
	info    AttemptInfo
	body    body

	state   atomic.Int32  // see the constants below
	over    chan struct{} // closed when the body has returned
	payload []byte
	err     error                 // of the body
	inner   atomic.Pointer[error] // the last error that any next returned
}

const (
	chainOpen   int32 = iota // the body has not begun
	chainBegun               // it has, and runs to its end
	chainClosed              // it must not begin any more
)

// around runs the body of an attempt within the functions of Options.Around.
// The outcome is the body's, unless they turn it into an error: they cannot
// make a result.
func (st *step) around(a *attempt, b body) (payload []byte, err error) {
	c := &chain{list: st.call.scope.run.eng.options.Around, attempt: a, info: Attempt(a), body: b, over: make(chan struct{})}
	// Also when one of them panics: a body that it has left running on another
	// goroutine must have ended before the attempt does, or two attempts of a
	// step would run at once.
	defer func() {
		c.close()
		a.idle = a.idle || c.state.Load() != chainBegun
	}()
	err = c.call(a, 0)
	c.close()
	begun := c.state.Load() == chainBegun
	switch {
	case err != nil && begun && c.err != nil:
		return c.payload, err // what Seek's check refused is kept with the failure
	case err != nil:
		return nil, err
	case begun:
		return c.payload, c.err
	case c.inner.Load() != nil:
		return nil, *c.inner.Load()
	}
	return nil, ErrNoResult
}

// close ends the time in which the body may begin, and waits for it if it has.
func (c *chain) close() {
	if !c.state.CompareAndSwap(chainOpen, chainClosed) && c.state.Load() == chainBegun {
		<-c.over
	}
}

// call calls function number i, or the body after the last one.
func (c *chain) call(ctx context.Context, i int) error {
	if i == len(c.list) {
		return c.run(ctx)
	}
	return c.list[i](ctx, c.info, func(ctx context.Context) error {
		err := c.call(ctx, i+1)
		if err != nil {
			c.inner.Store(&err)
		}
		return err
	})
}

// run runs the body, once. A panic of the body becomes its error here, since
// next may have been called on another goroutine.
func (c *chain) run(ctx context.Context) (err error) {
	if ctx == nil || ctx.Value(scopeKey{}) != c.attempt {
		return fmt.Errorf("durable: Options.Around: next needs the context the function was given, or one derived from it: %w", ErrInvalid)
	}
	if c.state.Load() != chainOpen {
		return errNextAgain // whatever else would keep a second body from beginning
	}
	if err := c.attempt.mayBegin(ctx); err != nil {
		return err
	}
	if !c.state.CompareAndSwap(chainOpen, chainBegun) {
		return errNextAgain
	}
	defer close(c.over)
	c.err = ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			c.err = guard.Panicked(v)
			err = c.err
		}
	}()
	st := c.attempt.step
	if fake := stepbody.FakeOf(ctx); fake != nil && !(st.once && st.begun()) {
		c.payload, c.err = c.body.faked(ctx, fake)
	} else {
		c.payload, c.err = c.body.once(ctx) // that of Once, if it had begun, first decides whether it runs
	}
	return c.err
}
