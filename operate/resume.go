package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// ResumeOptions change how a run is resumed. The zero value continues it from the
// attempt it had reached.
type ResumeOptions struct {
	// FromCheckpoint is the number (Seq) of a stable event of the current history,
	// after which a new branch is made: what came later runs again. CheckpointOf
	// finds it by key. The run's first event goes back to its beginning. 0: none.
	FromCheckpoint int64
	// ResetFailures gives steps that have failed, or are being retried, all their attempts
	// again, and restarts the items and branches that failed with them. A wait whose signal
	// was refused (*SignalTypeError) waits for the next one. The recorded failures stay in
	// the history. The failure that ended a run is taken back even without this option.
	ResetFailures bool
	// Force lets a body of Once that has begun run again, and matches calls by name from
	// there on. For a cancelled run it does neither: it takes the cancel back. The history is
	// cut just before the cancel, or at FromCheckpoint; bodies that were in progress then run
	// again, and children that were cancelled with the run stay cancelled, which the Plan
	// warns of. A run whose effects were undone is refused even with Force, because a history
	// that says they happened would be wrong: Fork it.
	Force bool
	// DryRun returns the plan and changes nothing.
	DryRun bool
}

// Resume continues a run that failed or was interrupted, from the attempt it
// had reached: what was recorded stays. Of two concurrent calls one wins, the other gets a
// *durable.NotResumableError. A failed run takes the keys of Exclusive again, all or none.
// Resume first compares the row with the events; if they contradict each other, it repairs
// the run as RecoverRun does. If this engine has the workflow's code the run is executed
// here; otherwise it becomes claimable by an engine that has it. A run of a queue that has no place
// for it is in line again, and goes on when its turn comes.
//
// A failed run goes on from the failure that ended it: the last recorded step, item or wait
// of its scope has its attempts again (Plan.Reset names it), because otherwise the run would
// fail at once with the same error. Failures that the code has already handled stay as they
// are, as do those of a run whose effects were undone. ResetFailures does the same for a step
// that is still being retried.
//
// Every check comes before anything is written, in this
// order: the run exists; its row and its events agree, or can be repaired; its status allows
// it; it has a checkpoint, which can be read here; the local code fits its history; its
// exclusive keys are free. To check the code, the function is replayed up to the point that
// it had reached: no body of a step runs, and nothing is recorded. A program without the
// workflow's code cannot do that, and says so in Plan.Unchecked. Every entry point (this
// method, ResumeAll, the HTTP routes, the pages, the terminal) uses this function, and DryRun
// does all of it except the writing and the keys.
//
// A waiting run is resumed for one reason only: it waits for a child that has ended, and
// never got the outcome, as may happen after a restore. It gets the outcome, and goes on
// waiting for anything else.
//
// With FromCheckpoint the history is cut after that event: a new branch is made,
// in the same durable act that makes the run claimable, and the run goes on
// there. What was recorded later stays readable and no longer counts: steps run again, with
// the same IdempotencyKey; consumed signals are delivered again; people are asked again;
// started children are cancelled, unless they were abandoned or the workflow chose their id.
// A checkpoint in an item of a Map, or in a branch, leaves the others as they are if nothing
// depends on it yet.
//
// The Plan says what is skipped, what runs again and from where; it is the same
// with DryRun. A run whose cancel is recorded may be resumed and then ends cancelled, which is
// one of Plan.Warnings.
//
// Errors: durable.ErrNotFound; *durable.NotResumableError for a run that is pending, waiting,
// completed, cancelled (without Force), or executed by a live executor, and for one that has
// failed and whose deadline has passed; *durable.UnrecoverableError when its row and its
// events contradict each other in a way that only a person can mend; *CheckpointError,
// also for a run that failed before anything was recorded, which Force begins again from
// its input; *CrossingError and *UndoneError without Force; *durable.DamagedError; *durable.UndecodableError;
// *durable.DefinitionChangedError, which Force may overcome; durable.ErrOccupied when another run holds
// one of its exclusive keys. After any of them nothing has changed.
func (op *Operator) Resume(ctx context.Context, id string, o ResumeOptions) (Plan, error) {
	return resume(ctx, op, id, o, &store.Filter{})
}

