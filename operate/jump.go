package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A jump is carried out in two acts, so that the history shows it even if it did not finish:
// jump_requested, on the branch to leave, and jump_activated, the first event of the new one.
// Between the two no executor can claim the run: it is paused, or, if it had failed, parked. To
// finish it after a crash, request the jump again.

// JumpOptions change how Jump works.
type JumpOptions struct {
	// Reason is recorded with the jump, for people; By says who requested it.
	Reason, By string
	// Force lets a body of Once that has begun run again.
	Force bool
	// DryRun returns the plan and changes nothing.
	DryRun bool
}

// BusyError says that a live executor has the run and did not stop in time.
type BusyError struct {
	RunID string
	Owner string // executor id; empty: not known
	Err   error
}

func (e *BusyError) Error() string {
	s := fmt.Sprintf("durable: run %s is being executed", e.RunID)
	if e.Owner != "" {
		s += " by " + e.Owner
	}
	s += ". Pause it with Engine.Pause, and try again once it is paused"
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is matches store.ErrOwned.
func (e *BusyError) Is(target error) bool { return target == store.ErrOwned }

func (e *BusyError) Unwrap() error { return e.Err }

// Jump takes a run back to a stable point of its current history, the event with
// this number (CheckpointOf finds it by key), and lets it go on from there on a new
// branch, as Resume with FromCheckpoint does. It works on a run that is executed,
// waits, is interrupted, parked or has failed. Jump first pauses a run that has not ended,
// wherever it is executed, and waits until the bodies in progress have ended and are recorded. A
// run that was paused before stays paused, unless an unfinished Jump had paused it: calling Jump
// again finishes what a killed process began.
//
// The jump is durable when Jump returns. When ctx ends before the run has stopped,
// nothing has changed except that a pause was requested: call Jump again, or Unpause the run.
//
// Errors: durable.ErrNotFound; *durable.NotResumableError for a run that is pending, completed or
// cancelled, or has failed and whose deadline has passed; *CheckpointError;
// *CrossingError and *UndoneError without Force; durable.ErrOccupied when a failed run cannot get
// its exclusive keys again; *BusyError when the run did not stop before ctx ended.
func (op *Operator) Jump(ctx context.Context, id string, to int64, o JumpOptions) (Plan, error) {
	if op.desk.Closing() {
		return Plan{}, durable.ErrClosed
	}
	asked := false // a pause was requested, by this call or an earlier one
	var found store.Status
	for tries := 0; ; tries++ {
		v, rv, own, err := op.planJump(ctx, id, to, o)
		asked = asked || own
		if err != nil && asked && !o.DryRun {
			// Something that ended meanwhile prevents the jump: the run goes on as before.
			op.liftPause(context.WithoutCancel(ctx), id)
		}
		if err != nil || o.DryRun {
			return rv.plan, err
		}
		found = cmp.Or(found, rv.plan.Status)
		rv.plan.Status = found // not the status in which the pause has left it
		if v.Row.Status != store.Failed && !v.Row.Paused {
			if err := op.pauseFor(ctx, id, v.Row.Owner, fmt.Sprintf("to jump back to event %d", to)); err != nil {
				return rv.plan, err
			}
			asked = true
			continue // what was in progress is recorded now
		}
		goesOn, err := op.jump(ctx, v, rv, o, own)
		held := heldByOther(v.Row, "was not taken back; try again once that run has ended", err)
		switch {
		case err == nil:
			if goesOn {
				op.desk.GoOn(ctx, id)
			}
			return rv.plan, nil
		case commit.Overtaken(err) && tries < 8:
			continue // another act on the run happened at the same moment
		case held != nil:
			return rv.plan, held
		default:
			return rv.plan, fmt.Errorf("durable: jumping in run %s: %w", id, storeError(err))
		}
	}
}

// liftPause continues a run that a Jump has paused but does not move. A run that someone else
// wants paused stays paused.
func (op *Operator) liftPause(ctx context.Context, id string) {
	v, _, err := op.view(ctx, id)
	if err != nil {
		return
	}
	if inbox, err := op.inboxOf(ctx, id); err == nil && v.PausedToJump(inbox) {
		_ = op.eng.Unpause(ctx, id)
	}
}

// planJump computes a jump, or why there can be none. own says that the run is paused only
// because of a Jump.
func (op *Operator) planJump(ctx context.Context, id string, to int64, o JumpOptions) (v *view, rv *revision, own bool, err error) {
	none := &revision{}
	v, unreadable, err := op.view(ctx, id)
	if err == nil {
		err = cmp.Or(v.imported(), unreadable)
	}
	if err != nil {
		return nil, none, false, err
	}
	inbox, err := op.inboxOf(ctx, id)
	if err != nil {
		return nil, none, false, err
	}
	own = v.PausedToJump(inbox)
	no := &durable.NotResumableError{RunID: id, Status: v.Row.Status}
	switch v.Row.Status {
	case store.Pending, store.Completed, store.Cancelled:
		return nil, none, own, no
	}
	if no.Reason = op.desk.PastDeadline(v.Row); no.Reason != "" {
		return nil, none, own, no
	}
	at, err := v.stable(to)
	if err != nil {
		return nil, none, own, err
	}
	rv, err = v.revise(ctx, at, history.ResetNone, o.Force)
	if err != nil {
		return nil, none, own, err
	}
	if v.Row.Paused && !own {
		rv.warn("the run is paused and stays so: Unpause it to let it go on")
	}
	return v, rv, own, nil
}

// inboxOf reads the messages of a run.
func (op *Operator) inboxOf(ctx context.Context, id string) ([]store.Message, error) {
	h, err := op.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	return h.Inbox, nil
}

// jump records the request and activates the branch. With own the run is paused
// because of a Jump, and goes on unless another pause was requested meanwhile.
func (op *Operator) jump(ctx context.Context, v *view, rv *revision, o JumpOptions, own bool) (goesOn bool, err error) {
	row := v.Row
	d := history.Act{Executor: op.desk.ID(), Reason: guard.Text(o.Reason, guard.MaxText), By: guard.Text(o.By, guard.MaxText), FromBranch: row.Branch, ToBranch: rv.plan.Branch, Cutoff: rv.Cut.After}
	request := commit.Act{
		From:  []store.Status{row.Status},
		Event: store.Event{Type: store.JumpRequested, Data: history.Encode(&d)},
	}
	if row.Status == store.Failed {
		hold, err := op.desk.KeysToTake(ctx, row)
		if err != nil {
			return false, err
		}
		request.Hold = hold
		request.Row = commit.Claimable()
		code, reason := durable.CodeJump, history.JumpReason(rv.Cut.After)
		request.Row.Code, request.Row.Reason = &code, &reason
	}
	if _, err := op.desk.Act(ctx, row, v.Branches, request); err != nil {
		return false, err
	}
	// A crash here leaves the run paused or parked, on the old branch.
	h, err := op.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return false, err
	}
	if last := h.Run.Last; last == nil || last.Seq != row.Last.Seq+1 || last.Type != store.JumpRequested {
		return false, fmt.Errorf("run %s was acted on meanwhile: %w", row.ID, store.ErrFenced)
	}
	activate := rv.act(&h.Run, &d)
	goesOn = !row.Paused
	if own && v.PausedToJump(h.Inbox) {
		goesOn, activate.Row.Paused = true, new(bool)
	}
	_, err = op.desk.Act(ctx, &h.Run, h.Branches, activate)
	return goesOn, err
}

// How often Jump checks whether the run has stopped, because other processes do not report that.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// pauseFor pauses a run and waits until no executor has it.
func (op *Operator) pauseFor(ctx context.Context, id, owner, reason string) error {
	changed, stop := op.desk.Watch(id)
	defer stop()
	if err := op.desk.Pause(ctx, id, history.MessageData{Reason: reason, Jump: true}); err != nil && !errors.Is(err, durable.ErrNotRunning) {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		h, err := op.store.Load(ctx, id, store.Cursor{NoEvents: true, AfterMessage: 1<<63 - 1})
		switch {
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("durable: pausing run %s: %w", id, storeError(err))
		case err == nil && (h.Run.Paused || h.Run.Status.Terminal()):
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-changed:
		case <-t.C:
		case <-ctx.Done():
			err = &BusyError{RunID: id, Owner: owner, Err: context.Cause(ctx)}
		case <-op.desk.Closed():
			err = durable.ErrClosed
		}
		t.Stop()
		if err != nil {
			return err
		}
	}
}
