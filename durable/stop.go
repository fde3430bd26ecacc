package durable

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
)

// A stop ends a run from outside: a cancel, or its deadline. Neither fences the run:
// the contexts of running bodies end, and what they still complete is recorded; calls
// that are not in the history return the cause; compensations run, and then the run
// ends as its cause says.
//
// The source of a stop is durable: the message, or the recorded deadline. So a new
// execution is stopped again while it replays. It then meets the cause at the same
// call: the first one that is not recorded. Code may also look at its context. That of
// a workflow function, a branch or an item must end at the same place on replay, or
// the code would register other compensations than have run. So the first event of the
// undoing says after which call of each scope the context had ended, and after how
// many waits since then for a branch or a child, which are not calls. If nothing is
// said, nothing was undone, and the context ends with the first call that is not
// recorded: what may have had an effect is registered, and undone.
//
// A stopping owns the stop of a run, and knows whether it ends the run's context yet.
// A request to pause comes in here too, but is a death: it leaves contexts alone.
type stopping struct {
	run  *run
	once sync.Once
	why  error         // set before came
	came atomic.Bool   // set before done is closed: each step asks several times whether the run was stopped
	done chan struct{} // closed when the run was stopped
	// live: the workflow function's own scope has left its history, so that a stop ends
	// the run's context.
	live   atomic.Bool
	reason atomic.Pointer[string] // of the cancel that has reached the run
}

// because stops the execution for a cause, unless it was stopped before.
func (st *stopping) because(cause error) {
	st.once.Do(func() {
		st.why = cause
		st.came.Store(true)
		close(st.done)
		if st.live.Load() {
			st.run.cancel(cause)
		}
	})
}

// cause returns what stopped the run, nil if nothing has.
func (st *stopping) cause() error {
	if !st.came.Load() {
		return nil
	}
	return st.why
}

// reach lets a stop end the run's context from now on, and ends it now if the run was
// stopped before.
func (st *stopping) reach() {
	// because looks at live after it has set the cause, and reach the other way round:
	// one of the two sees both.
	st.live.Store(true)
	if cause := st.cause(); cause != nil {
		st.run.cancel(cause)
	}
}

// leave notes that the scope has left its history: a stop of the run ends the scope's
// context from now on, and one that has come before ends it now. It may be called more
// than once.
func (s *scope) leave() {
	r := s.run
	if !s.left.Swap(true) && s.path != "" {
		r.goroutines.replaying.Add(-1)
	}
	switch {
	case s.path == "":
		r.stop.reach()
	case s.held != nil:
		s.held()
	}
}

// contextLag is how long a context lives on after the last recorded call of a run
// that was stopped, if no call follows: its code may wait for the end of the context
// alone.
const contextLag = time.Second

// afterCall is called when a call has ended; c is nil for one without an ordinal. It
// ends the context of the scope at the place where that must end.
func (s *scope) afterCall(c *call) {
	r := s.run
	ordinal := int32(0)
	if c == nil {
		s.waits++
	} else {
		ordinal = c.ordinal
	}
	stopped := r.stop.cause() != nil
	switch {
	case s.ended: // its function has seen no end of its context
	case s.left.Load():
		if stopped {
			s.leave() // the stop may not have reached this scope
			s.noteStop(ordinal)
		}
	case !s.replay.AtFrontier():
	case !stopped:
		s.leave()
	default:
		after, known := r.past.Stopped[s.path]
		switch {
		case !known:
			time.AfterFunc(contextLag, s.leave)
		case s.replay.Made() > after, s.replay.Made() == after && s.waits >= r.past.StoppedWaits[s.path]:
			s.leave()
		}
	}
}

// beforeCall is called before a call that has no recorded end goes on, unless it
// begins a branch, which runs beside the scope.
func (s *scope) beforeCall() {
	if !s.left.Load() && !s.ended && s.replay.AtFrontier() {
		s.leave()
	}
}

// noteStop notes after which call the context of the scope was found to have ended:
// this one, which may have been refused, or the last one that was made, and the waits
// since.
func (s *scope) noteStop(ordinal int32) {
	if s.noted || s.undo || s.ended || !s.left.Load() || s.run.stop.cause() == nil {
		return
	}
	s.noted = true
	waits := int32(0)
	if ordinal <= s.replay.Made() {
		waits = s.waits
	}
	s.run.undoing.stopped(s.path, max(s.replay.Made(), ordinal), waits)
}

// holdBack returns the context for the function of a branch or an item: it ends
// with ctx; but if ctx ends because the run was stopped, it ends no earlier than the
// scope has left its history.
func (s *scope) holdBack(ctx context.Context) context.Context {
	_, s.limited = ctx.Deadline()
	s.limited = s.limited || s.up != nil && s.up.limited
	if s.left.Load() {
		return ctx
	}
	r := s.run
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.held = func() {
		if err := ctx.Err(); err != nil {
			cancel(context.Cause(ctx))
		} else if cause := r.stop.cause(); cause != nil {
			cancel(cause)
		}
	}
	context.AfterFunc(ctx, func() {
		if cause := context.Cause(ctx); s.left.Load() || cause != r.stop.cause() {
			cancel(cause)
		}
	})
	return inner
}

// stopped returns why a call must not go on although what it waits for has not come:
// the run is dead here or, unless this is the undoing, was stopped.
func (s *scope) stopped() error {
	if err := s.run.deathOf(); err != nil {
		return err
	}
	if s.undo {
		return nil
	}
	if cause := s.run.stop.cause(); cause != nil {
		return cause
	}
	if r := s.run; s.path != "" && r.past != nil && len(r.past.Scopes[history.UndoScope]) > 0 {
		return &undoingError{r.id} // which the function is about to find
	}
	return nil
}
