package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
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
	// ResetFailures gives steps that have failed, or are being tried again, all
	// their attempts anew, and the items and branches that failed with them. A wait
	// that was refused its signal (*SignalTypeError) waits for the next one. What
	// was recorded of the failures stays in the history. The failure that has ended
	// a run is taken back without it.
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
// gets a *durable.NotResumableError. A failed run takes the keys of Exclusive again, all
// or none. What its row says is compared with its events first, and repaired as
// RecoverRun does it. When this engine has the workflow's code the run is
// executed here; else it becomes claimable by whoever has it.
//
// A run that has failed goes on from the failure that ended it: the step, item or
// wait that nothing was recorded after in its scope has its attempts again (Plan.Reset
// names it), or the run would fail at once with the same error. Failures that the
// code has already made use of stay as they are, as do those of a run whose effects
// were undone. ResetFailures does the same for a step that is still being tried.
//
// Every check comes before anything is written, in this
// order: the run is there; its row and its events agree, or can be repaired; its
// status allows it; it has a checkpoint, which can be read here; the code that is
// here fits its history; its exclusive keys are free. For the last but one, the
// function is replayed up to the point that it had reached: no body of a step runs,
// and nothing is recorded. A program without the workflow's code cannot do that, and
// says so in Plan.Unchecked. Every door (this method, ResumeAll, the HTTP routes, the
// pages, the terminal) is this function, and DryRun is all of it but the writing and
// the keys.
//
// A run that waits is resumed for one reason alone: it waits for a child that has ended,
// and was not told, as may happen after a restore. It is told, and goes on waiting for
// anything else.
//
// With FromCheckpoint the history is cut after that event: a new branch is made,
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
// Errors: durable.ErrNotFound; *durable.NotResumableError for a run that is pending, waiting,
// completed, cancelled (without Force), or executed by a live executor, and for one that has
// failed and whose deadline has passed; *durable.UnrecoverableError when its row and its
// events contradict each other in a way that only a person can mend; *CheckpointError,
// also for a run that failed before anything was recorded, which Force begins again from
// its input; *CrossingError and *UndoneError without Force; *durable.DamagedError; *durable.UndecodableError;
// *durable.DefinitionChangedError, which Force may overcome; durable.ErrOccupied when another run holds
// one of its exclusive keys. After any of them nothing has changed.
func (op *Operator) Resume(ctx context.Context, id string, o ResumeOptions) (Plan, error) {
	if op.desk.Closing() {
		return Plan{}, durable.ErrClosed
	}
	v, unreadable, err := op.view(ctx, id)
	if err != nil {
		return Plan{}, fmt.Errorf("resuming: %w", err)
	}
	before := v.Row
	rv, torn, err := op.mayResume(ctx, v, unreadable, o)
	if err != nil {
		if v.Row.Status == store.Waiting && !v.Row.Paused && unreadable == nil && errors.Is(err, durable.ErrNotResumable) {
			return op.resumeUnheard(ctx, v, o, err)
		}
		return Plan{}, err
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
			return Plan{}, fmt.Errorf("resuming: %w", err)
		}
		// Of what was torn the repair decides: it is looked at anew.
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
		read = nil // the claim reads it anew
	}
	claimed, err := op.desk.Claim(ctx, id, &history.Data{Executor: op.desk.ID(), Resumed: true, Force: force}, read)
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
	return rv.plan, op.notClaimed(ctx, row, reopened)
}

// resumeUnheard is Resume of a run that waits, and may be resumed for this alone: that it
// would never hear of a child. no says why not otherwise.
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
	rv.warn("it is told what became of %d child runs that have ended, and goes on waiting for anything else", told)
	return rv.plan, nil
}

// hearAgain has a waiting run told what became of children that have ended without its
// being told. told is how many; lost is a child that is not in the store, nil: none.
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

// repairedAndTaken says what has become of a resume whose run was made claimable
// by its repair: somebody may have claimed it before the resume did, which err says.
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

