package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// RepairOptions say how Repair goes about it.
type RepairOptions struct {
	// DryRun: say what would be done, and do nothing.
	DryRun bool
	// Force: also when effects that were announced before they began (Once,
	// LongOperation) would begin again, and when there is no stable event, so
	// that the run begins anew with its input.
	Force bool
}

// Repaired is what Repair did, or with DryRun would do.
type Repaired struct {
	RunID  string
	DryRun bool
	// Before is what Verify says of the run as it was.
	Before Verification
	// Branch that the run is on now, and Cutoff, the last event that is kept in
	// its history, if a bad tail was set aside; 0, 0: none was.
	Branch int32
	Cutoff int64
	// Again are the keys whose outcomes, or whose beginning, stand behind the
	// cutoff: those bodies run again, with the same idempotency keys.
	Again []string
	// Did says in words what was done, a line each. Empty: there was nothing to
	// do.
	Did []string
}

// UnrepairableError says why a damaged run cannot be repaired. Nothing was
// changed.
type UnrepairableError struct {
	RunID  string
	Reason string
	// Forceable: with RepairOptions.Force it can.
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

// Repair mends a damaged run as far as its events allow. A part of its history
// that cannot be believed is set aside: a new branch begins behind the last
// stable event before the damage (the outcome of a step, child or item, or an
// answer), the run becomes interrupted, and whoever serves it continues it from
// there; one that had failed waits for Resume. A row that does not say what the
// events say is rebuilt from them. Nothing is ever deleted: what was set aside
// stays readable (store.Cursor.All), and Verify tells of it as left behind.
//
// It is one durable act: a crash leaves the run as it was or repaired, and a
// second call finds nothing to do. Of two at once one wins; the other gets
// store.ErrFenced, or nil if both did the same.
//
// Errors: ErrNotFound; *store.OwnedError while a live executor has the run;
// *UnrepairableError for a run that has completed or was cancelled, of which not
// even the beginning is sound, that is merely incompatible, or where Force is
// needed; ErrOccupied when a run that had failed cannot have its exclusive keys
// again. After an error nothing has changed.
func (e *Engine) Repair(ctx context.Context, id string, o RepairOptions) (Repaired, error) {
	a, err := e.audit(ctx, id)
	if err != nil {
		return Repaired{}, fmt.Errorf("durable: repairing run %s: %w", id, storeError(err))
	}
	rep := Repaired{RunID: id, DryRun: o.DryRun, Before: a.v}
	if !a.v.Corrupt() {
		if a.v.Incompatible() {
			return rep, &UnrepairableError{RunID: id, Reason: "it is not damaged: this program cannot read all of it. Use one that has the keys, codecs and versions it needs"}
		}
		return rep, nil
	}
	plan, err := planRepair(a, o.Force)
	if err != nil {
		return rep, err
	}
	rep.Again, rep.Did = plan.again, plan.did
	if plan.cut != nil {
		rep.Branch, rep.Cutoff = nextBranch(a.h.Branches), plan.cut.after
	}
	if o.DryRun {
		return rep, nil
	}
	if err := e.mend(ctx, a, plan); err != nil {
		return rep, fmt.Errorf("durable: repairing run %s: %w", id, storeError(err))
	}
	e.logRun(slog.LevelWarn, &a.h.Run, "durable: run repaired", slog.Any("did", plan.did), slog.Any("again", plan.again))
	e.nudge(e.wake)
	return rep, nil
}

// repairPlan is what a repair does.
type repairPlan struct {
	row   *store.RowPatch
	cut   *branchCut
	reset []string // calls outside of a scope that stays cut, which had ended with it
	quiet bool     // the row alone: an event behind the end of a run would hide its outcome
	again []string
	did   []string
	stop  []string // children to cancel, whose parent forgets them
}

// planRepair decides about a damaged run. It is a pure function of the audit.
//
// For example, of a running run whose event 4 is damaged and whose last stable
// event before that is 3, the plan is a branch behind 3 and a row that says
// interrupted.
func planRepair(a *audit, force bool) (*repairPlan, error) {
	row := &a.h.Run
	refuse := func(forceable bool, format string, args ...any) (*repairPlan, error) {
		return nil, &UnrepairableError{RunID: a.v.RunID, Reason: fmt.Sprintf(format, args...), Forceable: forceable}
	}
	p := &repairPlan{row: &store.RowPatch{}}
	p.rebuild(a)
	needsCut := a.bad != 0
	switch {
	case a.unreadable:
		return refuse(false, "the store cannot read it; check the store itself, or restore a backup")
	case row.Code == CodeImporting:
		return refuse(false, "its import did not finish: import it again")
	case row.Last == nil:
		return refuse(false, "%s", ErrNoHistory)
	case !row.Status.Valid():
		return refuse(false, "its status is %q, which is none, and no store changes that", row.Status)
	case row.Status == store.Completed && (needsCut || !a.agrees(row)):
		return refuse(false, "it has completed, and what has completed does not go on; export what is readable, or restore a backup")
	case row.Status == store.Cancelled && needsCut:
		return refuse(false, "it was cancelled, and does not go on")
	}
	if !needsCut && !a.agrees(row) {
		// The row lost what the log says, or says what never happened.
		if a.life.ended() {
			needsCut = true // its end is recorded again, by whoever continues it
		}
		p.interrupt(row)
		p.did = append(p.did, fmt.Sprintf("status: %s, and the log says %s; it is interrupted now and goes on from its events", row.Status, a.life.last))
	}
	if needsCut {
		if err := p.branchOff(a, force); err != nil {
			return nil, err
		}
	}
	if hand := byHand(a.faults); len(p.did) == 0 && hand != "" {
		return refuse(false, "%s", hand)
	}
	if len(p.did) == 0 {
		return refuse(false, "nothing that is damaged can be rebuilt from its events; see the findings of Verify")
	}
	if p.row.Status == nil && row.Status == store.Interrupted && row.Code == CodeDamaged && byHand(a.faults) == "" {
		p.interrupt(row) // a resume has found it, too, and now nothing is in its way
	}
	p.quiet = row.Status.Terminal() && p.row.Status == nil
	if p.row.Status == nil && (row.Status == store.Running || row.Status == store.Resuming) {
		p.interrupt(row) // the act takes it from its owner, and only so it can be claimed
	}
	return p, nil
}

// rebuild has the row say what the events say, status apart.
func (p *repairPlan) rebuild(a *audit) {
	for i := range a.faults {
		if f := &a.faults[i]; f.mend != nil {
			p.did = append(p.did, f.mend(p.row))
		}
	}
}

// byHand says what no patch of a row puts right, empty if there is nothing such.
func byHand(faults []rowFault) string {
	var texts []string
	for i := range faults {
		if faults[i].mend == nil && faults[i].field != "Status" {
			texts = append(texts, faults[i].text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return strings.Join(texts, "; ") + ". No store changes that: set it back in the database, as docs/care.md says, or restore a backup"
}

// interrupt has the row say that nobody executes the run. One that had failed
// waits for a person.
func (p *repairPlan) interrupt(row *store.Run) {
	interrupted, code, reason, no, zero := store.Interrupted, "", "", false, store.Time(0)
	if row.Status == store.Failed || row.Status == store.Cancelled {
		code, reason = CodeRepaired, repairedReason(row.Status)
	}
	p.row.Status, p.row.Code, p.row.Reason = &interrupted, &code, &reason
	p.row.Recoverable, p.row.EndedAt, p.row.WakeAt, p.row.Strikes = &no, &zero, &zero, new(int32)
}

// repairedReason is the reason of a run that had ended like this and was repaired.
func repairedReason(s store.Status) string {
	return "it had " + endWord(s) + " and was repaired; Resume continues it"
}

func endWord(s store.Status) string {
	if s == store.Failed {
		return "failed"
	}
	return "been cancelled"
}

// branchOff sets aside what stands behind the last stable event that is sound.
func (p *repairPlan) branchOff(a *audit, force bool) error {
	row := &a.h.Run
	at, lost := a.cut, a.lost
	if at.seq == 0 {
		if a.start.seq == 0 {
			return &UnrepairableError{RunID: a.v.RunID, Reason: "no stable event found, and its beginning is damaged; restore a backup, or start it anew under another id"}
		}
		if !force {
			return &UnrepairableError{RunID: a.v.RunID, Reason: "no stable event found; it would begin anew with its input", Forceable: true}
		}
		at = a.start
	}
	for _, l := range lost {
		if l.began && !force {
			return &UnrepairableError{
				RunID: a.v.RunID, Forceable: true,
				Reason: fmt.Sprintf("%s had begun behind event %d, where the history would be cut off: if it must not happen twice (Once), find out whether it has happened", l.key, at.seq),
			}
		}
		if l.child != "" {
			p.stop = append(p.stop, l.child)
		}
		if !slices.Contains(p.again, l.key) {
			p.again = append(p.again, l.key)
		}
	}
	reason := fmt.Sprintf("repair: the history is sound up to event %d and damaged from event %d", at.seq, a.bad)
	if a.bad == 0 {
		reason = fmt.Sprintf("repair: the row did not say how the run ended; it goes on behind event %d", at.seq)
	}
	p.cut, p.reset = &branchCut{after: at.seq, reason: reason, steps: at.steps}, a.half(at.seq)
	if p.row.Status == nil {
		p.interrupt(row)
	}
	p.row.Branch = nil // the new one
	p.did = append(p.did, fmt.Sprintf("events %d to %d: set aside, on branch %d; branch %d goes on behind event %d",
		at.seq+1, row.Last.Seq, a.branch, nextBranch(a.h.Branches), at.seq))
	return nil
}

// equalAttributes is maps.Equal where none and an empty set are alike.
func equalAttributes(a, b map[string]string) bool {
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return len(a) == len(b)
}

// mend carries a plan out, in one change.
func (e *Engine) mend(ctx context.Context, a *audit, p *repairPlan) error {
	row := a.h.Run
	if p.quiet {
		return e.commitOne(ctx, store.Change{RunID: row.ID, Expect: store.Expect{Epoch: row.Epoch, Statuses: []store.Status{row.Status}}, Row: p.row})
	}
	hold, err := e.keysToTake(ctx, &row)
	if err != nil {
		return err
	}
	from := []store.Status{row.Status}
	row.Branch, row.Generation = a.branch, a.branches[a.branch].Generation
	_, err = e.operate(ctx, &row, a.h.Branches, act{
		from:  from,
		event: store.Event{Type: store.WorkflowRecovered, Data: (&eventData{Code: CodeRepaired, Reason: p.reason(), Message: row.Inbox, Executor: e.id, Reset: p.reset, Lifted: a.lifted()}).encode()},
		row:   p.row, cut: p.cut, hold: hold, send: e.endCut(p.stop, fmt.Sprintf("its parent %s was repaired and has forgotten it", row.ID)),
	})
	return err
}

func (p *repairPlan) reason() string {
	if p.cut != nil {
		return p.cut.reason
	}
	return "repair: the row was rebuilt from the events"
}
