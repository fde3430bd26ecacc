package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

// RepairOptions change how Repair works.
type RepairOptions struct {
	// DryRun: say what would be done, and do nothing.
	DryRun bool
	// Force: repair even if effects that were announced before they began (Once,
	// LongOperation) would begin again, and even if there is no stable event, so that
	// the run starts over with its input.
	Force bool
}

// Repaired is what Repair did, or with DryRun would do.
type Repaired struct {
	RunID  string
	DryRun bool
	// Before is what Verify says about the run before the repair.
	Before Verification
	// Branch that the run is on now, and Cutoff, the last event kept in its history, if
	// a bad tail was set aside; 0, 0: none was.
	Branch int32
	Cutoff int64
	// Again lists the keys whose outcomes, or whose beginning, come after the cutoff:
	// those bodies run again, with the same idempotency keys.
	Again []string
	// Did describes what was done, one line each. Empty: there was nothing to do.
	Did []string
}

// UnrepairableError says why a damaged run cannot be repaired. Nothing was
// changed.
type UnrepairableError struct {
	RunID  string
	Reason string
	// Forceable: with RepairOptions.Force it can be repaired.
	Forceable bool
}

func (e *UnrepairableError) Error() string {
	s := fmt.Sprintf("run %s cannot be repaired: %s", e.RunID, e.Reason)
	if e.Forceable {
		s += "; RepairOptions.Force does it nevertheless"
	}
	return s
}

// ErrUnrepairable: Repair cannot help; *UnrepairableError says why.
var ErrUnrepairable = errors.New("durable: run cannot be repaired")

// Is matches ErrUnrepairable.
func (e *UnrepairableError) Is(target error) bool { return target == ErrUnrepairable }

// Repair mends a damaged run as far as its events allow. It sets aside a part of the
// history that cannot be trusted: a new branch begins after the last stable event
// before the damage (the outcome of a step, child or item, or an answer), the run
// becomes interrupted, and an executor that serves it continues it from there; a run
// that had failed waits for Resume. A row that contradicts the events is rebuilt from
// them. Nothing is ever deleted: what was set aside stays readable (store.Cursor.All),
// and Verify reports it as left behind.
//
// It is one durable act: a crash leaves the run as it was or repaired, and a
// second call finds nothing to do. Of two concurrent calls one wins; the other gets
// store.ErrFenced, or nil if both did the same.
//
// Errors: durable.ErrNotFound; *store.OwnedError while a live executor has the run;
// *UnrepairableError for a run that has completed or was cancelled, whose very
// beginning is damaged, that is merely incompatible, or that needs Force;
// durable.ErrOccupied when a run that had failed cannot have its exclusive keys again.
// After an error nothing has changed.
func (op *Operator) Repair(ctx context.Context, id string, o RepairOptions) (Repaired, error) {
	h, err := op.store.Load(ctx, id, store.Cursor{All: true})
	a, err := op.auditOf(id, store.Loaded{History: h, Err: err}, true)
	if err != nil {
		return Repaired{}, fmt.Errorf("durable: repairing run %s: %w", id, storeError(err))
	}
	rep := Repaired{RunID: id, DryRun: o.DryRun, Before: verificationOf(&a.Verdict)}
	if !a.Verdict.Has(history.Corrupt) {
		if a.Verdict.Has(history.Incompatible) {
			return rep, &UnrepairableError{RunID: id, Reason: "it is not damaged: this program cannot read all of it. Use one that has the keys, codecs and versions it needs"}
		}
		return rep, nil
	}
	plan, err := op.planRepair(a, o.Force)
	if err != nil {
		return rep, err
	}
	if plan.cut != nil {
		if err := op.endStrays(ctx, a, plan); err != nil {
			return rep, fmt.Errorf("durable: repairing run %s: reading its children: %w", id, storeError(err))
		}
		rep.Branch, rep.Cutoff = plan.cut.plan.Branch, plan.cut.plan.From
	}
	rep.Again, rep.Did = plan.again, plan.did
	if o.DryRun {
		return rep, nil
	}
	if err := op.mend(ctx, a, plan); err != nil {
		if held := heldByOther(&a.History.Run, "was not repaired; repair it again once that run has ended", err); held != nil {
			return rep, held
		}
		return rep, fmt.Errorf("durable: repairing run %s: %w", id, storeError(err))
	}
	op.desk.LogRun(slog.LevelWarn, &a.History.Run, "durable: run repaired", slog.Any("did", plan.did), slog.Any("again", plan.again))
	op.desk.Nudge()
	return rep, nil
}

// repairPlan is what a repair does.
type repairPlan struct {
	row   *store.RowPatch
	cut   *revision // the effect of the cut; nil: there is none
	quiet bool      // only the row: an event after the end of a run would hide its outcome
	again []string
	did   []string
}

