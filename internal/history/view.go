package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// A View is a run as it looks to code that does not execute it: its row, and the history
// of its current generation, read and checked.
type View struct {
	Row      *store.Run
	Branches []store.Branch
	Events   []store.Event
	Past     *Past
	Born     Beginning // of the event that the generation begins with
}

// Judge reads Past and Born from Events, and compares them with the row. The error, a
// *Damage or a *FutureEventError, says why the history cannot be read; row, branches
// and events are valid nevertheless.
func (v *View) Judge() (err error) {
	if v.Past, err = PastOf(v.Row.ID, v.Events); err != nil {
		return err
	}
	if v.Born, err = Of[Beginning](&v.Past.Created); err != nil {
		return &Damage{RunID: v.Row.ID, Seq: v.Past.Created.Seq, Err: err}
	}
	return v.Past.CheckRow(v.Row, v.Branches, &v.Born)
}

// Event returns the event with this number, nil if it is not part of the history.
func (v *View) Event(seq int64) *store.Event {
	i, ok := slices.BinarySearchFunc(v.Events, seq, func(e store.Event, seq int64) int { return int(e.Seq - seq) })
	if !ok {
		return nil
	}
	return &v.Events[i]
}

// WholeBefore returns the last point to go back to at which none of the calls had begun.
func (v *View) WholeBefore(calls []Undone) (at store.Event) {
	first := v.Events[len(v.Events)-1].Seq + 1
	for i := range calls {
		if rec := v.Past.Call(calls[i].Key); rec != nil {
			first = min(first, rec.Seq)
		}
	}
	for i := range v.Events {
		if ev := &v.Events[i]; ev.Seq < first && (ev.Seq == v.Past.Input().Seq || ev.Type.Stable()) {
			at = *ev
		}
	}
	return at
}

// UndoneText describes calls that were undone and would count as done, and says what
// makes them run again.
func (v *View) UndoneText(still []Undone) string {
	var names []string
	child := ""
	for i := range still {
		names = append(names, still[i].String())
		if child == "" {
			child = still[i].Child
		}
	}
	if child != "" {
		return fmt.Sprintf("what %s did was undone, and would count as done: run %s, whose id the workflow has chosen, has ended and is not done again. Start a new run, with another id for that child", strings.Join(names, ", "), child)
	}
	at := v.WholeBefore(still)
	where := fmt.Sprintf("checkpoint %d", at.Seq)
	if at.Key != "" {
		where += fmt.Sprintf(" (%s)", at.Key)
	} else {
		where += " (the beginning)"
	}
	return fmt.Sprintf("what %s did was undone, and would count as done. To make it again go on from %s, or an earlier one", strings.Join(names, ", "), where)
}

// PausedToJump reports whether the run is paused only for a jump that did not get
// further, so that nothing else has asked for a pause since the run was last unpaused.
// inbox holds all the messages of the run.
func (v *View) PausedToJump(inbox []store.Message) bool {
	if !v.Row.Paused || v.Past == nil {
		return false
	}
	// Requests before the event that has paused the run were answered, up to the message
	// that an earlier event names.
	answered, upTo, paused := v.Past.Inbox, v.Past.Inbox, false
	for i := range v.Events {
		switch ev := &v.Events[i]; ev.Type {
		case store.WorkflowPaused, store.WorkflowUnpaused, store.WorkflowInterrupted, store.WorkflowRecovered, store.FailuresReset, store.JumpActivated, store.Edited:
			said, err := Decode(ev)
			if err != nil {
				return false
			}
			if ev.Type == store.WorkflowPaused {
				answered, paused = upTo, true
			} else if ev.Type == store.WorkflowUnpaused {
				paused = false
			}
			message, _, _ := effectOf(said)
			upTo = max(upTo, message)
		}
	}
	toJump := false
	for i := range inbox {
		if m := &inbox[i]; m.Kind == store.KindPause && m.Seq > answered {
			d, err := DataOfMessage(m)
			if err != nil || !d.Jump {
				return false
			}
			toJump = true
		}
	}
	return paused && toJump
}

// UnreadInput: a run was parked with this code and reason because its code cannot read its input.
func UnreadInput(code, reason string) bool {
	return code == "undecodable" && strings.Contains(reason, ": the checkpoint of the input holds ")
}
