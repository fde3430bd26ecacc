package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A message asks for a pause, as for a cancel, so that the executor that has the
// run, or will have it, learns of it. The event workflow_paused carries it out:
// the owner writes it once running bodies have ended, or the caller does if there
// is no owner. The event says up to which message it answers. From then on the
// row says Paused, which keeps every executor from claiming the run.

var (
	// ErrPaused: the run was paused; no further body begins here. It is what
	// durable calls return while a run stops for a pause.
	ErrPaused = errors.New("durable: the run is paused")
	// ErrNotPaused: the run is not paused.
	ErrNotPaused = errors.New("durable: run not paused")
)

// NotPausedError says that Unpause was called for a run that was not paused.
type NotPausedError struct {
	RunID  string
	Status store.Status // empty with Asked
	// Asked: a pause was asked for, and a step's body that had begun is still
	// running.
	Asked bool
}

func (e *NotPausedError) Error() string {
	if e.Asked {
		return fmt.Sprintf("durable: run %s is not paused yet: it was asked for, and what is under way has not ended. Call Unpause again, with more time", e.RunID)
	}
	return fmt.Sprintf("durable: run %s is not paused (%s)", e.RunID, e.Status)
}

// Is matches ErrNotPaused.
func (e *NotPausedError) Is(target error) bool { return target == ErrNotPaused }

// Pause asks a run to stop until Unpause is called. It may be called in any
// process; the request is durable when Pause returns, and outlives every restart.
// No further body begins; one that is running is left alone, and what it returns
// is recorded, an error as a failed attempt. A run without a live owner is paused
// at once. No executor claims a paused run: no signal and no timer wakes it,
// though signals are kept and timers keep the moment at which they end; an
// approval stays visible, and a run that waited stays `waiting`. Callers that
// wait for the run go on waiting. Its children are not paused. A cancel reaches a
// paused run, and ends it.
//
// Errors: ErrNotFound; *NotRunningError when it has ended. A run that ends before
// it sees the request simply ends. Pausing twice is not an error. *NotResumableError when its
// import has not finished. ErrInWorkflow in a workflow function: pause in a step.
func (e *Engine) Pause(ctx context.Context, runID, reason string) error {
	if err := outsideFunction(ctx, "Pause of run "+runID); err != nil {
		return err
	}
	return e.pause(ctx, runID, history.MessageData{Reason: guard.Text(reason, guard.MaxText)})
}

// pause asks a run to stop, for a person or for a Jump.
func (e *Engine) pause(ctx context.Context, runID string, d history.MessageData) error {
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("durable: pausing run %s: %w", runID, err)
	}
	h, err := e.store.Load(ctx, runID, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: pausing run %s: %w", runID, storeError(err))
	}
	// Its row is paused until the import ends, and what it is then is in the file.
	if err := halfImported(&h.Run); err != nil {
		return err
	}
	if h.Run.Paused && !h.Run.Status.Terminal() {
		// A Jump lifts a pause of its own, unless it finds that a person has
		// asked for one, too.
		v, _, err := e.view(ctx, runID)
		if d.Jump || err != nil || v.Row.Paused && !v.PausedToJump(h.Inbox) {
			return nil
		}
	}
	if err := e.mailroom.send(ctx, store.Message{To: runID, Kind: store.KindPause, At: e.now(), Data: data}); err != nil {
		return err
	}
	return e.pauseIdle(ctx, runID, d.Reason)
}

// pauseIdle carries out the pause of a run that no process executes.
func (e *Engine) pauseIdle(ctx context.Context, id, reason string) error {
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1})
	if err != nil {
		return fmt.Errorf("durable: pausing run %s: %w", id, storeError(err))
	}
	row := &h.Run
	switch {
	case row.Status.Terminal():
		return &NotRunningError{RunID: id, Status: row.Status}
	case row.Paused:
		return nil
	}
	yes := true
	patch := &store.RowPatch{Paused: &yes}
	if row.Status == store.Running || row.Status == store.Resuming {
		patch = stoppedByPause(reason)
	}
	_, err = e.act(ctx, row, nil, commit.Act{
		From:  []store.Status{row.Status},
		Event: store.Event{Type: store.WorkflowPaused, Data: history.Encode(&history.Stop{Reason: reason, Message: row.Inbox, Executor: e.id})},
		Row:   patch,
	})
	if err != nil && !commit.Overtaken(err) {
		return fmt.Errorf("durable: pausing run %s: %w", id, storeError(err))
	}
	return nil // the executor that has it, or was faster, finds the message
}

