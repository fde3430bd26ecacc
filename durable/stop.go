package durable

import (
	"errors"
	"sync"
)

// A stop ends a run from outside: somebody's cancel, or its deadline. Neither is
// a fence. Bodies under way have their context ended and what they still
// complete is recorded; calls that the history does not hold return the cause;
// compensations run, and then the run ends as its cause says.
//
// Nothing of a stop is kept but where it comes from, the message or the recorded
// deadline, so an execution that begins anew is stopped again while it replays.
// It then meets the cause at the same call: the first one that is not recorded.
type stop struct {
	once  sync.Once
	cause error         // set before done is closed
	done  chan struct{} // closed when the run was stopped
}

// stopBy stops the execution for a cause, unless it was stopped before.
func (r *run) stopBy(cause error) {
	r.stop.once.Do(func() {
		r.stop.cause = cause
		close(r.stop.done)
		r.cancel(cause)
	})
}

// stopCause returns what stopped the run, nil if nothing has.
func (r *run) stopCause() error {
	select {
	case <-r.stop.done:
		return r.stop.cause
	default:
		return nil
	}
}

// isCancelled reports whether it was a cancel that stopped the run.
func (r *run) isCancelled() bool { return errors.Is(r.stopCause(), ErrCancelled) }
