package claims

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Unrecoverable is the error that says that a run is inconsistent and that nothing was
// done about it, because only a person can decide what to do.
type Unrecoverable struct {
	RunID   string
	Code    string
	Reason  string
	Message string
}

// Error returns Message.
func (u *Unrecoverable) Error() string { return u.Message }

// repairs repairs runs whose row contradicts their events.
type repairs struct {
	o      *Options
	claims *Claims
}

// maxRepairs limits how often Repair looks again. Each repair removes its cause, so there
// are at most five; the other tries are for changes that others make to the run at the
// same moment.
const maxRepairs = 16

// Repair compares a run with its events and, if they contradict each other, repairs it. The
// error may be an *Unrecoverable, with what was found and nothing done.
func (rp *repairs) Repair(ctx context.Context, id string) (Repaired, error) {
	rec := Repaired{RunID: id}
	for range maxRepairs {
		t, err := rp.inspect(ctx, id)
		if err != nil {
			return rec, fmt.Errorf("durable: recovering run %s: %w", id, commit.StoreError(err))
		}
		if t.row.Code == history.CodeImporting {
			return rec, nil // it is half imported: Import finishes it
		}
		f := history.Reconcile(t.row, t.survey, t.code)
		if f.Code == "" {
			return rec, nil
		}
		if rp.o.RerunLastStep {
			f = t.survey.Rerun(f)
		}
		if !rec.Needed {
			rec.Needed, rec.Code, rec.Reason = true, f.Code, f.Reason()
		}
		if f.Refused != "" {
			return rec, &Unrecoverable{RunID: id, Code: f.Code, Reason: f.Reason(), Message: f.Refused}
		}
		switch branch, err := rp.carryOut(ctx, t, &f); {
		case err == nil:
			rec.NewBranch, rec.Cutoff = branch, f.After
		case errors.Is(err, store.ErrOwned):
			return rec, fmt.Errorf("durable: run %s was not repaired (%s): it is executed by a live executor: %w", id, f.Reason(), err)
		case commit.Overtaken(err):
			if rec.NewBranch == 0 && rec.Cutoff == 0 {
				rec = Repaired{RunID: id} // what was seen may be gone
			}
		default:
			return rec, fmt.Errorf("durable: recovering run %s: %w", id, commit.StoreError(err))
		}
	}
	return rec, fmt.Errorf("durable: recovering run %s: others act on it all the time; call RecoverRun again: %w", id, store.ErrFenced)
}

// torn is a run as history.Reconcile looks at it.
type torn struct {
	row      *store.Run
	branches []store.Branch
	survey   *history.Survey
	code     history.CodeAtHand
}

// inspect reads what history.Reconcile needs. It writes nothing.
func (rp *repairs) inspect(ctx context.Context, id string) (*torn, error) {
	h, err := rp.o.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	t := &torn{survey: history.NewSurvey(id)}
	if mayBeTorn(&h.Run) {
		if err := rp.o.Unreadable(id, t.survey.Read(h)); err != nil {
			return nil, err
		}
	}
	t.row, t.branches = &h.Run, h.Branches
	return t, rp.consult(ctx, t)
}

// mayBeTorn reports whether a run in this status must be checked.
func mayBeTorn(row *store.Run) bool {
	return row.Status != store.Completed && row.Status != store.Cancelled && row.Status != store.Pending
}

// inspectView is inspect for a run whose history was read.
func (rp *repairs) inspectView(ctx context.Context, v *history.View) (*torn, error) {
	t := &torn{row: v.Row, branches: v.Branches, survey: history.NewSurvey(v.Row.ID)}
	if mayBeTorn(v.Row) {
		for i := range v.Events {
			if err := t.survey.Add(&v.Events[i]); err != nil {
				return nil, rp.o.Unreadable(v.Row.ID, &history.Damage{RunID: v.Row.ID, Seq: v.Events[i].Seq, Err: err})
			}
		}
	}
	return t, rp.consult(ctx, t)
}

