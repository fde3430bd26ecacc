package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// NotResumableError says in which status a run was that cannot be resumed from
// it.
type NotResumableError struct {
	RunID  string
	Status store.Status
	Reason string
}

func (e *NotResumableError) Error() string {
	s := fmt.Sprintf("Session %s is not resumable (status: %s)", e.RunID, e.Status)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is matches ErrNotResumable.
func (e *NotResumableError) Is(target error) bool { return target == ErrNotResumable }

// Resume continues a run that failed or was interrupted, from the attempt it
// had reached: what was recorded stays. Of two calls at once one wins, the other
// gets a *NotResumableError. A failed run takes the keys of Exclusive again, all
// or none. When this engine has the workflow's code the run is
// executed here; else it becomes claimable by whoever has it.
//
// Errors: ErrNotFound; *NotResumableError for a run that is pending, waiting,
// completed, cancelled, or executed by a live executor, and for one that has
// failed and whose deadline has passed; ErrOccupied when another run holds one of
// its exclusive keys: then nothing has changed.
func (e *Engine) Resume(ctx context.Context, id string) error {
	if e.isClosing() {
		return ErrClosed
	}
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", id, storeError(err))
	}
	row := &h.Run
	reopened := false
	if row.Paused {
		return &NotResumableError{RunID: id, Status: row.Status, Reason: "it is paused"}
	}
	switch row.Status {
	case store.Failed, store.Interrupted:
		if reopened, err = e.reopen(ctx, row); err != nil {
			return err
		}
	case store.Running, store.Resuming:
		// Orphaned, or not ours to touch: the claim decides.
	default:
		return &NotResumableError{RunID: id, Status: row.Status}
	}
	if err := e.resumeVersion(ctx, row); err != nil {
		return err
	}
	runs, err := e.claimIDs(ctx, []string{id}, &eventData{Executor: e.id, Resumed: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", id, storeError(err))
	}
	if len(runs) > 0 {
		return nil
	}
	return e.notClaimed(ctx, row, reopened)
}

// notClaimed says what it means that Resume did not get the run, which it had
// found as row says.
func (e *Engine) notClaimed(ctx context.Context, row *store.Run, reopened bool) error {
	if e.defs.find(row.Workflow, row.Version) == nil && (row.Status == store.Failed || row.Status == store.Interrupted) {
		return nil // claimable by whoever has its code
	}
	var seen int64
	if row.Last != nil {
		seen = row.Last.Seq
	}
	h, err := e.store.Load(ctx, row.ID, store.Cursor{After: seen, All: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	if reopened {
		// Whoever claims what this call has reopened carries it out, unless it
		// is another call of Resume: of two, one wins.
		for ev, err := range h.Events {
			if err != nil {
				return fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
			}
			if !ev.Type.Claims() {
				continue
			}
			if d, err := dataOf(&ev); err == nil && !d.Resumed {
				return nil
			}
			break
		}
	}
	reason := ""
	switch {
	case h.Run.Paused:
		reason = "it is paused"
	case e.defs.find(row.Workflow, row.Version) == nil && h.Run.Owner == row.Owner:
		reason = e.notServed(row)
	case h.Run.Owner != "":
		reason = "already in progress on executor " + h.Run.Owner
	}
	return &NotResumableError{RunID: row.ID, Status: h.Run.Status, Reason: reason}
}

// reopen makes a failed or parked run claimable again; done is false for one that
// is so already. The failure stays in the history; the row forgets it.
func (e *Engine) reopen(ctx context.Context, row *store.Run) (done bool, err error) {
	if row.Status == store.Interrupted && row.Code == "" {
		return false, nil // claimable as it is
	}
	if reason := e.pastDeadline(row); reason != "" {
		return false, &NotResumableError{RunID: row.ID, Status: row.Status, Reason: reason}
	}
	hold, err := e.keysToTake(ctx, row)
	if err != nil {
		return false, err
	}
	interrupted, none, no, zero := store.Interrupted, "", false, store.Time(0)
	_, err = e.operate(ctx, row, nil, act{
		from:  []store.Status{row.Status},
		event: store.Event{Type: store.WorkflowInterrupted, Data: (&eventData{Reason: "resume requested", Message: row.Inbox, Executor: e.id}).encode()},
		row:   &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none, Recoverable: &no, EndedAt: &zero, Strikes: new(int32)},
		hold:  hold,
	})
	switch {
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrStatus), errors.Is(err, store.ErrOwned):
		return false, &NotResumableError{RunID: row.ID, Status: row.Status, Reason: "somebody else resumed it in the same moment"}
	case errors.Is(err, store.ErrOccupied):
		return false, occupied("was not resumed; resume it again once that run has ended", err)
	case err != nil:
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return true, nil
}
