package durable

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// ErrLeaseExpired: this executor could not renew its lease in time, so another one may take its runs. It is the
// cause with which the contexts of running step bodies end, shortly before the lease runs out. If the run is
// still this executor's once the store takes a heartbeat again, it goes on: an error that the body returned is
// not recorded, and the attempt runs again; a result is recorded.
var ErrLeaseExpired = errors.New("durable: the lease could not be renewed in time, and another executor may take the run")

// bounds is the context of a body that looks at its context. It ends with the context that the body was called
// with, with the term of the lease, and when the body has returned. A body that does not look needs none.
type bounds struct {
	context.Context
	cancel context.CancelCauseFunc
	stop   func() bool
}

// mayBegin waits until the body of a may begin with ctx, after what may have taken long, or returns why it may not.
func (a *attempt) mayBegin(ctx context.Context) error {
	waits := !a.scope.run.eng.heart.Lease.Holds(time.Now())
	a.vain.Store(waits) // before: a function of Around may not wait as long
	if err := a.step.awaitLease(); err != nil {
		a.barred.Store(true)
		return err
	}
	if _, limited := ctx.Deadline(); limited && waits || a.term.Over() {
		a.vain.Store(true)
		return ErrLeaseExpired // not an outcome: a later attempt has a context that has not ended, and all of its time
	}
	return nil
}

// awaitLease waits until a body of the step may begin, or returns why none may.
func (st *step) awaitLease() error {
	s, lease := st.call.scope, st.call.scope.run.eng.heart
	stopped := s.run.stop.done
	if s.undo {
		stopped = nil
	}
	if !lease.AwaitLease(s.run.gone, stopped) && st.goesOn() {
		lease.AwaitLease(s.run.ctx.Done(), stopped)
	}
	return st.barred()
}

// barred returns why no body of the step may begin although the lease holds, nil if one may.
func (st *step) barred() error {
	if err := st.call.scope.stopped(); err != nil && !st.goesOn() {
		return err
	}
	return nil
}

// goesOn reports whether the body of Once begins although its run was paused or parked, or is being shut down. That
// it begins is on record, so it is one of the bodies that go on to their end; if it were left out, its outcome would
// be unknown for good. One that may have begun before is not: Reconcile is asked again.
func (st *step) goesOn() bool {
	r := st.call.scope.run
	d := r.dead.Load()
	return st.once && st.said && !st.begun() && r.stop.cause() == nil && r.ctx.Err() == nil && d != nil && (d.kind == deathPaused || d.kind == deathShutdown || d.kind == deathParked)
}

// bound returns the bounds of the body, and makes them when they are first needed.
func (a *attempt) bound() context.Context {
	if b := a.bounds.Load(); b != nil {
		return b
	}
	o := a.use() // first, so that the end of the attempt ends what is made here
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := a.bounds.Load(); b != nil {
		return b
	}
	b := &bounds{stop: func() bool { return true }}
	b.Context, b.cancel = context.WithCancelCause(a.Context)
	switch {
	case o.over:
		b.cancel(nil)
	case a.term.Over():
		b.cancel(ErrLeaseExpired)
	case a.term != nil:
		b.stop = a.term.OnEnd(func() { b.cancel(ErrLeaseExpired) })
	}
	a.bounds.Store(b)
	return b
}

// release ends the context of a body that has returned.
func (a *attempt) release() {
	if b := a.bounds.Load(); b != nil {
		b.stop()
		b.cancel(nil)
	}
}

// Done, Err and Value make an attempt a context that ends with its term.

func (a *attempt) Done() <-chan struct{} { return a.bound().Done() }

func (a *attempt) Err() error {
	if a.bounds.Load() == nil && !a.term.Over() {
		return a.Context.Err()
	}
	return a.bound().Err()
}

func (a *attempt) Value(key any) any {
	switch key {
	case scopeKey{}:
		return a.see()
	case stepbody.Key{}:
		return stepbody.Body(a.see())
	}
	if b := a.bounds.Load(); b != nil {
		return b.Value(key)
	}
	return a.Context.Value(key)
}