// consult adds what the events do not say: where the code of the run is, and whether the
// message that it waits for has come.
func (rp *repairs) consult(ctx context.Context, t *torn) (err error) {
	if !mayBeTorn(t.row) {
		return nil
	}
	if t.code, err = rp.codeAtHand(ctx, t.row); err != nil {
		return err
	}
	if w := t.survey.WaitsAlone(); w != nil {
		// Read last: an answer that comes later finds a run that is no longer as it was.
		mail, err := rp.o.Store.Load(ctx, t.row.ID, store.Cursor{NoEvents: true})
		if err != nil {
			return err
		}
		for i := range mail.Inbox {
			t.survey.Answered = t.survey.Answered || t.survey.IsAnswer(&mail.Inbox[i], w, t.row.Branch)
		}
	}
	return nil
}

// codeAtHand says where the code of the run is.
func (rp *repairs) codeAtHand(ctx context.Context, row *store.Run) (history.CodeAtHand, error) {
	program := rp.o.Program
	c := history.CodeAtHand{
		Workflow: program.HasWorkflow(row.Workflow),
		Pinned:   program.Has(row.Workflow, row.Version), Initial: program.Has(row.Workflow, row.InitialVersion),
	}
	if !c.Workflow || c.Pinned {
		return c, nil
	}
	executors, err := rp.o.Store.Executors(ctx)
	if err != nil {
		return c, err
	}
	for _, x := range executors {
		c.Pinned = c.Pinned || x.Live && store.Serves(x.Serves, row.Workflow, row.Version)
		c.Initial = c.Initial || x.Live && store.Serves(x.Serves, row.Workflow, row.InitialVersion)
	}
	return c, nil
}

// carryOut does what history.Reconcile found, in one change: a crash leaves the run as it
// was, or repaired. It returns the branch that the run is on afterwards.
func (rp *repairs) carryOut(ctx context.Context, t *torn, f *history.Finding) (int32, error) {
	row := t.row
	if rp.o.Runs.Executing(row.ID) {
		return 0, &store.OwnedError{RunID: row.ID, Owner: rp.o.Executor}
	}
	version, to := row.Version, row.Branch
	data := &history.Recovery{Code: f.Code, Reason: f.Reason(), Message: t.survey.Paused, Executor: rp.o.Executor, Version: f.Version, PreviousBranch: &row.Branch, NewBranch: &to}
	a := commit.Act{From: []store.Status{row.Status}, Row: &store.RowPatch{}}
	if f.Version != "" {
		a.Row.Version = &f.Version
		version = f.Version
	}
	if f.Cut {
		rv, err := rp.recut(ctx, t, f)
		if err != nil {
			return 0, err
		}
		// The number that was promised to a lost jump is not used for another branch: the
		// caller that asked for the jump may have kept it.
		rv.Cut.Least = f.Promised + 1
		to = max(rv.Branch, rv.Cut.Least)
		data.CutoffEvent, data.Reset, data.Lifted, data.Anew = f.After, rv.Reset, rv.Lifted, rv.Anew
		rv.Cut.Reason = f.Reason()
		// No message counts as seen: those that the cut gives back are delivered again.
		a.Cut, a.Send, a.Row.Seen, a.Row.Attributes = rv.Cut, history.EndLeft(rv.Children, row.ID, rp.o.Now()), new(int64), rv.Attributes
	}
	rp.release(a.Row, row, f, rp.o.Program.OnBoot(row.Workflow, version))
	a.Event = store.Event{Type: store.WorkflowRecovered, Data: history.Encode(data)}
	branch, err := rp.o.Act(ctx, row, t.branches, a)
	if err != nil {
		return 0, err
	}
	if f.Cut {
		rp.o.Log.AboutRun(slog.LevelInfo, row, fmt.Sprintf("Recovered workflow %s: %s. Created branch %d from event %d", row.ID, f.Reason(), branch, f.After))
	} else {
		rp.o.Log.AboutRun(slog.LevelInfo, row, fmt.Sprintf("Recovered workflow %s: %s. Pinned to version %s on branch %d", row.ID, f.Reason(), f.Version, branch))
	}
	rp.o.Runs.Changed(row.ID)
	rp.claims.Wake()
	return branch, nil
}

