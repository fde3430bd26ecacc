package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"

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

// ResumeOptions change how a run is resumed. The zero value continues it from the
// attempt it had reached.
type ResumeOptions struct {
	// FromCheckpoint is the number (Seq) of a stable event of the current history,
	// behind which a new branch is made: what came later runs again. CheckpointOf
	// finds it by key. The run's first event goes back to its beginning. 0: none.
	FromCheckpoint int64
	// ResetFailures gives steps that have failed, or are being tried again, all
	// their attempts anew, and the items and branches that failed with them. A wait
	// that was refused its signal (*SignalTypeError) waits for the next one. What
	// was recorded of the failures stays in the history.
	ResetFailures bool
	// Force lets a body of Once that has begun run again, and has calls matched by
	// name from there on. For a cancelled run it does neither: it takes the cancel
	// back. The history is cut just before the cancel, or at FromCheckpoint; bodies
	// that were under way then run again, and children that were cancelled with the
	// run stay so, which the Plan warns of. A run whose effects were undone is
	// refused even so, because a history that says they happened would be wrong:
	// Fork it.
	Force bool
	// DryRun returns the plan and changes nothing.
	DryRun bool
}

// Resume continues a run that failed or was interrupted, from the attempt it
// had reached: what was recorded stays. Of two calls at once one wins, the other
// gets a *NotResumableError. A failed run takes the keys of Exclusive again, all
// or none. What its row says is compared with its events first, and repaired as
// RecoverRun does it. When this engine has the workflow's code the run is
// executed here; else it becomes claimable by whoever has it.
//
// With FromCheckpoint the history is cut behind that event: a new branch is made,
// in the same durable act that makes the run claimable, and the run goes on
// there. What was recorded later stays readable and counts no more: steps run
// again, with the same IdempotencyKey; signals that were taken are delivered
// again; people are asked again; children that were started are cancelled, unless
// they were abandoned or have an id of the workflow's choosing. A checkpoint in an
// item of a Map, or in a branch, leaves the others as they are where nothing
// followed from it yet.
//
// The Plan says what is skipped, what runs again and from where; it is the same
// with DryRun.
//
// Errors: ErrNotFound; *NotResumableError for a run that is pending, waiting,
// completed, cancelled (without Force), or executed by a live executor, and for one that has
// failed and whose deadline has passed; *UnrecoverableError when its row and its
// events contradict each other in a way that only a person can mend; ErrOccupied when another run holds one of
// its exclusive keys; *CheckpointError; *CrossingError without Force; an error of
// a history that cannot be read, if that is needed. After any of them nothing has
// changed.
func (e *Engine) Resume(ctx context.Context, id string, o ResumeOptions) (Plan, error) {
	if e.isClosing() {
		return Plan{}, ErrClosed
	}
	v, unreadable, err := e.view(ctx, id)
	if err != nil {
		return Plan{}, fmt.Errorf("resuming: %w", err)
	}
	row, before := v.row, v.row
	repaired, torn := false, ""
	if unreadable == nil {
		if repaired, torn, err = e.recoverFirst(ctx, v, o.DryRun); err != nil {
			return Plan{}, err
		}
	}
	if repaired {
		if v, unreadable, err = e.view(ctx, id); err != nil {
			return Plan{}, fmt.Errorf("resuming: %w", err)
		}
		row = v.row
	}
	// A dry run repairs nothing: it plans for what a repair would make of the row.
	if err := e.resumable(ctx, row, o.Force); err != nil && !frees(torn, row) {
		if !repaired || o != (ResumeOptions{}) {
			return Plan{}, err
		}
		// The repair has made it claimable for everybody.
		taken, lerr := e.takenSince(ctx, before)
		if lerr != nil || !taken {
			return Plan{}, cmp.Or(lerr, err)
		}
		return Plan{RunID: id, Workflow: row.Workflow, Status: row.Status, Branch: row.Branch}, nil
	}
	rv := &revision{plan: Plan{RunID: id, Workflow: row.Workflow, Status: row.Status, Branch: row.Branch}}
	switch {
	case row.Status == store.Cancelled && unreadable != nil:
		return Plan{}, unreadable
	case unreadable == nil:
		if rv, err = v.resumption(ctx, o); err != nil {
			return Plan{}, err
		}
	case o.FromCheckpoint != 0 || o.ResetFailures:
		return Plan{}, unreadable
	default:
		// Another program may be able to read it: resuming decides nothing.
		rv.warn("%v", unreadable)
	}
	if torn != "" {
		rv.warn("the row and the events of the run contradict each other, which is repaired before it is resumed (%s)", torn)
	}
	if o.DryRun {
		return rv.plan, nil
	}
	force := o.Force && !rv.lifts
	rv.force = rv.force || force
	reopened, err := e.reopen(ctx, v, rv)
	if err != nil {
		return Plan{}, err
	}
	reopened = reopened || repaired
	var k *known
	if unreadable == nil {
		k = v.known(rv)
	}
	claim := store.Claim{Max: 1, IDs: []string{id}}
	runs, err := e.claimKnown(ctx, claim, &eventData{Executor: e.id, Resumed: true, Force: force}, k)
	if err != nil {
		return rv.plan, fmt.Errorf("durable: resuming run %s: %w", id, storeError(err))
	}
	if len(runs) > 0 {
		e.logRun(slog.LevelInfo, row, rv.plan.String(), slog.Int("branch", int(rv.plan.Branch)), slog.Int("skipped", len(rv.plan.Skipped)), slog.Int("again", len(rv.plan.Again)))
		return rv.plan, nil
	}
	return rv.plan, e.notClaimed(ctx, row, reopened)
}