// resume is Resume of a run that f still selects.
func resume(ctx context.Context, op *Operator, id string, o ResumeOptions, f *store.Filter) (Plan, error) {
	if op.desk.Closing() {
		return Plan{}, durable.ErrClosed
	}
	v, unreadable, err := op.view(ctx, id)
	if err != nil {
		return Plan{}, err
	}
	before := v.Row
	rv, torn, err := op.mayResume(ctx, v, unreadable, o)
	if err != nil {
		if v.Row.Status == store.Waiting && !v.Row.Paused && unreadable == nil && errors.Is(err, durable.ErrNotResumable) {
			return op.resumeUnheard(ctx, v, o, err)
		}
		return Plan{}, err
	}
	if !selects(f, v.Row) {
		return Plan{}, &durable.NotResumableError{RunID: id, Status: v.Row.Status, Reason: "it has changed since it was listed, and is none of those that were asked for"}
	}
	if o.DryRun {
		return rv.plan, nil
	}
	repaired := false
	if torn != nil {
		if repaired, err = op.desk.RepairFirst(ctx, v.Row); err != nil {
			return Plan{}, err
		}
	}
	if repaired {
		if v, unreadable, err = op.view(ctx, id); err != nil {
			return Plan{}, err
		}
		// The repair decides about what was torn, so check again.
		if rv, _, err = op.mayResume(ctx, v, unreadable, o); err != nil {
			return op.repairedAndTaken(ctx, before, v.Row, o, err)
		}
	}
	row := v.Row
	force := o.Force && !rv.lifts
	rv.Force = rv.Force || force
	reopened, err := op.reopen(ctx, v, rv)
	if err != nil {
		return Plan{}, err
	}
	reopened = reopened || repaired
	read := v.View
	if unreadable != nil || rv.Cut != nil {
		read = nil // the claim reads it again
	}
	claimed, err := op.desk.Claim(ctx, id, &history.Claim{Executor: op.desk.ID(), Resumed: true, Force: force}, read)
	if err != nil {
		return rv.plan, fmt.Errorf("durable: resuming run %s: %w", id, storeError(err))
	}
	if len(rv.added) > 0 {
		op.desk.LogRun(slog.LevelWarn, row, "durable: forced: the code is matched with the history by name, and has calls that were not recorded", slog.Any("calls", rv.added))
	}
	if claimed {
		op.desk.LogRun(slog.LevelInfo, row, rv.plan.String(), slog.Int("branch", int(rv.plan.Branch)), slog.Int("skipped", len(rv.plan.Skipped)), slog.Int("again", len(rv.plan.Again)))
		return rv.plan, nil
	}
	err = op.notClaimed(ctx, rv, row, reopened)
	return rv.plan, err
}

// resumeUnheard is Resume of a waiting run, which may be resumed for one reason only: that it
// would never hear of a child. no says why it cannot be resumed otherwise.
func (op *Operator) resumeUnheard(ctx context.Context, v *view, o ResumeOptions, no error) (Plan, error) {
	if o.FromCheckpoint != 0 || o.ResetFailures || o.Force {
		return Plan{}, no
	}
	told, lost, err := v.hearAgain(ctx, o.DryRun)
	switch {
	case err != nil:
		return Plan{}, err
	case lost != nil:
		return Plan{}, &durable.NotResumableError{RunID: v.Row.ID, Status: v.Row.Status, Reason: lost.Text + ": " + lost.Advice}
	case told == 0:
		return Plan{}, no
	}
	rv, err := v.revise(ctx, nil, history.ResetNone, false)
	if err != nil {
		return Plan{}, err
	}
	rv.warn("it is told what became of %s that %s ended, and goes on waiting for anything else", count.Of(told, "child run"), count.Verb(told, "has", "have"))
	return rv.plan, nil
}

// hearAgain sends a waiting run the outcomes of ended children that it never got. told is how
// many; lost is a child that is not in the store, nil: none.
func (v *view) hearAgain(ctx context.Context, dry bool) (told int, lost *desk.Unheard, err error) {
	for _, calls := range v.Past.Scopes {
		for _, rec := range calls {
			if rec.Child == "" || !rec.Opened || rec.Outcome.Seq != 0 {
				continue
			}
			u, err := v.op.desk.Unheard(ctx, v.Row, rec.Child)
			switch {
			case err != nil:
				return told, nil, fmt.Errorf("durable: run %s: reading its children: %w", v.Row.ID, storeError(err))
			case u == nil:
			case u.Child == nil:
				lost = u
			default:
				if told++; dry {
					continue
				}
				if err := u.Tell(ctx); err != nil {
					return told, nil, err
				}
			}
		}
	}
	return told, lost, nil
}

