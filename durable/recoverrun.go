package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// The codes of the catalogue that are repaired, in Recovery.Code and in the data
// of workflow_recovered.
const (
	CodeA1 = history.CodeA1 // waiting, and nothing is waited for
	CodeA2 = history.CodeA2 // running, and a wait is pending
	CodeA3 = history.CodeA3 // running, and every declared step is completed
	CodeD2 = history.CodeD2 // a jump was requested and its branch is not the current one
	CodeE2 = history.CodeE2 // pinned to a version that is not there
)

// Recovery is what RecoverRun found and did.
type Recovery struct {
	RunID string
	// Needed: the row and the events of the run contradicted each other. If it
	// is false, nothing was written and the rest is zero.
	Needed bool
	// Code of the catalogue (CodeA1, ...) and its text. Of several things that
	// were wrong, the first.
	Code   string
	Reason string
	// NewBranch is the branch the run is on since, and Cutoff the number of the
	// last event it keeps of the one before. Under CodeE2 nothing is left
	// behind: NewBranch is the branch it was on, and Cutoff 0.
	NewBranch int32
	Cutoff    int64
}

// UnrecoverableError says that a run is inconsistent and that nothing was done
// about it: what would have to be done, nobody but a person can decide.
type UnrecoverableError struct {
	RunID   string
	Code    string // of the catalogue
	Reason  string // its text
	Message string // why it was not repaired
}

// Error returns Message.
func (e *UnrecoverableError) Error() string { return e.Message }

// Is matches ErrUnrecoverable.
func (e *UnrecoverableError) Is(target error) bool { return target == ErrUnrecoverable }

// maxRepairs bounds how often RecoverRun looks again. Each repair removes what it
// was made for, so there are five at most, and some tries more for those who act
// on the run in the same moment.
const maxRepairs = 16

// RecoverRun compares a run with its events and, if they contradict each other,
// repairs it: a new branch is begun behind the last event at which it can be
// taken up, the event workflow_recovered says why and where, and the run becomes
// claimable; under FailOnBoot and LeaveOnBoot it is parked with CodeRecovered,
// for a person to resume. Nothing is deleted: what the cut leaves behind stays
// on the branch before (operate.Operator.Branches, operate.Operator.LeftBehind). docs/recovery.md has
// the catalogue of what is repaired, and how.
//
// A consistent run is not written to; neither is an ended one, or one that is
// pending. The repair is durable when RecoverRun returns, and one change: a
// second call finds nothing to do, and of two at once one makes the branch and
// the other finds it. Resume and Recover look by themselves.
//
// Errors: ErrNotFound; *UnrecoverableError, with Needed, Code and Reason set and
// nothing done; one that matches store.ErrOwned when a live executor has the run
// and it seems inconsistent; *DamagedError when its history cannot be believed;
// *UndecodableError when a newer version of this library has recorded it.
func (e *Engine) RecoverRun(ctx context.Context, id string) (Recovery, error) {
	rec := Recovery{RunID: id}
	for range maxRepairs {
		t, err := e.recovery.inspect(ctx, id)
		if err != nil {
			return rec, fmt.Errorf("durable: recovering run %s: %w", id, storeError(err))
		}
		if t.row.Code == CodeImporting {
			return rec, nil // half of it is there: Import finishes it
		}
		f := history.Reconcile(t.row, t.survey, t.code)
		if f.Code == "" {
			return rec, nil
		}
		if e.options.RerunLastStep {
			f = t.survey.Rerun(f)
		}
		if !rec.Needed {
			rec.Needed, rec.Code, rec.Reason = true, f.Code, f.Reason()
		}
		if f.Refused != "" {
			return rec, &UnrecoverableError{RunID: id, Code: f.Code, Reason: f.Reason(), Message: f.Refused}
		}
		switch branch, err := e.recovery.repair(ctx, t, &f); {
		case err == nil:
			rec.NewBranch, rec.Cutoff = branch, f.After
		case errors.Is(err, store.ErrOwned):
			return rec, fmt.Errorf("durable: run %s was not repaired (%s): it is executed by a live executor: %w", id, f.Reason(), err)
		case commit.Overtaken(err):
			if rec.NewBranch == 0 && rec.Cutoff == 0 {
				rec = Recovery{RunID: id} // what we saw may be gone
			}
		default:
			return rec, fmt.Errorf("durable: recovering run %s: %w", id, storeError(err))
		}
	}
	return rec, fmt.Errorf("durable: recovering run %s: others act on it all the time; call RecoverRun again: %w", id, store.ErrFenced)
}

