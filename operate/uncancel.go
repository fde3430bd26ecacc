package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A cancelled run continues only with Force. What the cancel did is left behind on
// the old branch: the history is cut just before the run noticed the cancel, and
// the event of the new branch says up to which message cancels no longer count, so
// that the same cancel does not end the run again. Compensations cannot be cut
// away: the effects are gone, and the history before the cut would say that they
// happened. Such a run is refused; a fork does its work again, with its own keys.

// uncancel computes how a cancelled run goes on: after from, or, if that is 0,
// after everything it had recorded when the cancel reached it.
func (v *view) uncancel(ctx context.Context, from int64) (*revision, error) {
	no := &durable.NotResumableError{RunID: v.Row.ID, Status: v.Row.Status}
	if len(v.Past.Scopes[history.UndoScope]) > 0 {
		no.Reason = "what it had done was undone when it was cancelled; operate.On(engine).Fork does it anew, from a point of your choice"
		return nil, no
	}
	ended := slices.IndexFunc(v.Events, func(e store.Event) bool {
		return e.Type == store.CancelReceived || e.Type == store.WorkflowCancelled
	})
	if ended < 1 {
		no.Reason = "its history does not say where it was cancelled"
		return nil, no
	}
	at := store.Event{Seq: v.Events[ended-1].Seq} // in no scope: everything later is left behind
	if from != 0 {
		stable, err := v.stable(from)
		if err != nil {
			return nil, err
		}
		if stable.Seq > at.Seq {
			return nil, &CheckpointError{RunID: v.Row.ID, Seq: from, Reason: fmt.Sprintf("it was recorded after the cancel, which is event %d", v.Events[ended].Seq)}
		}
		at.Seq = stable.Seq
	}
	rv, err := v.revise(ctx, &at, history.ResetNone, false)
	if err != nil {
		return nil, err
	}
	rv.lifts = true
	rv.warn("the run was cancelled: %s", cmp.Or(v.Row.Reason, "no reason was given"))
	if v.Row.Parent != "" {
		rv.warn("its parent %s was told that it was cancelled, and will not hear of it again", v.Row.Parent)
	}
	return rv, nil
}