// planRepair decides how to repair a damaged run, from the audit alone.
//
// For example, of a running run whose event 4 is damaged and whose last stable
// event before that is 3, the plan is a branch after 3 and a row that says
// interrupted.
func (op *Operator) planRepair(a *history.Audit, force bool) (*repairPlan, error) {
	row := &a.History.Run
	refuse := func(forceable bool, format string, args ...any) (*repairPlan, error) {
		return nil, &UnrepairableError{RunID: a.Verdict.RunID, Reason: fmt.Sprintf(format, args...), Forceable: forceable}
	}
	p := &repairPlan{row: &store.RowPatch{}}
	p.rebuild(a)
	needsCut := a.Bad != 0
	switch {
	case a.Unreadable:
		return refuse(false, "the store cannot read it; check the store itself, or restore a backup")
	case row.Code == durable.CodeImporting:
		return refuse(false, "its import did not finish: import it again")
	case row.Last == nil:
		return refuse(false, "%s", durable.ErrNoHistory)
	case !row.Status.Valid():
		return refuse(false, "its status is %q, which is none, and no store changes that", row.Status)
	case row.Status == store.Completed && (needsCut || !a.Agrees(row)):
		return refuse(false, "it has completed, and what has completed does not go on; export what is readable, or restore a backup")
	case row.Status == store.Cancelled && needsCut:
		return refuse(false, "it was cancelled, and does not go on")
	}
	if !needsCut && !a.Agrees(row) {
		// The row lost what the log says, or says something that never happened.
		if a.Life.Ended() {
			needsCut = true // the executor that continues it records its end again
		}
		p.interrupt(row)
		p.did = append(p.did, fmt.Sprintf("status: %s, and the log says %s; it is interrupted now and goes on from its events", row.Status, a.Life.Last))
	}
	if needsCut {
		if err := p.branchOff(op, a, force); err != nil {
			return nil, err
		}
	}
	if hand := byHand(a.Faults); len(p.did) == 0 && hand != "" {
		return refuse(false, "%s", hand)
	}
	if len(p.did) == 0 {
		return refuse(false, "nothing that is damaged can be rebuilt from its events; see the findings of Verify")
	}
	if p.row.Status == nil && row.Status == store.Interrupted && row.Code == durable.CodeDamaged && byHand(a.Faults) == "" {
		p.interrupt(row) // a resume found it, too, and now nothing stops the resume
	}
	p.quiet = row.Status.Terminal() && p.row.Status == nil
	if p.row.Status == nil && (row.Status == store.Running || row.Status == store.Resuming) {
		p.interrupt(row) // the act takes the run from its owner, so it must become claimable
	}
	return p, nil
}

// rebuild makes the row say what the events say, except for the status.
func (p *repairPlan) rebuild(a *history.Audit) {
	for i := range a.Faults {
		if f := &a.Faults[i]; f.Mend != nil {
			p.did = append(p.did, f.Mend(p.row))
		}
	}
}

