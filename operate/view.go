package operate

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// declared returns the names given to Steps, by the local code or by the code
// that started the run.
func (v *view) declared() []string {
	if names, ok := v.op.desk.Steps(v.Row); ok {
		return names
	}
	return v.Born.Declared
}

// stable returns the event after which to cut the history.
func (v *view) stable(seq int64) (*store.Event, error) {
	if seq == v.Past.Created.Seq {
		seq = v.Past.Input().Seq // a cut before that would bring back an input that was replaced
	}
	ev := v.Event(seq)
	switch {
	case ev == nil:
		return nil, &CheckpointError{RunID: v.Row.ID, Seq: seq, Reason: fmt.Sprintf("it is no event of the current history (branch %d, generation %d)", v.Row.Branch, v.Row.Generation)}
	case ev.Seq != v.Past.Input().Seq && !ev.Type.Stable():
		return nil, &CheckpointError{RunID: v.Row.ID, Seq: seq, Reason: fmt.Sprintf("a %s is no point to go back to: only the outcome of a step, child or item, the answer to a wait, and the beginning are", ev.Type)}
	}
	return ev, nil
}

// CheckpointError says why a history cannot be cut at the requested place.
type CheckpointError struct {
	RunID  string
	Seq    int64  // of the event
	Key    string // if it was given by key
	Reason string
}

func (e *CheckpointError) Error() string {
	what := "checkpoint"
	switch {
	case e.Key != "":
		what += " " + e.Key
	case e.Seq != 0:
		what += fmt.Sprintf(" %d", e.Seq)
	}
	return fmt.Sprintf("durable: run %s has no %s: %s. List what there is with Engine.History", e.RunID, what, e.Reason)
}

// Is matches durable.ErrNotFound: there is no such checkpoint.
func (e *CheckpointError) Is(target error) bool { return target == durable.ErrNotFound }