// mayResume makes every check of a resume, and works out what it does. It changes
// nothing. torn is what is to be repaired first, nil if nothing is; then the revision
// tells of the run as it is, and its history was judged as the repair will leave it.
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
		// Another program may be able to read it: resuming decides nothing.
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
	return rv, torn, op.follows(ctx, v, rv, torn, o)
}

// handsOver reports whether a run whose history this program cannot read may be
// made claimable for one that can: it knows no event of a newer version, lacks the
// code anyhow, and the run has no failure to lose.
func (op *Operator) handsOver(row *store.Run, unreadable error) bool {
	future := (*history.FutureEventError)(nil)
	return errors.As(unreadable, &future) && row.Status != store.Failed && row.Status != store.Cancelled && !op.desk.HasCode(row)
}

// hasCheckpoint says why there is nothing that a failed run could be resumed from,
// or nothing that this program can read. One that stopped in its course goes on in it.
func (v *view) hasCheckpoint(o ResumeOptions) error {
	if v.Row.Status != store.Failed {
		return nil
	}
	if !o.Force && o.FromCheckpoint == 0 && v.nothingRecorded() {
		return &CheckpointError{RunID: v.Row.ID, Reason: "it failed before anything was recorded. Force starts it again from its input"}
	}
	for i := range v.Events {
		if _, err := v.op.eng.Payload(v.Row.ID, v.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

// nothingRecorded reports whether a run has come no further than to its start.
func (v *view) nothingRecorded() bool {
	for i := range v.Events {
		switch v.Events[i].Type {
		case store.WorkflowCreated, store.WorkflowStarted, store.WorkflowFailed, store.WorkflowInterrupted, store.WorkflowRecovered,
			store.RunResumed, store.RunClaimed, store.WorkflowPaused, store.WorkflowUnpaused, store.AttributesSet:
		default:
			return false
		}
	}
	return true
}

// follows replays the run with the code that is here, as rv and the repair of what
// is torn leave it, and adds to the plan what that tells.
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

// ResumeAll resumes one after the other the runs that match, as Resume does each, and
// yields the plan of each with the error why it was not resumed, if it was not;
// Plan.RunID says which run it is. Without Statuses in f those are meant that are
// interrupted or have failed. Paused ones are left out. After an error of the listing,
// which names no run, it ends; so it does when ctx ends. Breaking off leaves the others
// as they are.
//
//	f := store.Filter{Workflows: []string{"checkout"}, Codes: []string{durable.CodeDefinitionChanged}}
//	for plan, err := range op.ResumeAll(ctx, f, operate.ResumeOptions{}) { ... }
//
// FromCheckpoint is an event of one run, and must be 0: durable.ErrInvalid.
func (op *Operator) ResumeAll(ctx context.Context, f store.Filter, o ResumeOptions) iter.Seq2[Plan, error] {
	return func(yield func(Plan, error) bool) {
		if o.FromCheckpoint != 0 {
			yield(Plan{}, fmt.Errorf("durable: ResumeAll: FromCheckpoint is an event of one run: %w", durable.ErrInvalid))
			return
		}
		if len(f.Statuses) == 0 {
			f.Statuses = []store.Status{store.Interrupted, store.Failed}
		}
		for row, err := range op.desk.Runs(ctx, f) {
			if err != nil {
				yield(Plan{}, fmt.Errorf("durable: listing runs to resume: %w", storeError(err)))
				return
			}
			if row.Paused {
				continue
			}
			plan, err := op.Resume(ctx, row.ID, o)
			plan.RunID = row.ID
			if !yield(plan, err) || ctx.Err() != nil {
				return
			}
		}
	}
}

// resumable returns why a run cannot be resumed as its row is.
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
	// Orphaned, or not ours to touch. The claim decides; a dry run makes none.
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

// frees reports whether the repair of what is torn makes a run resumable that is
// not so as its row is: one that waits for nothing. One that is only given another
// version goes on waiting.
func frees(torn string, row *store.Run) bool {
	return torn != "" && torn != history.Reasons[durable.CodeE2] && row.Status == store.Waiting && !row.Paused
}

// resumption works out what o means for the run.
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

// notClaimed says what it means that Resume did not get the run, which it had
// found as row says.
func (op *Operator) notClaimed(ctx context.Context, row *store.Run, reopened bool) error {
	_, here := op.desk.Steps(row)
	if !here && (reopened || row.Status == store.Failed || row.Status == store.Interrupted) {
		return nil // claimable by whoever has its code
	}
	if reopened {
		if taken, err := op.takenSince(ctx, row); err != nil || taken {
			return err
		}
	}
	h, err := op.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	reason := ""
	switch {
	case h.Run.Paused:
		reason = "it is paused"
	case !here && h.Run.Owner == row.Owner:
		reason = op.desk.NotServed(row)
	case h.Run.Owner != "":
		reason = "already in progress on executor " + h.Run.Owner
	}
	return &durable.NotResumableError{RunID: row.ID, Status: h.Run.Status, Reason: reason, Paused: h.Run.Paused}
}

// takenSince reports whether somebody has claimed the run, which a call of Resume
// had found as row says and has made claimable since. Whoever does carries out
// what the call asked for, unless it is another call of Resume: of two, one wins.
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
			d, err := history.DataOf(&ev)
			return err == nil && !d.Resumed, nil
		}
	}
	return false, nil
}

