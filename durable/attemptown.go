package durable

import (
	"encoding/json"
	"fmt"
	"sync"
)

// attemptOwn is what a body that asks more of its attempt than a context has with it. A
// body that asks for nothing costs no lock.
type attemptOwn struct {
	// failures of the earlier attempts, as they were when this one began: the step's
	// own slice grows while a goroutine that the body left behind may still read this
	// one.
	failures []Failure

	// saving is held while progress is written and while the attempt ends, so that
	// what a goroutine of the body saves is recorded before the outcome, or not at
	// all.
	saving sync.Mutex
	over   bool // nothing more is accepted; written under saving and mu, read under either

	mu    sync.Mutex // the body may use goroutines
	notes map[string]json.RawMessage
	size  int
	local locals
	// requests counts the requests made without an id, by run and name.
	requests map[[2]string]int
}

// notUsed stands for what an attempt that has ended did not need.
var notUsed = &attemptOwn{over: true}

// use returns what the attempt has beside its context, and makes it when it is first
// needed: also after the attempt has ended, by a goroutine that its body left behind.
func (a *attempt) use() *attemptOwn {
	for {
		had := a.own.Load()
		if had != nil && had != notUsed {
			return had
		}
		if o := (&attemptOwn{over: had == notUsed}); a.own.CompareAndSwap(had, o) {
			return o
		}
	}
}

// end closes the attempt to the goroutines that its body left behind. It waits for
// any write of theirs in progress.
func (a *attempt) end() {
	if a.own.CompareAndSwap(nil, notUsed) {
		return
	}
	o := a.own.Load()
	o.saving.Lock()
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.saving.Unlock()
	a.release()
}

// errOver is the error for a goroutine that a body left behind.
func (a *attempt) errOver(what string) error {
	return fmt.Errorf("%w: %s: attempt %d of step %s in run %s has ended; a body must wait for its goroutines", ErrOutsideRun, what, a.number, a.step.call.key, a.step.call.scope.run.id)
}
