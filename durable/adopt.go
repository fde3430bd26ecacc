package durable

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Adopt executes here a run that waits, is pending, or was stopped gracefully,
// and that no live executor has: what Recover would do in time with all of them,
// for one, at once, and without Recover having been called. So a program that a
// person runs for one run's sake (a command line) executes that one and no other.
// It is no Resume: a run that was parked, that has failed, or whose process died
// while it was executed is left to that.
//
// The run is this executor's, durably, when Adopt returns, and goes on in the
// background. Adopting a run that is executed here already does nothing.
//
// Errors: ErrNotFound; ErrNotRegistered when this engine lacks the code of its
// workflow or version; *NotResumableError for a run in any other status, for a
// paused or parked one, and for one that another live executor has. After any of
// them nothing has changed.
func (e *Engine) Adopt(ctx context.Context, id string) error {
	if e.isClosing() {
		return ErrClosed
	}
	if e.active(id) != nil || e.isDormant(id) {
		return nil
	}
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, storeError(err))
	}
	row := &h.Run
	no := &NotResumableError{RunID: id, Status: row.Status}
	switch {
	case row.Paused:
		no.Reason = "it is paused"
		return no
	case !slices.Contains([]store.Status{store.Pending, store.Waiting, store.Interrupted}, row.Status):
		return no
	case row.Status == store.Interrupted && row.Code != "":
		no.Reason = row.Reason
		return no
	case e.defs.find(row.Workflow, row.Version) == nil:
		return fmt.Errorf("durable: adopting run %s: %w: %s", id, ErrNotRegistered, e.notServed(row))
	}
	runs, err := e.claimIDs(ctx, []string{id}, &eventData{Executor: e.id})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, storeError(err))
	}
	if len(runs) > 0 {
		return nil
	}
	h, err = e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: adopting run %s: %w", id, storeError(err))
	}
	if no.Status = h.Run.Status; h.Run.Owner != "" {
		no.Reason = "already in progress on executor " + h.Run.Owner
	}
	return no
}