// reopen makes a failed or parked run claimable again, and its history what rv
// says, in one act; done is false for one that is claimable and stays as it is.
// The failure stays in the history; the row forgets it.
func (op *Operator) reopen(ctx context.Context, v *view, rv *revision) (done bool, err error) {
	row := v.Row
	if rv.Cut == nil && len(rv.Reset) == 0 && (row.Status != store.Failed && row.Code == "" || row.Status == store.Running || row.Status == store.Resuming) {
		return false, nil
	}
	hold, err := op.desk.KeysToTake(ctx, row)
	if err != nil {
		return false, err
	}
	a := rv.act(row, &history.Data{Executor: op.desk.ID(), Reason: "resume requested"})
	a.Hold = hold
	_, err = op.desk.Act(ctx, row, v.Branches, a)
	var owned *store.OwnedError
	switch {
	case errors.As(err, &owned):
		return false, &durable.NotResumableError{RunID: row.ID, Status: row.Status, Reason: "already in progress on executor " + owned.Owner}
	case desk.Overtaken(err):
		return false, &durable.NotResumableError{RunID: row.ID, Status: row.Status, Reason: "somebody else resumed it in the same moment"}
	case errors.Is(err, store.ErrOccupied):
		return false, desk.Occupied("was not resumed; resume it again once that run has ended", err)
	case err != nil:
		return false, fmt.Errorf("durable: resuming run %s: %w", row.ID, storeError(err))
	}
	return true, nil
}

// act is the act that carries rv out and leaves the run claimable. The messages
// by which it was asked to pause are void: what they asked for was done, or is
// over.
func (rv *revision) act(row *store.Run, d *history.Data) desk.Act {
	d.Message, d.Reset, d.Force, d.Lifted, d.Anew = row.Inbox, rv.Reset, rv.Force, rv.Lifted, rv.Anew
	a := desk.Act{From: []store.Status{row.Status}, Row: claimable(), Cut: rv.Cut, Send: rv.send, Undone: rv.Undone}
	a.Event.Type = store.WorkflowInterrupted
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
	}
	a.Event.Data = d.Encode()
	return a
}

// claimable is the row of a run that anybody who serves it may go on with.
func claimable() *store.RowPatch {
	interrupted, none, no := store.Interrupted, "", false
	return &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none, Recoverable: &no, EndedAt: new(store.Time), WakeAt: new(store.Time), Strikes: new(int32)}
}