// torn is a run as reconcile looks at it.
type torn struct {
	row      *store.Run
	branches []store.Branch
	survey   *history.Survey
	code     history.CodeAtHand
}

// inspect reads what reconcile needs. It writes nothing.
func (rc *recovery) inspect(ctx context.Context, id string) (*torn, error) {
	h, err := rc.eng.loadGeneration(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &torn{survey: history.NewSurvey(id)}
	if mayBeTorn(&h.Run) {
		if err := unread(id, t.survey.Read(h)); err != nil {
			return nil, err
		}
	}
	t.row, t.branches = &h.Run, h.Branches
	return t, rc.consult(ctx, t)
}

// mayBeTorn reports whether a run in this status is looked at.
func mayBeTorn(row *store.Run) bool {
	return row.Status != store.Completed && row.Status != store.Cancelled && row.Status != store.Pending
}

// inspectView is inspect for a run whose history was read.
func (rc *recovery) inspectView(ctx context.Context, v *history.View) (*torn, error) {
	t := &torn{row: v.Row, branches: v.Branches, survey: history.NewSurvey(v.Row.ID)}
	if mayBeTorn(v.Row) {
		for i := range v.Events {
			if err := t.survey.Add(&v.Events[i]); err != nil {
				return nil, &DamagedError{RunID: v.Row.ID, Seq: v.Events[i].Seq, Err: err}
			}
		}
	}
	return t, rc.consult(ctx, t)
}

// consult adds what the events do not say: who has the code of the run, and
// whether what it waits for is there.
func (rc *recovery) consult(ctx context.Context, t *torn) (err error) {
	if !mayBeTorn(t.row) {
		return nil
	}
	if t.code, err = rc.codeAtHand(ctx, t.row); err != nil {
		return err
	}
	if w := t.survey.WaitsAlone(); w != nil {
		// Read last: an answer that comes later finds a run it is not for.
		mail, err := rc.eng.store.Load(ctx, t.row.ID, store.Cursor{NoEvents: true})
		if err != nil {
			return err
		}
		for i := range mail.Inbox {
			t.survey.Answered = t.survey.Answered || t.survey.IsAnswer(&mail.Inbox[i], w, t.row.Branch)
		}
	}
	return nil
}

// codeAtHand says who could execute the run.
func (rc *recovery) codeAtHand(ctx context.Context, row *store.Run) (history.CodeAtHand, error) {
	c := history.CodeAtHand{Workflow: rc.eng.program.defs.byName[row.Workflow] != nil}
	c.Pinned = rc.eng.program.defs.find(row.Workflow, row.Version) != nil
	c.Initial = rc.eng.program.defs.find(row.Workflow, row.InitialVersion) != nil
	if !c.Workflow || c.Pinned {
		return c, nil
	}
	executors, err := rc.eng.store.Executors(ctx)
	if err != nil {
		return c, err
	}
	for _, x := range executors {
		c.Pinned = c.Pinned || x.Live && store.Serves(x.Serves, row.Workflow, row.Version)
		c.Initial = c.Initial || x.Live && store.Serves(x.Serves, row.Workflow, row.InitialVersion)
	}
	return c, nil
}

// repair carries out what reconcile found, in one change: a crash leaves the run
// as it was, or repaired. It returns the branch the run is on then.
func (rc *recovery) repair(ctx context.Context, t *torn, f *history.Finding) (int32, error) {
	row := t.row
	if rc.eng.roster.active(row.ID) != nil {
		return 0, &store.OwnedError{RunID: row.ID, Owner: rc.eng.id}
	}
	def := rc.eng.program.defs.find(row.Workflow, row.Version)
	to := row.Branch
	data := &history.Recovery{Code: f.Code, Reason: f.Reason(), Message: t.survey.Paused, Executor: rc.eng.id, Version: f.Version, PreviousBranch: &row.Branch, NewBranch: &to}
	a := commit.Act{From: []store.Status{row.Status}, Row: &store.RowPatch{}}
	if f.Version != "" {
		a.Row.Version = &f.Version
		def = rc.eng.program.defs.find(row.Workflow, f.Version)
	}
	if f.Cut {
		rv, err := rc.recut(ctx, t, f)
		if err != nil {
			return 0, err
		}
		// The number that a lost jump was promised stays its own: who asked for it may
		// have kept it.
		rv.Cut.Least = f.Promised + 1
		to = max(rv.Branch, rv.Cut.Least)
		data.CutoffEvent, data.Reset, data.Lifted, data.Anew = f.After, rv.Reset, rv.Lifted, rv.Anew
		rv.Cut.Reason = f.Reason()
		// Nothing counts as seen: what the cut gives back is delivered again.
		a.Cut, a.Send, a.Row.Seen, a.Row.Attributes = rv.Cut, history.EndLeft(rv.Children, row.ID, rc.eng.now()), new(int64), rv.Attributes
	}
	rc.release(a.Row, row, f, rc.bootPolicy(def))
	a.Event = store.Event{Type: store.WorkflowRecovered, Data: history.Encode(data)}
	branch, err := rc.eng.act(ctx, row, t.branches, a)
	if err != nil {
		return 0, err
	}
	if f.Cut {
		rc.eng.log.AboutRun(slog.LevelInfo, row, fmt.Sprintf("Recovered workflow %s: %s. Created branch %d from event %d", row.ID, f.Reason(), branch, f.After))
	} else {
		rc.eng.log.AboutRun(slog.LevelInfo, row, fmt.Sprintf("Recovered workflow %s: %s. Pinned to version %s on branch %d", row.ID, f.Reason(), f.Version, branch))
	}
	rc.eng.watchers.notify([]string{row.ID})
	nudge(rc.eng.claims.wake)
	return branch, nil
}

// recut works out the cut that a finding asks for, as for one that a person asks
// for. What must not run again was looked at by reconcile.
func (rc *recovery) recut(ctx context.Context, t *torn, f *history.Finding) (*history.Revision, error) {
	v, unreadable, err := rc.eng.view(ctx, t.row.ID)
	switch {
	case err != nil:
		return nil, err
	case unreadable != nil:
		return nil, unreadable
	case v.Row.Epoch != t.row.Epoch || v.Row.Last == nil || t.row.Last == nil || v.Row.Last.Seq != t.row.Last.Seq:
		return nil, fmt.Errorf("run %s was acted on meanwhile: %w", t.row.ID, store.ErrFenced)
	}
	rv, _, err := v.Revise(history.Cutting{At: &store.Event{Seq: f.After, Key: f.Key}, Force: true})
	return rv, damaged(err)
}

// release makes a repaired run claimable, or parks it where its policy leaves the
// rest to a person. One that has failed, is parked, or goes on waiting stays so.
func (rc *recovery) release(p *store.RowPatch, row *store.Run, f *history.Finding, policy BootPolicy) {
	busy := row.Status == store.Running || row.Status == store.Resuming
	if !busy && (row.Status != store.Waiting || !f.Cut) {
		return
	}
	interrupted, code, text := store.Interrupted, "", ""
	if policy != ResumeOnBoot && !row.Paused {
		code, text = CodeRecovered, f.Reason()
	}
	p.Status, p.Code, p.Reason, p.WakeAt = &interrupted, &code, &text, new(store.Time)
}

// tornApart is the check that comes before every resume, of a run as v has read it:
// nil if its row and its events agree. One that a live executor has, or whose history
// cannot be read, is left to what comes next, which says so in its own words. It
// changes nothing; what cannot be repaired is an *UnrecoverableError.
func (rc *recovery) tornApart(ctx context.Context, v *history.View) (*history.Finding, error) {
	if v.Row.Code == CodeImporting {
		return nil, nil
	}
	t, err := rc.inspectView(ctx, v)
	if unjudged(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("durable: recovering run %s: %w", v.Row.ID, storeError(err))
	}
	f := history.Reconcile(t.row, t.survey, t.code)
	if f.Code == "" {
		return nil, nil
	}
	if live, err := rc.eng.claims.hasLiveOwner(ctx, v.Row); err != nil || live {
		return nil, err
	}
	if f.Refused != "" {
		return nil, &UnrecoverableError{RunID: v.Row.ID, Code: f.Code, Reason: f.Reason(), Message: f.Refused}
	}
	if rc.eng.options.RerunLastStep {
		f = t.survey.Rerun(f)
	}
	return &f, nil
}

// repairFirst carries out what tornApart has found, before a resume. It reports
// whether the run was repaired, and has to be read again.
func (rc *recovery) repairFirst(ctx context.Context, row *store.Run) (repaired bool, err error) {
	rec, err := rc.eng.RecoverRun(ctx, row.ID)
	switch {
	case unjudged(err):
		return false, nil
	case err != nil:
		return false, err
	}
	if rec.Needed {
		rc.eng.log.AboutRun(slog.LevelInfo, row, "Applied recovery: "+rec.Reason)
	}
	return true, nil
}

// unjudged reports whether err says that a run could not be judged.
func unjudged(err error) bool {
	future := (*history.FutureEventError)(nil)
	return errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrCorrupt) || errors.As(err, &future)
}
