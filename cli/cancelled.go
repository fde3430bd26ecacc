package cli

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/cli/internal/show"
	"github.com/holdfast-dev/holdfast/cli/internal/target"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// cancelPatience is how long cancel waits for the process that executes a run to end
// it, so that it can say that the run has ended.
const cancelPatience = 3 * time.Second

// cancelling is what cancel prints with --json: done is "cancelled" once the run
// has ended, else "cancelling".
type cancelling struct {
	ID     string `json:"id"`
	Done   string `json:"done"`
	Status string `json:"status"`
	Next   string `json:"next,omitempty"` // the command that carries the cancel out, where no process does
}

// cancelled reports the state of a run whose cancel is recorded. A run that no
// process executes has not ended: a program that has its code must run its
// compensations first.
func cancelled(c *invocation, t target.Target, id string) error {
	s, attended, err := untilCancelled(c, t, id)
	if err != nil {
		return err
	}
	did := cancelling{ID: id, Done: "cancelling", Status: s.Status}
	line, next := "", ""
	switch {
	case s.Status == string(store.Cancelled):
		did.Done, line = "cancelled", fmt.Sprintf("Workflow %s cancelled", show.Escape(id))
	case s.Terminal():
		did.Done, line = s.Status, fmt.Sprintf("Workflow %s has %s before it could be cancelled", show.Escape(id), s.Status)
	case attended:
		line = fmt.Sprintf("Workflow %s is being cancelled: it ends once the step in progress and its compensations have ended", show.Escape(id))
		next = "Follow it: " + c.self("watch", id)
	default:
		line = fmt.Sprintf("Workflow %s is %s: no process executes it; it is cancelled once one takes it up", show.Escape(id), s.StatusText())
		next = carryOut(c, s)
		did.Next = next
	}
	return c.print(did, func() {
		c.out.Printf("%s\n", line)
		if next != "" {
			c.say("%s", next)
		}
	})
}

// carryOut says how to get the cancel carried out for a run that no process executes.
func carryOut(c *invocation, s *target.Run) string {
	run := c.code(s)
	switch {
	case s.Paused && run != "":
		return "Carry it out with: " + c.self("unpause", s.ID) + " && " + run
	case run != "":
		return "Carry it out with: " + run
	case s.Status == string(store.Interrupted) && s.Code != "" && s.Code != durable.CodePaused:
		return "It was stopped and waits for a person. Carry it out with: " + c.self("resume", s.ID)
	}
	return "Start a program that serves " + show.Escape(s.Workflow) + ": it carries the cancel out"
}

// untilCancelled waits for a run to end that a process executes, or is about to. It
// returns where the run stands then, and whether there is such a process.
func untilCancelled(c *invocation, t target.Target, id string) (s *target.Run, attended bool, err error) {
	pause := 10 * time.Millisecond
	for began := time.Now(); ; pause = min(2*pause, settle) {
		s, err = t.Run(c.ctx, id)
		if err != nil {
			return nil, false, err
		}
		attended = isAttended(c, t, s)
		if s.Terminal() || !attended || time.Since(began) > cancelPatience {
			return s, attended, nil
		}
		select {
		case <-c.ctx.Done():
			return s, attended, nil
		case <-time.After(pause):
		}
	}
}

// isAttended reports whether a live process executes the run, or will claim it on its
// own now that a cancel is requested.
func isAttended(c *invocation, t target.Target, s *target.Run) bool {
	l, isLocal := t.(*target.Local)
	parked := s.Status == string(store.Interrupted) && s.Code != "" && s.Code != durable.CodePaused
	return s.Live || isLocal && !parked && l.OthersMayTake(c.ctx, s)
}
