package durable

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// A strike is the end of a process that this run can have caused: its owner is
// dead, and a body of the run had begun there and has recorded nothing. The
// beginning of a body is not on record as a rule, which would cost a write a step.
// So an execution that was claimed from an owner which ended without a word is on
// probation: until something is recorded it writes step_started before each body.
// The first end of such a row is on nobody's account.
//
//	1 workflow_started (X)                          X dies: nothing is known
//	2 run_resumed (Y)                               on probation
//	3 step_started charge                           Y dies: a strike
//	4 run_resumed (Z)                               Z dies before it came to a body: none
//	5 run_resumed (V)
//	6 step_started charge                           V has only lost its lease: none while it lives
//
// Anything else that is recorded, an outcome, a failed attempt, saved progress,
// takes all strikes back.

// strikes is what is known of the ends of a run's owners since it last recorded
// something.
type strikes struct {
	n       int
	key     string // of the step that had begun last
	attempt int
}

// strikesOf counts the strikes of an orphaned run from the end of its log, oldest
// event first. owner is who had it last; dead says of an executor that it is
// known to be dead. It is a pure function of its arguments.
func strikesOf(tail []store.Event, owner string, dead func(executor string) bool) (s strikes) {
	var begun *store.Event     // in the execution that is looked at
	ended := map[string]bool{} // it can have ended once: before, it had lost its lease
	settle := func(executor string) {
		if begun != nil && executor != "" && !ended[executor] && dead(executor) {
			ended[executor] = true
			if s.n++; s.n == 1 {
				s.key, s.attempt = begun.Key, int(begun.Attempt)
			}
		}
		begun = nil
	}
	for i := len(tail) - 1; i >= 0; i-- {
		ev := &tail[i]
		switch {
		case beginsBody(ev):
			if begun == nil {
				begun = ev
			}
		case ev.Type.Claims():
			if d, err := dataOf(ev); err == nil {
				settle(d.Executor)
			}
			owner = "" // those before are named by their claims
		default:
			// It had recorded something before it came to this body.
			if owner == "" {
				owner = claimedBy(tail[:i], ev.Epoch)
			}
			settle(owner)
			return s
		}
	}
	return s
}

// claimedBy returns who had the run in this epoch, empty if the events do not
// say.
func claimedBy(events []store.Event, epoch int64) string {
	for i := len(events) - 1; i >= 0 && events[i].Epoch == epoch; i-- {
		if events[i].Type.Claims() {
			d, _ := dataOf(&events[i])
			return d.Executor
		}
	}
	return ""
}

// beginsBody reports whether an event says that the body of a step is about to
// run; the same type stands for the beginning of branches and Maps.
func beginsBody(ev *store.Event) bool {
	if ev.Type != store.StepStarted {
		return false
	}
	d, err := dataOf(ev)
	return err == nil && d.Kind == ""
}

// onProbation reports whether r, which was claimed from an owner that ended
// without a word, has still recorded nothing.
func (r *run) onProbation() bool {
	select {
	case <-r.recorded:
		return false
	default:
		return true
	}
}

// saysNoMore reports whether an event says that a body begins for no other
// reason than that the run is on probation.
func saysNoMore(ev *store.Event) bool {
	d, err := dataOf(ev)
	return err == nil && d.Probation
}

// reason says what is known, in the row of a run that is set aside.
func (s *strikes) reason() string {
	return fmt.Sprintf("quarantined: its process ended %d times without a word while step %s, attempt %d, had begun. That step may be the cause, or something outside of it", s.n, s.key, s.attempt)
}

// adviceQuarantined is what to do about such a run.
func adviceQuarantined(id string) string {
	return fmt.Sprintf("find out how those processes ended (their own last lines, the system's log for a lack of memory or a kill from outside); if it was this run, mend the step; then Engine.Resume(ctx, %q)", id)
}

// trialTail is how many events at the end of a log are looked at for strikes:
// more than one execution leaves that records nothing, for each that counts.
const trialTail = 64

// judge is what recoveries ask of the ends of owners.
type judge struct {
	eng  *Engine
	live map[string]bool // executors; nil: not asked yet
}

// strikes counts those of an orphaned run. Only one whose log ends in the
// beginning of a body, or in a claim that was not its first after something was
// recorded, can have any.
func (j *judge) strikes(ctx context.Context, row *store.Run) (s strikes, err error) {
	last := row.Last
	if last == nil || row.Status != store.Running && row.Status != store.Resuming {
		return s, nil
	}
	if !beginsBody(last) && (!last.Type.Claims() || row.Strikes == 0) {
		return s, nil
	}
	if j.live == nil {
		if j.live, err = j.eng.liveExecutors(ctx); err != nil {
			return s, err
		}
		j.live[j.eng.id] = true
	}
	h, err := j.eng.store.Load(ctx, row.ID, store.Cursor{Tail: trialTail, AfterMessage: math.MaxInt64})
	if err != nil {
		return s, err
	}
	var tail []store.Event
	for ev, err := range h.Events {
		if err != nil {
			return s, err
		}
		tail = append(tail, ev)
	}
	tail = slices.DeleteFunc(tail, func(ev store.Event) bool { return ev.Seq > last.Seq }) // the listing is older
	return strikesOf(tail, row.Owner, func(x string) bool { return !j.live[x] }), nil
}