// recut works out the cut that a finding asks for, as for one that a person asks
// for. history.Reconcile has already considered what must not run again.
func (rp *repairs) recut(ctx context.Context, t *torn, f *history.Finding) (*history.Revision, error) {
	v, unreadable, err := rp.o.View(ctx, t.row.ID)
	switch {
	case err != nil:
		return nil, err
	case unreadable != nil:
		return nil, unreadable
	case v.Row.Epoch != t.row.Epoch || v.Row.Last == nil || t.row.Last == nil || v.Row.Last.Seq != t.row.Last.Seq:
		return nil, fmt.Errorf("run %s was acted on meanwhile: %w", t.row.ID, store.ErrFenced)
	}
	rv, _, err := v.Revise(history.Cutting{At: &store.Event{Seq: f.After, Key: f.Key}, Force: true})
	return rv, rp.o.Unreadable(t.row.ID, err)
}

// release makes a repaired run claimable, or parks it if its policy leaves the rest to a
// person. A run that has failed, is parked, or goes on waiting stays so.
func (rp *repairs) release(p *store.RowPatch, row *store.Run, f *history.Finding, policy Policy) {
	busy := row.Status == store.Running || row.Status == store.Resuming
	if !busy && (row.Status != store.Waiting || !f.Cut) {
		return
	}
	interrupted, code, text := store.Interrupted, "", ""
	if policyFor(row, policy) != Resume && !row.Paused {
		code, text = history.CodeRecovered, f.Reason()
	}
	p.Status, p.Code, p.Reason, p.WakeAt = &interrupted, &code, &text, new(store.Time)
}

// Torn is the check before every resume, of a run as v has read it; nil if its row and
// its events agree. It passes a run that a live executor has, or whose history cannot be
// read: the resume refuses that in its own words. It changes nothing; if the run cannot
// be repaired, the error is an *Unrecoverable.
func (rp *repairs) Torn(ctx context.Context, v *history.View) (*history.Finding, error) {
	if v.Row.Code == history.CodeImporting {
		return nil, nil
	}
	t, err := rp.inspectView(ctx, v)
	if unjudged(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("durable: recovering run %s: %w", v.Row.ID, commit.StoreError(err))
	}
	f := history.Reconcile(t.row, t.survey, t.code)
	if f.Code == "" {
		return nil, nil
	}
	if live, err := rp.o.hasLiveOwner(ctx, v.Row); err != nil || live {
		return nil, err
	}
	if f.Refused != "" {
		return nil, &Unrecoverable{RunID: v.Row.ID, Code: f.Code, Reason: f.Reason(), Message: f.Refused}
	}
	if rp.o.RerunLastStep {
		f = t.survey.Rerun(f)
	}
	return &f, nil
}

// RepairFirst carries out what Torn has found, before a resume. repaired says that the
// run has to be read again; another process may have repaired it.
func (rp *repairs) RepairFirst(ctx context.Context, row *store.Run) (repaired bool, err error) {
	rec, err := rp.Repair(ctx, row.ID)
	switch {
	case unjudged(err):
		return false, nil
	case err != nil:
		return false, err
	}
	if rec.Needed {
		rp.o.Log.AboutRun(slog.LevelInfo, row, "Applied recovery: "+rec.Reason)
	}
	return true, nil
}

// unjudged reports whether err says that a run could not be judged.
func unjudged(err error) bool {
	future := (*history.FutureEventError)(nil)
	return errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrCorrupt) || errors.As(err, &future)
}
