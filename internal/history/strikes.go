package history

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// Strikes is what is known of the ends of a run's owners since the run last
// recorded something.
type Strikes struct {
	N       int
	key     string // of the step that had begun last
	attempt int
}

// StrikesOf counts the strikes of an orphaned run from the end of its log, oldest
// event first. owner had it last; dead reports whether an executor is known to be
// dead. It is a pure function of its arguments.
func StrikesOf(tail []store.Event, owner string, dead func(executor string) bool) (s Strikes) {
	var begun *store.Event     // in the execution that is examined
	ended := map[string]bool{} // an executor can have ended only once: before, it had lost its lease
	settle := func(executor string) {
		if begun != nil && executor != "" && !ended[executor] && dead(executor) {
			ended[executor] = true
			if s.N++; s.N == 1 {
				s.key, s.attempt = begun.Key, int(begun.Attempt)
			}
		}
		begun = nil
	}
	for i := len(tail) - 1; i >= 0; i-- {
		ev := &tail[i]
		switch {
		case BeginsBody(ev):
			if begun == nil {
				begun = ev
			}
		case ev.Type.Claims():
			if d, err := Of[Claim](ev); err == nil {
				settle(d.Executor)
			}
			owner = "" // the claims name the owners before
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

// claimedBy returns the executor that had the run in this epoch, empty if the
// events do not say.
func claimedBy(events []store.Event, epoch int64) string {
	for i := len(events) - 1; i >= 0 && events[i].Epoch == epoch; i-- {
		if events[i].Type.Claims() {
			d, _ := Of[Claim](&events[i])
			return d.Executor
		}
	}
	return ""
}

// BeginsBody reports whether an event says that the body of a step is about to
// run; events of the same type also begin branches and Maps.
func BeginsBody(ev *store.Event) bool {
	if ev.Type != store.StepStarted {
		return false
	}
	d, err := Of[Begun](ev)
	return err == nil && d.Kind == ""
}

// onlyBegins reports whether an event says that a body begins only because the
// run is on probation.
func onlyBegins(ev *store.Event) bool {
	d, err := Of[Begun](ev)
	return err == nil && d.Probation
}

// Reason returns what the row of a quarantined run says of its strikes.
func (s *Strikes) Reason() string {
	return fmt.Sprintf("quarantined: its process ended %s without a word while attempt %d of step %s was under way. That step may be the cause, or something outside of it", count.Of(s.N, "time"), s.attempt, s.key)
}