// stoppedByPause is the change of the row of a run that was being executed when
// it was paused.
func stoppedByPause(reason string) *store.RowPatch {
	yes, interrupted, none, text := true, store.Interrupted, "", history.PausedReason(reason)
	return &store.RowPatch{Paused: &yes, Status: &interrupted, Code: &none, Reason: &text}
}

// Unpause lets a paused run go on from where it was: an executor that serves it
// claims it at once. Waits whose time has passed meanwhile, such as a sleep, end
// now. The change is durable when Unpause returns. If a pause was asked for and a
// step's body is still running, Unpause waits for it, until ctx ends.
//
// Errors: ErrNotFound; *NotRunningError when the run has ended; *NotPausedError
// when it is not paused; *NotResumableError when its import has not finished; ErrInWorkflow
// in a workflow function: unpause in a step.
func (e *Engine) Unpause(ctx context.Context, runID string) error {
	if err := outsideFunction(ctx, "Unpause of run "+runID); err != nil {
		return err
	}
	changed, stop := e.watchers.watch(runID)
	defer stop()
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		done, err := e.unpause(ctx, runID)
		if done || err != nil {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-e.roster.closed:
			err = ErrClosed
		}
		t.Stop()
		if err != nil {
			return fmt.Errorf("%w: %w", &NotPausedError{RunID: runID, Asked: true}, err)
		}
	}
}

// unpause is one try; done is false while a pause is still to be carried out.
func (e *Engine) unpause(ctx context.Context, id string) (done bool, err error) {
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return false, fmt.Errorf("durable: unpausing run %s: %w", id, storeError(err))
	}
	row := &h.Run
	switch {
	case row.Status.Terminal():
		return false, &NotRunningError{RunID: id, Status: row.Status}
	case !row.Paused:
		return false, e.notPaused(ctx, id)
	}
	no, none := false, ""
	// No message counts as seen: so a run that waits is due, and is looked at
	// again.
	patch := &store.RowPatch{Paused: &no, Seen: new(int64)}
	if row.Status == store.Interrupted && row.Code == "" {
		patch.Reason = &none
	}
	_, err = e.act(ctx, row, nil, commit.Act{
		From:  []store.Status{row.Status},
		Event: store.Event{Type: store.WorkflowUnpaused, Data: history.Encode(&history.Stop{Message: row.Inbox, Executor: e.id})},
		Row:   patch,
	})
	switch {
	case err == nil:
		e.claims.Wake()
		return true, nil
	case commit.Overtaken(err):
		return e.unpausedElse(ctx, id)
	}
	return false, fmt.Errorf("durable: unpausing run %s: %w", id, storeError(err))
}

// unpausedElse reports whether a run whose unpausing met another change is done:
// unless it is still paused, that change has let it go on.
func (e *Engine) unpausedElse(ctx context.Context, id string) (done bool, err error) {
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return false, fmt.Errorf("durable: unpausing run %s: %w", id, storeError(err))
	}
	return !h.Run.Paused, nil
}

// notPaused returns nil for a run with a request to pause that was not carried
// out yet, and carries that out if no process executes the run; else an error that
// says that it is not paused.
func (e *Engine) notPaused(ctx context.Context, id string) error {
	// One Load: a row that is older than the events would miss a pause that was
	// carried out in between.
	h, err := e.store.Load(ctx, id, store.Cursor{})
	if err != nil {
		return fmt.Errorf("durable: unpausing run %s: %w", id, storeError(err))
	}
	p, err := readPast(id, h.Events, 16)
	if err != nil {
		return err
	}
	for i := range h.Inbox {
		if m := &h.Inbox[i]; m.Kind == store.KindPause && !p.Consumed(m) {
			d, _ := history.DataOfMessage(m)      // a reason that cannot be read is none
			return e.pauseIdle(ctx, id, d.Reason) // whoever asked may not have come to it
		}
	}
	if h.Run.Paused {
		return nil // it was paused just now
	}
	return &NotPausedError{RunID: id, Status: h.Run.Status}
}

// pause lets a request to pause reach the execution. The contexts of running
// bodies go on. A run that is being cancelled ends anyway: it does not stop for it.
func (st *stopping) pause(reason string) (stops bool) {
	if cause := st.cause(); cause != nil {
		if _, fails := cause.(*undoingError); !fails {
			return false
		}
	}
	_ = st.run.die(&death{kind: deathPaused, err: ErrPaused, reason: reason})
	return true
}
