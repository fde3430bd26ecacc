package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// undo is a registered compensation.
type undo struct {
	place  []int32 // of the registration in the run
	name   string
	fn     func(context.Context) error
	undoes string // key of the call that followed; empty: none did
}

// Compensate registers fn to be run if the run fails or is cancelled. fn undoes the effect of the step
// that follows. Register it before that step, because an attempt whose outcome is unknown needs
// undoing too; so fn must be able to undo what was never done.
//
// Compensations run in the reverse order of their registration, each as a step with the default
// Policy, so that after a crash in between none that is done runs again. One that fails for good does
// not stop the others; the run's error then includes its error. A run that was undone is not offered
// for Resume: it can continue from a checkpoint before the first step that was undone, and such steps
// are then made again with another IdempotencyKey. A compensation belongs to the step, child, branch
// or Map that is called next in the same function. Registering costs nothing; but the first step of a
// branch or an item behind it costs another write.
//
// Errors: ErrInvalid for a nil fn; ErrNested in a compensation; those of every durable call (package
// documentation, Errors). The failure of fn is part of the error of the run.
func Compensate(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	s, err := scopeOf(ctx, name)
	if err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("durable: Compensate %q: the function is nil: %w", name, ErrInvalid)
	}
	if err := store.CheckName("compensation", name); err != nil {
		return err
	}
	if s.undo {
		return fmt.Errorf("durable: Compensate %q was called in a compensation: %w", name, ErrNested)
	}
	if err := s.run.deathOf(); err != nil {
		return err
	}
	if err := s.occupy(&registering, name); err != nil {
		return err
	}
	defer s.seat.leave()
	if s.beyond > 0 {
		return s.goesBeyond(name)
	}
	s.registered++
	s.replaysAgain()
	u := &undo{place: append(slices.Clone(s.place), s.replay.Made()+1, 0, s.registered), name: name, fn: fn}
	s.run.undoing.add(u)
	s.followed = append(s.followed, u)
	return nil
}

// registering is the call in progress of a scope in which a compensation is being registered.
var registering call

// undoing is what a run keeps for its end: the registered compensations, and where the
// stop of the run has met each of its scopes.
type undoing struct {
	run *run

	some atomic.Bool // the list is not empty
	mu   sync.Mutex
	list []*undo
	// stoppedAfter has, for each scope by its path, the number of the call after which
	// its context had ended; nil: the run was not stopped.
	stoppedAfter map[string]int32
	stoppedWaits map[string]int32 // and the number of waits since
}

func (un *undoing) add(u *undo) {
	un.mu.Lock()
	defer un.mu.Unlock()
	un.list = append(un.list, u)
	un.some.Store(true)
}

// follow tells compensations which call has followed their registration. One without an effect of its own does not count.
func (un *undoing) follow(list []*undo, key string, kind history.CallKind) (counts bool) {
	if kind != history.CallStep && kind != history.CallChild && kind != history.CallGo && kind != history.CallMap {
		return false
	}
	un.mu.Lock()
	defer un.mu.Unlock()
	for _, u := range list {
		u.undoes = key
	}
	return true
}

// stopped notes after which call, and after how many waits since then, the context of a scope has ended.
func (un *undoing) stopped(path string, after, waits int32) {
	un.mu.Lock()
	defer un.mu.Unlock()
	un.stoppedAfter = put(un.stoppedAfter, path, after)
	if waits > 0 {
		un.stoppedWaits = put(un.stoppedWaits, path, waits)
	}
}

// dependsOn reports whether the beginning of a step has to be on record. If the run is stopped before another process takes
// it over, that one comes to the compensations registered before the step only then: it begins no branch and no item of
// which nothing is recorded, and goes no further than a call whose outcome waits for the next write.
func (un *undoing) dependsOn(c *call) bool {
	return c.undoable && un.run.log.Stashes() || c.ordinal == 1 && c.scope.path != "" && un.some.Load() && !c.scope.undo
}

