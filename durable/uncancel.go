package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A cancelled run goes on only by force. What the cancel did is left behind on
// the old branch: the history is cut just before the run took notice of it, and
// the event of the new branch says up to which message cancels count no more, so
// that the same one does not end the run again. What was undone is not cut away:
// its effects are gone, and the history before the cut would say that they
// happened. Such a run is refused; a fork does its work anew, with keys of its
// own.

// uncancelled is the reason of the branch on which a cancelled run goes on. Cancel
// knows by it that the message it has sent before counts no more.
const uncancelled = "resumed by force after it was cancelled"

// uncancel works out how a cancelled run goes on: behind from, or, if that is 0,
// behind all that it had recorded when the cancel reached it.
func (v *view) uncancel(ctx context.Context, from int64) (*revision, error) {
	no := &NotResumableError{RunID: v.row.ID, Status: v.row.Status}
	if len(v.past.Scopes[history.UndoScope]) > 0 {
		no.Reason = "what it had done was undone when it was cancelled; Engine.Fork does it anew, from a point of your choice"
		return nil, no
	}
	ended := slices.IndexFunc(v.events, func(e store.Event) bool {
		return e.Type == store.CancelReceived || e.Type == store.WorkflowCancelled
	})
	if ended < 1 {
		no.Reason = "its history does not say where it was cancelled"
		return nil, no
	}
	at := store.Event{Seq: v.events[ended-1].Seq} // in no scope: all that came later is left behind
	if from != 0 {
		stable, err := v.stable(from)
		if err != nil {
			return nil, err
		}
		if stable.Seq > at.Seq {
			return nil, &CheckpointError{RunID: v.row.ID, Seq: from, Reason: fmt.Sprintf("it was recorded after the cancel, which is event %d", v.events[ended].Seq)}
		}
		at.Seq = stable.Seq
	}
	rv, err := v.revise(ctx, &at, resetNone, false)
	if err != nil {
		return nil, err
	}
	rv.lifts = true
	rv.warn("the run was cancelled: %s", cmp.Or(v.row.Reason, "no reason was given"))
	if v.row.Parent != "" {
		rv.warn("its parent %s was told that it was cancelled, and will not hear of it again", v.row.Parent)
	}
	return rv, nil
}

// liftedBy returns up to which message cancels stay taken back when what is damaged
// is set aside. The event that says so may be the damaged one; its branch is known.
func liftedBy(a *history.Audit) int64 {
	for _, n := range a.Lineage.Branches() {
		if a.Branches[n].Reason == uncancelled && !a.History.Run.CancelAsked {
			return a.History.Run.Inbox
		}
	}
	return a.Past.Lifted
}

// cancelID returns the id of the message that cancels a run with these branches.
// The first one is kept, as all messages are, and another with its id would be
// taken for it.
func cancelID(branches []store.Branch) string {
	last := int32(0)
	for i := range branches {
		if branches[i].Reason == uncancelled {
			last = max(last, branches[i].N)
		}
	}
	if last == 0 {
		return firstCancel
	}
	return fmt.Sprintf("%s~b%d", firstCancel, last)
}

const firstCancel = "cancel"