// byHand says what no row patch can fix; empty if there is no such fault.
func byHand(faults []history.RowFault) string {
	var texts []string
	for i := range faults {
		if faults[i].Mend == nil && faults[i].Field != "Status" {
			texts = append(texts, faults[i].Text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return strings.Join(texts, "; ") + ". No store changes that: set it back in the database, or restore a backup (" + host.Page("care.md") + ")"
}

// interrupt makes the row say that no executor has the run. A run that had failed waits
// for a person.
func (p *repairPlan) interrupt(row *store.Run) {
	interrupted, code, reason, no, zero := store.Interrupted, "", "", false, store.Time(0)
	if row.Status == store.Failed || row.Status == store.Cancelled {
		code, reason = durable.CodeRepaired, history.RepairedReason(row.Status)
	}
	p.row.Status, p.row.Code, p.row.Reason = &interrupted, &code, &reason
	p.row.Recoverable, p.row.EndedAt, p.row.WakeAt, p.row.Strikes = &no, &zero, &zero, new(int32)
}

// branchOff sets aside what comes after the last sound stable event. Its effect is
// computed as for any other cut.
func (p *repairPlan) branchOff(op *Operator, a *history.Audit, force bool) error {
	row := &a.History.Run
	at := a.Cut
	if at == 0 {
		if a.Start == 0 {
			return &UnrepairableError{RunID: a.Verdict.RunID, Reason: "no stable event found, and its beginning is damaged; restore a backup, or start it anew under another id"}
		}
		if !force {
			return &UnrepairableError{RunID: a.Verdict.RunID, Reason: "no stable event found; it would begin anew with its input", Forceable: true}
		}
		at = a.Start
	}
	v := viewOf(a, op)
	var err error
	if v.Born, err = history.Of[history.Beginning](&a.Past.Created); err != nil {
		return &UnrepairableError{RunID: a.Verdict.RunID, Reason: fmt.Sprintf("the data of its first event is not readable (%v); restore a backup", err)}
	}
	rv, _, err := v.rework(history.Cutting{At: v.Event(at), Force: force, Damage: a})
	var crossing *CrossingError
	var future *history.FutureEventError
	var undone *UndoneError
	switch {
	case errors.As(err, &undone):
		return &UnrepairableError{RunID: a.Verdict.RunID, Forceable: true, Reason: fmt.Sprintf("its history is sound up to event %d, and %s, with Fork", at, undone.text)}
	case errors.As(err, &crossing):
		return &UnrepairableError{
			RunID: a.Verdict.RunID, Forceable: true,
			Reason: fmt.Sprintf("%s had begun behind event %d, where the history would be cut off: if it must not happen twice (Once), find out whether it has happened", strings.Join(crossing.Keys, ", "), at),
		}
	case errors.As(err, &future):
		return &UnrepairableError{RunID: a.Verdict.RunID, Reason: err.Error()}
	case err != nil:
		return err
	}
	for _, key := range a.Lost {
		if !slices.Contains(p.again, key) {
			p.again = append(p.again, key)
		}
	}
	reason := fmt.Sprintf("repair: the history is sound up to event %d and damaged from event %d", at, a.Bad)
	if a.Bad == 0 {
		reason = fmt.Sprintf("repair: the row did not say how the run ended; it goes on behind event %d", at)
	}
	p.cut, rv.Cut.Reason = rv, reason
	if p.row.Status == nil {
		p.interrupt(row)
	}
	p.row.Branch = nil // the new branch
	p.row.Seen = new(int64)
	if p.row.Attributes = rv.Attributes; rv.Attributes != nil {
		p.did = append(p.did, fmt.Sprintf("attributes: %v, as they were then", rv.Attributes))
	}
	p.did = append(p.did, fmt.Sprintf("events %d to %d: set aside, on branch %d; branch %d goes on behind event %d",
		at+1, row.Last.Seq, a.Branch, rv.plan.Branch, at))
	return nil
}

// viewOf returns the view of a damaged run for a cut.
func viewOf(a *history.Audit, op *Operator) *view {
	row := a.History.Run
	row.Branch, row.Generation = a.Branch, a.Branches[a.Branch].Generation
	return &view{op: op, View: &history.View{Row: &row, Branches: a.History.Branches, Events: a.Events, Past: a.Past}}
}

// endStrays makes the cut also end the children whose start is what is damaged: no
// event names them, and the new branch starts others instead. A child whose id the
// workflow chose goes on, as after any cut.
func (op *Operator) endStrays(ctx context.Context, a *history.Audit, p *repairPlan) error {
	if a.Bad == 0 {
		return nil
	}
	named := map[string]bool{}
	for i := range p.cut.send {
		named[p.cut.send[i].To] = true
	}
	live := store.Filter{Parents: []string{a.Verdict.RunID}, Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted}}
	var strays []string
	for row, err := range op.desk.Runs(ctx, live) {
		if err != nil {
			return err
		}
		key, _, _ := strings.Cut(row.ParentKey, "~")
		if history.DerivedFor(row.ID, a.Verdict.RunID, key) && !a.Born[row.ID] && !named[row.ID] {
			strays = append(strays, row.ID)
		}
	}
	if len(strays) > 0 {
		p.did = append(p.did, "cancelled, since what is damaged says how it was started: "+strings.Join(strays, ", "))
		p.cut.send = append(p.cut.send, history.EndLeft(strays, a.Verdict.RunID, op.desk.Now())...)
	}
	return nil
}

// mend carries a plan out, in one change.
func (op *Operator) mend(ctx context.Context, a *history.Audit, p *repairPlan) error {
	row := a.History.Run
	if p.quiet {
		return op.desk.Commit(ctx, store.Change{RunID: row.ID, Expect: store.Expect{Epoch: row.Epoch, Statuses: []store.Status{row.Status}}, Row: p.row})
	}
	hold, err := op.desk.KeysToTake(ctx, &row)
	if err != nil {
		return err
	}
	row.Branch, row.Generation = a.Branch, a.Branches[a.Branch].Generation
	d := &history.Recovery{Code: durable.CodeRepaired, Reason: p.reason(), Message: row.Inbox, Executor: op.desk.ID(), Reopened: history.Reopened{Lifted: a.LiftedBy()}}
	repair := commit.Act{From: []store.Status{row.Status}, Row: p.row, Hold: hold}
	if rv := p.cut; rv != nil {
		d.Reset, d.Force, d.Anew = rv.Reset, rv.Force, rv.Anew
		repair.Cut, repair.Send = rv.Cut, rv.send
	}
	repair.Event = store.Event{Type: store.WorkflowRecovered, Data: history.Encode(d)}
	_, err = op.desk.Act(ctx, &row, a.History.Branches, repair)
	return err
}

func (p *repairPlan) reason() string {
	if p.cut != nil {
		return p.cut.Cut.Reason
	}
	return "repair: the row was rebuilt from the events"
}