// repairedAndTaken decides the result of a resume whose repair made the run claimable:
// another executor may have claimed it before the resume did, as err says.
func (op *Operator) repairedAndTaken(ctx context.Context, before, row *store.Run, o ResumeOptions, err error) (Plan, error) {
	if !errors.Is(err, durable.ErrNotResumable) || o != (ResumeOptions{}) {
		return Plan{}, err
	}
	taken, lerr := op.takenSince(ctx, before)
	if lerr != nil || !taken {
		return Plan{}, cmp.Or(lerr, err)
	}
	return Plan{RunID: row.ID, Workflow: row.Workflow, Status: row.Status, Branch: row.Branch}, nil
}

// mayResume makes every check of a resume, and computes its effect. It changes nothing. torn
// is what must be repaired first, nil if nothing must be. With torn, the revision describes
// the run as it is, while its history was checked as the repair will leave it.
func (op *Operator) mayResume(ctx context.Context, v *view, unreadable error, o ResumeOptions) (rv *revision, torn *history.Finding, err error) {
	row := v.Row
	if unreadable == nil {
		if torn, err = op.desk.Torn(ctx, v.View); err != nil {
			return nil, nil, err
		}
	}
	if err := op.resumable(ctx, row, o.Force); err != nil && (torn == nil || !frees(torn.Reason(), row)) {
		return nil, nil, err
	}
	rv = &revision{plan: Plan{RunID: row.ID, Workflow: row.Workflow, Status: row.Status, Branch: row.Branch}}
	if unreadable != nil {
		if !op.handsOver(row, unreadable) || o.FromCheckpoint != 0 || o.ResetFailures {
			return nil, nil, unreadable
		}
		// Another program may be able to read it, and resuming does not commit to anything.
		rv.warn("%v", errors.Unwrap(unreadable)) // in the words of the history
		rv.plan.Unchecked = "this program cannot read its history"
		return rv, nil, nil
	}
	if err := v.hasCheckpoint(o); err != nil {
		return nil, nil, err
	}
	if rv, err = v.resumption(ctx, o); err != nil {
		return nil, nil, err
	}
	if torn != nil {
		rv.warn("the row and the events of the run contradict each other, which is repaired before it is resumed (%s)", torn.Reason())
	}
	if (row.CancelAsked || v.Past.Cancel != nil) && !rv.lifts {
		rv.warn("a cancel of the run is recorded: it does not go on with its work, but runs its compensations and ends cancelled. Once it has, Force takes the cancel back, unless its effects were undone")
	}
	return rv, torn, op.follows(ctx, v, rv, torn, o)
}

// handsOver reports whether a run whose history this program cannot read may be
// made claimable for one that can: the history has an event of a newer version, this program
// lacks the code anyway, and the run has no failure to lose.
func (op *Operator) handsOver(row *store.Run, unreadable error) bool {
	future := (*history.FutureEventError)(nil)
	return errors.As(unreadable, &future) && row.Status != store.Failed && row.Status != store.Cancelled && !op.desk.HasCode(row)
}

