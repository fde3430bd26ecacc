package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Harm is what a fault does to a call of the store.
type Harm string

// The ways in which a call goes wrong.
const (
	LostBefore      Harm = "lost before"        // not carried out; the answer is lost
	LostAfter       Harm = "lost after"         // carried out; the answer is lost
	Refused         Harm = "refused"            // not carried out: no connection
	LostThenRefused Harm = "lost, then refused" // carried out, the answer is lost, and then there is no connection for a while
	SlowBefore      Harm = "slow before"        // stands still for a while, and is then carried out
	SlowAfter       Harm = "slow after"         // is carried out and answers after a while
	Cut             Harm = "cut"                // this process has no connection for a while
	Restart         Harm = "restart"            // no process has one
	Stuck           Harm = "stuck"              // stands still for a while, even if the context ends, and is carried out
	GivenUp         Harm = "given up"           // carried out; the answer is that the context has ended
	KillBefore      Harm = "kill before"        // the process ends as by kill -9
	KillAfter       Harm = "kill after"         // the same, and the call is carried out
	Denied          Harm = "denied"             // this process can write nothing for a while: all its changes are refused for good
	Late            Harm = "late"               // of a commit of a transaction: the answer is lost, and it is carried out after a while
	Conflict        Harm = "conflict"           // of a commit of a transaction: another one was in the way
	Damaged         Harm = "damaged"            // not carried out: the store says that it is damaged
)

// harms lists those that the generator chooses from. Denied is not among them yet: a branch
// whose beginning was in a change that is denied draws another Now when it is replayed. Damaged
// is not either, because a damaged store is told to people, who have it repaired.
func harms() []Harm {
	return []Harm{LostBefore, LostAfter, Refused, LostThenRefused, SlowBefore, SlowAfter, Stuck, Cut, Restart, GivenUp, KillBefore, KillAfter}
}

// lasts reports whether a harm takes time.
func (h Harm) lasts() bool {
	return h == SlowBefore || h == SlowAfter || h == Stuck || h == Cut || h == Restart || h == LostThenRefused || h == Denied || h == Late
}

// disrupts reports whether a harm can end an execution, so that a body that is under way
// runs again.
func (h Harm) disrupts(d time.Duration) bool {
	switch h {
	case KillBefore, KillAfter, Denied, Damaged:
		return true
	case LostBefore, LostAfter, Refused, GivenUp, Conflict:
		return false
	}
	return d > lease/2
}

// errNoConnection is what a store answers that cannot be reached.
var errNoConnection = errors.New("sim: connection refused")

// errDenied is what a store answers that refuses a change for good.
var errDenied = fmt.Errorf("sim: denied: %w", store.ErrInvalid)

// errDamaged is what a store answers whose data is damaged.
var errDamaged = fmt.Errorf("sim: a page is damaged: %w", store.ErrCorrupt)

// harm carries out a call under a fault. It returns the error that the caller gets.
func (l *link) harm(ctx context.Context, f *Fault, forward func() error) error {
	p := l.process
	switch f.Do {
	case LostBefore, Late:
		return store.ErrUnknown
	case LostAfter:
		_ = forward()
		return store.ErrUnknown
	case Refused, Conflict:
		return errNoConnection
	case Damaged:
		return errDamaged
	case GivenUp:
		_ = forward()
		return fmt.Errorf("%w: %w", store.ErrUnknown, context.DeadlineExceeded)
	case LostThenRefused:
		_ = forward()
		l.cutFor(f.For)
		return store.ErrUnknown
	case SlowBefore:
		if err := stand(ctx, f.For); err != nil {
			return err
		}
		if l.isDead() {
			return store.ErrClosed
		}
	case SlowAfter:
		err := forward()
		if ended := stand(ctx, f.For); ended != nil {
			return fmt.Errorf("%w: %w", store.ErrUnknown, ended)
		}
		if l.isDead() {
			return store.ErrClosed
		}
		return err
	case Stuck:
		time.Sleep(f.For)
		if l.isDead() {
			return store.ErrClosed
		}
	case Cut:
		l.cutFor(f.For)
		return errNoConnection
	case Restart:
		p.sim.each(func(q *process) { q.link.cutFor(f.For) })
		return errNoConnection
	case Denied:
		l.denyFor(f.For)
		return errDenied
	case KillBefore:
		p.kill()
		return store.ErrClosed
	case KillAfter:
		_ = forward()
		p.kill()
		return store.ErrClosed
	}
	return forward()
}

// stand stands still for a while, or until the context ends, as a store does (S18).
func stand(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
