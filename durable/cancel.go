package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// CancelledError is what durable calls return once their run was cancelled, and
// the cause with which the contexts of its step bodies end.
type CancelledError struct {
	RunID  string
	Reason string
}

func (e *CancelledError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("run %s was cancelled", e.RunID)
	}
	return fmt.Sprintf("run %s was cancelled: %s", e.RunID, e.Reason)
}

// Is matches ErrCancelled.
func (e *CancelledError) Is(target error) bool { return target == ErrCancelled }

// Cancel asks a run to end. It may be called in any process; the request is durable
// when Cancel returns, and the run stops soon after: the contexts of running step
// bodies end with a *CancelledError as cause, what such a body still completes is
// recorded, and no further body begins except those of compensations. A run that has
// completed at the same moment stays completed. A run of which nothing was executed is
// cancelled at once; one without a live owner, when an executor claims it.
//
// With InTx the request is part of the program's own transaction, and takes effect when that
// commits. A run of which nothing was executed then ends when an executor that serves its
// workflow claims it: at once if there is one, and neither a delay nor a queue holds the run back.
//
// Errors: ErrNotFound; *NotRunningError when it has ended; ErrUnavailable when the
// store could not be reached: whether the cancel was recorded is not known then,
// and it can be asked for again; ErrInWorkflow in a workflow function: cancel in a step.
// Cancelling twice is not an error.
func (e *Engine) Cancel(ctx context.Context, id, reason string, o ...CancelOption) error {
	if err := outsideFunction(ctx, "Cancel of run "+id); err != nil {
		return err
	}
	data, err := json.Marshal(history.MessageData{Reason: guard.Text(reason, guard.MaxText)})
	if err != nil {
		return fmt.Errorf("durable: cancelling run %s: %w", id, err)
	}
	// One cancel is enough: the second is the same message.
	m := store.Message{To: id, Kind: store.KindCancel, ID: history.FirstCancel, At: e.now(), Data: data}
	var opts startOptions
	if err := guard.Options(&opts, o); err != nil {
		return fmt.Errorf("durable: cancelling run %s: %w", id, err)
	}
	if opts.err != nil {
		return fmt.Errorf("durable: cancelling run %s: %w", id, opts.err)
	}
	send := e.mailroom.send
	if opts.tx != nil {
		send = func(ctx context.Context, m store.Message) error { return e.mailroom.sendIn(ctx, opts.tx, m) }
	}
	if err := send(ctx, m); err != nil {
		return err
	}
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	switch {
	case opts.tx != nil && errors.Is(err, store.ErrNotFound):
		return nil // the transaction has started it, too
	case err != nil:
		return fmt.Errorf("durable: cancelling run %s: %w", id, storeError(err))
	}
	if m.ID = history.CancelID(h.Branches); m.ID != history.FirstCancel {
		// A forced Resume has taken that one back.
		if err := send(ctx, m); err != nil {
			return err
		}
	}
	if opts.tx != nil {
		return nil // a claim ends a run of which nothing was executed
	}
	return e.cancelIdle(ctx, h, reason)
}

// CancelOption changes how a cancel is sent. InTx is one.
type CancelOption func(*startOptions)

// cancelIdle carries out a cancel at once if the run has executed nothing.
func (e *Engine) cancelIdle(ctx context.Context, h *store.History, reason string) error {
	if h.Run.Status != store.Pending {
		return nil
	}
	cancelled, no, ended := store.Cancelled, false, e.now()
	reason = guard.Text(reason, guard.MaxText)
	_, err := e.act(ctx, &h.Run, nil, commit.Act{
		From:    []store.Status{store.Pending},
		Event:   store.Event{Type: store.WorkflowCancelled, Data: history.Encode(&history.End{Reason: reason})},
		Row:     &store.RowPatch{Status: &cancelled, Reason: &reason, CancelAsked: &no, Paused: &no, EndedAt: &ended},
		Send:    e.families.tellParentOf(&h.Run, history.ChildData{Status: cancelled, Workflow: h.Run.Workflow, Reason: reason}, nil),
		Release: true,
	})
	if err == nil && h.Run.Parent != "" {
		e.mailroom.toldOf(h.Run.Parent)
	}
	if err != nil && !definite(err) && !commit.Overtaken(err) {
		return fmt.Errorf("durable: cancelling run %s: %w", h.Run.ID, storeError(err))
	}
	return nil // the executor that was faster finds the message
}

// cancel lets a cancel reach the execution.
func (st *stopping) cancel(reason string) {
	st.reason.CompareAndSwap(nil, &reason)
	st.because(st.cancelled())
}

// isCancel reports whether it was a cancel that stopped the run.
func (st *stopping) isCancel() bool { return errors.Is(st.cause(), ErrCancelled) }

// cancelled is the error of a run that was cancelled, with the reason if that is known.
func (st *stopping) cancelled() *CancelledError {
	err := &CancelledError{RunID: st.run.id}
	if text := st.reason.Load(); text != nil {
		err.Reason = *text
	}
	return err
}
