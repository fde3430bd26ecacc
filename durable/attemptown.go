package durable

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/stepbody"
	"github.com/holdfast-dev/holdfast/store"
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
	local stepbody.Locals
	saved store.Time // when progress was last recorded; 0: not yet
	// requests counts the requests made without an id, by run and name.
	requests map[[2]string]int

	// late stands for an attempt that nobody had seen before it ended: its step is another one
	// now. nil: the attempt itself.
	late *attempt
}

// The states of an attempt that has nothing of its own. Once somebody has seen it, its step
// is kept as long as it is. Most bodies do not look, and the memory of their step is used
// again; who keeps the context of such a body and looks later, sees late.
var (
	attemptSeen     = &attemptOwn{}
	attemptUnseen   = &attemptOwn{over: true} // it has ended
	attemptSeenOver = &attemptOwn{over: true} // likewise
)

// holds reports whether the attempt has something of its own.
func holds(o *attemptOwn) bool {
	return o != nil && o != attemptSeen && o != attemptUnseen && o != attemptSeenOver
}

// see returns the attempt for code that looks at more of it than its context.
func (a *attempt) see() *attempt {
	for {
		switch had := a.own.Load(); {
		case had == nil:
			if a.own.CompareAndSwap(nil, attemptSeen) {
				return a
			}
		case had == attemptUnseen:
			a.use()
		case had.late != nil:
			return had.late
		default:
			return a
		}
	}
}

// use returns what the attempt has beside its context, and makes it when it is first
// needed: also after the attempt has ended, by a goroutine that its body left behind.
func (a *attempt) use() *attemptOwn {
	for {
		had := a.own.Load()
		if holds(had) {
			return had
		}
		o := &attemptOwn{over: had == attemptUnseen || had == attemptSeenOver}
		if had == attemptUnseen {
			late := &attempt{Context: a.Context, scope: a.scope, key: a.key, number: a.number, policy: a.policy, term: a.term}
			late.step = &step{call: call{scope: a.scope, key: a.key}, policy: a.policy}
			late.own.Store(&attemptOwn{over: true})
			o.late = late
		}
		if a.own.CompareAndSwap(had, o) {
			return o
		}
	}
}

// end closes the attempt to the goroutines that its body left behind. It waits for
// any write of theirs in progress. It reports whether nobody has seen it.
func (a *attempt) end() bool {
	if a.own.CompareAndSwap(nil, attemptUnseen) {
		return true
	}
	if a.own.CompareAndSwap(attemptSeen, attemptSeenOver) {
		return false
	}
	o := a.own.Load()
	o.saving.Lock()
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.saving.Unlock()
	a.release()
	return false
}

// lastSaved returns when the last progress of an attempt that has ended was recorded; 0: there is
// none.
func (a *attempt) lastSaved() store.Time {
	o := a.own.Load()
	if !holds(o) {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.saved
}

// keepSaved keeps what was saved under a name. The attempt under way alone calls it. It changes no map
// that is there: goroutines that the bodies of earlier attempts have left behind read it, too.
func (st *step) keepSaved(slot string, env []byte) {
	all := map[string][]byte{slot: env}
	if before := st.saved.Load(); before != nil {
		all = maps.Clone(*before)
		all[slot] = env
	}
	st.saved.Store(&all)
}

// savedHere returns what this execution has saved under a name, if it has.
func (st *step) savedHere(slot string) (env []byte, ok bool) {
	if all := st.saved.Load(); all != nil {
		env, ok = (*all)[slot]
	}
	return env, ok
}

// errOver is the error for a goroutine that a body left behind.
func (a *attempt) errOver(what string) error {
	return fmt.Errorf("%w: %s: attempt %d of step %s in run %s has ended; a body must wait for its goroutines", ErrOutsideRun, what, a.number, a.key, a.scope.run.id)
}