// hasCheckpoint says why there is nothing from which a failed run could be resumed, or
// nothing that this program can read. A run that stopped midway continues from there.
func (v *view) hasCheckpoint(o ResumeOptions) error {
	if v.Row.Status != store.Failed {
		return nil
	}
	if !o.Force && o.FromCheckpoint == 0 && v.nothingRecorded() {
		return &CheckpointError{RunID: v.Row.ID, Reason: "it failed before anything was recorded. Force starts it again from its input"}
	}
	for i := range v.Events {
		if _, err := v.op.Payload(v.Row.ID, v.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

// nothingRecorded reports whether a run has got no further than its start.
func (v *view) nothingRecorded() bool {
	for i := range v.Events {
		switch v.Events[i].Type {
		case store.WorkflowCreated, store.InputReplaced, store.WorkflowStarted, store.WorkflowFailed, store.WorkflowInterrupted, store.WorkflowRecovered,
			store.RunResumed, store.RunClaimed, store.WorkflowPaused, store.WorkflowUnpaused, store.AttributesSet:
		default:
			return false
		}
	}
	return true
}

// follows replays the run with the local code, in the state that rv and the repair of torn
// leave, and adds the findings to the plan.
func (op *Operator) follows(ctx context.Context, v *view, rv *revision, torn *history.Finding, o ResumeOptions) error {
	row, events, reset, repinned := *v.Row, rv.Kept, rv.Reset, ""
	if torn != nil {
		if repinned = torn.Version; repinned != "" {
			row.Version = repinned
		}
		if torn.Cut && rv.Cut == nil {
			cut, err := v.revise(ctx, &store.Event{Seq: torn.After, Key: torn.Key}, history.ResetNone, true)
			if err != nil {
				return err
			}
			events, reset = cut.Kept, cut.Reset
		}
	}
	found, err := op.desk.Rehearse(ctx, &row, events, reset, repinned, rv.Force || o.Force && !rv.lifts)
	if err != nil {
		return err
	}
	rv.plan.Unchecked, rv.added = found.Unknown, found.Added
	if len(found.Added) > 0 {
		rv.warn("matched by name: %s is new, and was not recorded before what comes after it", strings.Join(found.Added, ", "))
	}
	switch {
	case !found.Ended:
	case found.Err == nil:
		rv.warn("nothing is left to run: it completes with what is recorded")
	default:
		rv.plan.Ends = found.Err.Error()
		if v.Row.Status == store.Failed {
			rv.warn("nothing is left to run: it fails again at once (%s). A fork, or a checkpoint before the failure, does it over again", guard.Text(rv.plan.Ends, guard.MaxText))
		}
	}
	return nil
}

// resumable returns why a run with this row cannot be resumed.
func (op *Operator) resumable(ctx context.Context, row *store.Run, force bool) error {
	no := &durable.NotResumableError{RunID: row.ID, Status: row.Status}
	switch {
	case row.Code == durable.CodeImporting:
		no.Reason = row.Reason
		return no
	case row.Paused:
		no.Paused, no.Reason = true, "it is paused"
		return no
	case row.Status == store.Cancelled && !force:
		return no
	case row.Status == store.Failed || row.Status == store.Interrupted || row.Status == store.Cancelled:
		if no.Reason = op.desk.PastDeadline(row); no.Reason != "" {
			return no
		}
		return nil
	case row.Status != store.Running && row.Status != store.Resuming:
		return no
	}
	// It is orphaned, or not ours to touch. The claim decides that, but a dry run makes no
	// claim.
	live, err := op.desk.HasLiveOwner(ctx, row)
	if err != nil {
		return err
	}
	if live {
		no.Reason = "already in progress on executor " + row.Owner
		return no
	}
	return nil
}

// frees reports whether the repair of torn makes a run resumable that its row says is not: a
// run that waits for nothing. A run that only gets another version goes on waiting.
func frees(torn string, row *store.Run) bool {
	return torn != "" && torn != history.Reasons[durable.CodeE2] && row.Status == store.Waiting && !row.Paused
}

// resumption computes what o means for the run.
func (v *view) resumption(ctx context.Context, o ResumeOptions) (*revision, error) {
	if v.Row.Status == store.Cancelled {
		if o.ResetFailures {
			return nil, &durable.NotResumableError{RunID: v.Row.ID, Status: v.Row.Status, Reason: "it was cancelled and has not failed: there is nothing to reset"}
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
	what := history.ResetNone
	switch {
	case o.ResetFailures:
		what = history.ResetAll
	case v.Row.Status == store.Failed && at == nil:
		what = history.ResetEnding
	}
	return v.revise(ctx, at, what, o.Force)
}

// notClaimed returns the result of Resume when it did not get the run, which it had found as
// row says.
func (op *Operator) notClaimed(ctx context.Context, rv *revision, row *store.Run, reopened bool) error {
	_, here := op.desk.Steps(row)
	if !here && (reopened || row.Status == store.Failed || row.Status == store.Interrupted) {
		return nil // claimable by an engine that has its code
	}
	h, err := op.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	if h.Run.NeedsPlace() && h.Run.Claimable() && h.Run.Owner == "" {
		rv.warn("queue %s has no place for it now: it is in line, and goes on when it gets one", h.Run.Queue)
		return nil
	}
	if reopened { // asked after the row was read, so that whoever took it from the line is seen
		if taken, err := op.takenSince(ctx, row); err != nil || taken {
			return err
		}
	}
	reason := ""
	switch {
	case h.Run.NeedsPlace() && h.Run.Owner == "" && !h.Run.Paused && !h.Run.Parked():
		return nil // it goes on when its turn comes
	case h.Run.Paused:
		reason = "it is paused"
	case !here && h.Run.Owner == row.Owner:
		reason = op.desk.NotServed(row)
	case h.Run.Owner != "":
		reason = "already in progress on executor " + h.Run.Owner
	}
	return &durable.NotResumableError{RunID: row.ID, Status: h.Run.Status, Reason: reason, Paused: h.Run.Paused}
}

// takenSince reports whether another executor has claimed the run that this Resume had found
// as row says and has since made claimable. That executor does what the call asked for,
// unless it is another call of Resume: of two, one wins.
func (op *Operator) takenSince(ctx context.Context, row *store.Run) (bool, error) {
	var seen int64
	if row.Last != nil {
		seen = row.Last.Seq
	}
	h, err := op.store.Load(ctx, row.ID, store.Cursor{After: seen, All: true})
	if err != nil {
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	for ev, err := range h.Events {
		if err != nil {
			return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
		}
		if ev.Type.Claims() {
			d, err := history.Of[history.Claim](&ev)
			return err == nil && !d.Resumed, nil
		}
	}
	return false, nil
}

// reopen makes a failed or parked run claimable again, and its history what rv
// says, in one act; done is false for a run that is claimable and stays as it is. The failure
// stays in the history; the row drops it. One whose process is gone can be claimed by this
// engine as it is; any other leaves it to its policy, so without the code it is reopened.
func (op *Operator) reopen(ctx context.Context, v *view, rv *revision) (done bool, err error) {
	row := v.Row
	_, here := op.desk.Steps(row)
	lost := row.Status == store.Running || row.Status == store.Resuming // nobody alive has it
	if rv.Cut == nil && len(rv.Reset) == 0 && (lost && here || !lost && row.Status != store.Failed && row.Code == "") {
		return false, nil
	}
	hold, err := op.desk.KeysToTake(ctx, row)
	if err != nil {
		return false, err
	}
	a := rv.act(row, &history.Act{Executor: op.desk.ID(), Reason: "resume requested"})
	a.Hold = hold
	_, err = op.desk.Act(ctx, row, v.Branches, a)
	var owned *store.OwnedError
	var exists *store.ExistsError
	switch {
	case errors.As(err, &owned):
		return false, &durable.NotResumableError{RunID: row.ID, Status: row.Status, Reason: "already in progress on executor " + owned.Owner}
	case commit.Overtaken(err):
		return false, &durable.NotResumableError{RunID: row.ID, Status: row.Status, Reason: "somebody else resumed it in the same moment"}
	case errors.As(err, &exists):
		return false, &durable.NotResumableError{RunID: row.ID, Status: row.Status, Reason: fmt.Sprintf("run %s has its deduplication key %q by now: resume it once that run has ended", exists.RunID, row.Dedup)}
	case errors.Is(err, store.ErrOccupied):
		return false, commit.Occupied("was not resumed; resume it again once that run has ended", err)
	case err != nil:
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return true, nil
}

// act returns the act that carries rv out and leaves the run claimable. The messages that
// requested a pause become void: the pause has happened, or is over.
func (rv *revision) act(row *store.Run, d *history.Act) commit.Act {
	d.Message, d.Reset, d.Force, d.Lifted, d.Anew = row.Inbox, rv.Reset, rv.Force, rv.Lifted, rv.Anew
	a := commit.Act{From: []store.Status{row.Status}, Row: commit.Claimable(), Cut: rv.Cut, Send: rv.send, Undone: rv.Undone}
	switch {
	case rv.Cut != nil:
		a.Event.Type = store.JumpActivated
		if rv.lifts {
			d.Lifted, d.Reason, a.Row.CancelAsked = row.Inbox, history.Uncancelled, new(bool)
		}
		rv.Cut.Reason = d.Reason
		d.FromBranch, d.ToBranch, d.Cutoff = row.Branch, rv.plan.Branch, rv.Cut.After
		a.Row.Seen, a.Row.Attributes = new(int64), rv.Attributes
	case len(rv.Reset) > 0:
		a.Event.Type = store.FailuresReset
	default:
		a.Event.Type = store.WorkflowInterrupted
		a.Event.Data = history.Encode(&history.Stop{Executor: d.Executor, Reason: d.Reason, Message: d.Message, Reopened: d.Reopened, Force: d.Force})
		return a
	}
	a.Event.Data = history.Encode(d)
	return a
}
