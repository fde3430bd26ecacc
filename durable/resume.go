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
// gets a *NotResumableError. When this engine has the workflow's code the run is
// executed here; else it becomes claimable by whoever has it.
//
// Errors: ErrNotFound; *NotResumableError for a run that is pending, waiting,
// completed, cancelled, or executed by a live executor.
func (e *Engine) Resume(ctx context.Context, id string) error {
	if e.isClosing() {
		return ErrClosed
	}
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", id, storeError(err))
	}
	row := &h.Run
	switch row.Status {
	case store.Failed, store.Interrupted:
		err = e.reopen(ctx, row)
	case store.Running, store.Resuming:
		// Orphaned, or not ours to touch: the claim decides.
	default:
		return &NotResumableError{RunID: id, Status: row.Status}
	}
	if err != nil {
		return err
	}
	runs, err := e.claimIDs(ctx, []string{id})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", id, storeError(err))
	}
	if len(runs) == 0 && (row.Status == store.Running || row.Status == store.Resuming) {
		return &NotResumableError{RunID: id, Status: row.Status, Reason: fmt.Sprintf("already in progress on executor %s, or not served here", row.Owner)}
	}
	return nil
}

// reopen makes a failed or parked run claimable again. The failure stays in the
// history; the row forgets it.
func (e *Engine) reopen(ctx context.Context, row *store.Run) error {
	if row.Status == store.Interrupted && row.Code == "" {
		return nil // claimable as it is
	}
	interrupted, none, no, zero := store.Interrupted, "", false, store.Time(0)
	err := e.operate(ctx, row, []store.Status{row.Status},
		store.Event{Type: store.WorkflowInterrupted, Data: (&eventData{Reason: "resume requested", Executor: e.id}).encode()},
		&store.RowPatch{Status: &interrupted, Code: &none, Reason: &none, Recoverable: &no, EndedAt: &zero, Strikes: new(int32)}, false)
	switch {
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrStatus), errors.Is(err, store.ErrOwned):
		return &NotResumableError{RunID: row.ID, Status: row.Status, Reason: "somebody else resumed it in the same moment"}
	case err != nil:
		return fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return nil
}