// all returns what is to be undone, in no order, and where the run was stopped. It
// returns copies: a branch that ignores the end of its context may still add to them.
func (un *undoing) all() (list []undo, stoppedAfter, stoppedWaits map[string]int32) {
	un.mu.Lock()
	defer un.mu.Unlock()
	for _, u := range un.list {
		list = append(list, *u)
	}
	return list, maps.Clone(un.stoppedAfter), maps.Clone(un.stoppedWaits)
}

// undoingError is the cause with which the branches of a failed run are stopped, before
// the run is undone.
type undoingError struct{ run string }

func (e *undoingError) Error() string {
	return fmt.Sprintf("run %s has failed and is being undone", e.run)
}

// Is matches ErrOutsideRun: no call belongs to the run any more.
func (e *undoingError) Is(target error) bool { return target == ErrOutsideRun }

// stopBranches ends the branches that were not waited for, before it is determined what
// to undo: a branch that is being replayed has yet to register its compensations, and
// an effect that a branch has later would not be undone. It returns why the run was
// stopped meanwhile, nil if it was not.
func (un *undoing) stopBranches(err error) error {
	r := un.run
	open := func() bool {
		branches, passes := r.waits.open()
		return (branches > 0 || passes > 0) && (un.some.Load() || r.past != nil)
	}
	if !open() || r.renewing.asked(err) != nil {
		return nil
	}
	r.stop.because(&undoingError{r.id}) // unless something else has stopped it
	// A body that ignores its context is left behind, as in Close. A branch that is
	// still replaying is not, because it waits for nothing.
	var stopped time.Time
	t := time.NewTicker(afterGrace)
	defer t.Stop()
	for open() {
		if stopped.IsZero() && r.goroutines.replaying.Load() == 0 {
			stopped = time.Now()
			t.Reset(afterGrace)
		}
		select {
		case <-r.goroutines.branchOver:
		case <-r.gone:
			return r.deathOf()
		case <-t.C:
			if !stopped.IsZero() && time.Since(stopped) >= afterGrace {
				r.logLine(slog.LevelWarn, "durable: a branch goes on while its run is undone: its code does not heed the end of its context")
				return nil
			}
		}
	}
	return nil
}

// compensate runs the registered compensations. It adds failures to *err, and returns
// an error only if the run was stopped meanwhile: then nothing more is to be recorded
// of its end. late: its deadline has stopped the run.
func (un *undoing) compensate(err *error, late bool) error {
	r := un.run
	if dead := un.stopBranches(*err); dead != nil {
		return dead
	}
	undos, stoppedAfter, stoppedWaits := un.all()
	if len(undos) == 0 {
		return nil
	}
	// Branches register in any order; their places in the run give one.
	slices.SortFunc(undos, func(a, b undo) int { return slices.Compare(b.place, a.place) })
	ctx, cancel := context.WithCancelCause(r.eng.life.runs)
	defer cancel(nil)
	stop := context.AfterFunc(r.ctx, func() {
		// What stopped the run may be why it is undone; anything else ends the undoing
		// too.
		if cause := context.Cause(r.ctx); cause != r.stop.cause() {
			cancel(cause)
		}
	})
	defer stop()
	s := newScope(r, history.UndoScope)
	s.trace = r.spans.Root()
	s.undo, s.lastAt = true, r.log.Time()
	s.left.Store(true) // no stop ends its context
	if s.replay.Empty() {
		s.preface.stopped, s.preface.stoppedWaits = stoppedAfter, stoppedWaits
		for _, u := range undos {
			s.preface.undoes = append(s.preface.undoes, u.undoes)
		}
		if r.origin.deadline != 0 {
			s.preface.late = &late
		}
	}
	r.ending.Store(false)
	r.logLine(slog.LevelInfo, "durable: undoing", slog.Int("compensations", len(undos)))
	inner := &scopeContext{Context: ctx, scope: s}
	for _, u := range undos {
		_, undoErr := perform(inner, u.name, &Policy{}, func(ctx context.Context) (struct{}, error) { return struct{}{}, u.fn(ctx) }, nil, nil)
		if dead := r.deathOf(); dead != nil {
			return dead
		}
		if undoErr != nil {
			*err = errors.Join(*err, fmt.Errorf("compensation %s: %w", u.name, undoErr))
		}
	}
	r.ending.Store(true)
	return s.replay.finish()
}