// ResumeAll resumes one after the other the runs that match, as Resume does each, and
// yields the plan of each with the error why it was not resumed, if it was not;
// Plan.RunID says which run it is. Without Statuses in f those are meant that are
// interrupted or have failed. Paused ones are left out. After an error of the listing,
// which names no run, it ends; so it does when ctx ends. Breaking off leaves the others
// as they are.
//
//	f := store.Filter{Workflows: []string{"checkout"}, Codes: []string{durable.CodeDefinitionChanged}}
//	for plan, err := range eng.ResumeAll(ctx, f, durable.ResumeOptions{}) { ... }
//
// FromCheckpoint is an event of one run, and must be 0: ErrInvalid.
func (e *Engine) ResumeAll(ctx context.Context, f store.Filter, o ResumeOptions) iter.Seq2[Plan, error] {
	return func(yield func(Plan, error) bool) {
		if o.FromCheckpoint != 0 {
			yield(Plan{}, fmt.Errorf("durable: ResumeAll: FromCheckpoint is an event of one run: %w", ErrInvalid))
			return
		}
		if len(f.Statuses) == 0 {
			f.Statuses = []store.Status{store.Interrupted, store.Failed}
		}
		for row, err := range e.runsOf(ctx, f) {
			if err != nil {
				yield(Plan{}, fmt.Errorf("durable: listing runs to resume: %w", storeError(err)))
				return
			}
			if row.Paused {
				continue
			}
			plan, err := e.Resume(ctx, row.ID, o)
			plan.RunID = row.ID
			if !yield(plan, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// resumable returns why a run cannot be resumed as its row is.
func (e *Engine) resumable(ctx context.Context, row *store.Run, force bool) error {
	no := &NotResumableError{RunID: row.ID, Status: row.Status}
	switch {
	case row.Code == CodeImporting:
		no.Reason = row.Reason
		return no
	case row.Paused:
		no.Reason = "it is paused"
		return no
	case row.Status == store.Cancelled && !force:
		return no
	case row.Status == store.Failed || row.Status == store.Interrupted || row.Status == store.Cancelled:
		if no.Reason = e.pastDeadline(row); no.Reason != "" {
			return no
		}
		return nil
	case row.Status != store.Running && row.Status != store.Resuming:
		return no
	}
	// Orphaned, or not ours to touch. The claim decides; a dry run makes none.
	live, err := e.hasLiveOwner(ctx, row)
	if err != nil {
		return err
	}
	if live {
		no.Reason = "already in progress on executor " + row.Owner
		return no
	}
	return nil
}

// hasLiveOwner reports whether a live executor has the run.
func (e *Engine) hasLiveOwner(ctx context.Context, row *store.Run) (bool, error) {
	if row.Owner == "" {
		return false, nil
	}
	executors, err := e.store.Executors(ctx)
	if err != nil {
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return slices.ContainsFunc(executors, func(x store.Executor) bool { return x.Live && x.ID == row.Owner }), nil
}

// frees reports whether the repair of what is torn makes a run resumable that is
// not so as its row is: one that waits for nothing. One that is only given another
// version goes on waiting.
func frees(torn string, row *store.Run) bool {
	return torn != "" && torn != reasons[CodeE2] && row.Status == store.Waiting && !row.Paused
}

// resumption works out what o means for the run.
func (v *view) resumption(ctx context.Context, o ResumeOptions) (*revision, error) {
	if v.row.Status == store.Cancelled {
		if o.ResetFailures {
			return nil, &NotResumableError{RunID: v.row.ID, Status: v.row.Status, Reason: "it was cancelled and has not failed: there is nothing to reset"}
		}
		return v.uncancel(ctx, o.FromCheckpoint)
	}
	var at *store.Event
	if o.FromCheckpoint != 0 {
		var err error
		if at, err = v.stable(o.FromCheckpoint); err != nil {
			return nil, err
		}
	}
	return v.revise(ctx, at, o.ResetFailures, o.Force)
}

// notClaimed says what it means that Resume did not get the run, which it had
// found as row says.
func (e *Engine) notClaimed(ctx context.Context, row *store.Run, reopened bool) error {
	if e.defs.find(row.Workflow, row.Version) == nil && (reopened || row.Status == store.Failed || row.Status == store.Interrupted) {
		return nil // claimable by whoever has its code
	}
	if reopened {
		if taken, err := e.takenSince(ctx, row); err != nil || taken {
			return err
		}
	}
	h, err := e.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
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

// takenSince reports whether somebody has claimed the run, which a call of Resume
// had found as row says and has made claimable since. Whoever does carries out
// what the call asked for, unless it is another call of Resume: of two, one wins.
func (e *Engine) takenSince(ctx context.Context, row *store.Run) (bool, error) {
	var seen int64
	if row.Last != nil {
		seen = row.Last.Seq
	}
	h, err := e.store.Load(ctx, row.ID, store.Cursor{After: seen, All: true})
	if err != nil {
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	for ev, err := range h.Events {
		if err != nil {
			return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
		}
		if ev.Type.Claims() {
			d, err := dataOf(&ev)
			return err == nil && !d.Resumed, nil
		}
	}
	return false, nil
}

// reopen makes a failed or parked run claimable again, and its history what rv
// says, in one act; done is false for one that is claimable and stays as it is.
// The failure stays in the history; the row forgets it.
func (e *Engine) reopen(ctx context.Context, v *view, rv *revision) (done bool, err error) {
	row := v.row
	if rv.cut == nil && len(rv.reset) == 0 && (row.Status != store.Failed && row.Code == "" || row.Status == store.Running || row.Status == store.Resuming) {
		return false, nil
	}
	hold, err := e.keysToTake(ctx, row)
	if err != nil {
		return false, err
	}
	a := rv.act(row, &eventData{Executor: e.id, Reason: "resume requested"})
	a.hold = hold
	_, err = e.operate(ctx, row, v.branches, a)
	var owned *store.OwnedError
	switch {
	case errors.As(err, &owned):
		return false, &NotResumableError{RunID: row.ID, Status: row.Status, Reason: "already in progress on executor " + owned.Owner}
	case overtaken(err):
		return false, &NotResumableError{RunID: row.ID, Status: row.Status, Reason: "somebody else resumed it in the same moment"}
	case errors.Is(err, store.ErrOccupied):
		return false, occupied("was not resumed; resume it again once that run has ended", err)
	case err != nil:
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return true, nil
}

// act is the act that carries rv out and leaves the run claimable. The messages
// by which it was asked to pause are void: what they asked for was done, or is
// over.
func (rv *revision) act(row *store.Run, d *eventData) act {
	d.Message, d.Reset, d.Force, d.Lifted = row.Inbox, rv.reset, rv.force, rv.lifted
	a := act{from: []store.Status{row.Status}, row: claimable(), cut: rv.cut, send: rv.send, undone: rv.undone}
	a.event.Type = store.WorkflowInterrupted
	switch {
	case rv.cut != nil:
		a.event.Type = store.JumpActivated
		if rv.lifts {
			d.Lifted, d.Reason, a.row.CancelAsked = row.Inbox, uncancelled, new(bool)
		}
		rv.cut.reason = d.Reason
		d.FromBranch, d.ToBranch, d.Cutoff = row.Branch, rv.plan.Branch, rv.cut.after
		a.row.Seen, a.row.Attributes = new(int64), rv.attributes
	case len(rv.reset) > 0:
		a.event.Type = store.FailuresReset
	}
	a.event.Data = d.encode()
	return a
}

// claimable is the row of a run that anybody who serves it may go on with.
func claimable() *store.RowPatch {
	interrupted, none, no := store.Interrupted, "", false
	return &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none, Recoverable: &no, EndedAt: new(store.Time), WakeAt: new(store.Time), Strikes: new(int32)}
}
