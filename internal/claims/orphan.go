package claims

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// fate is what recovery does with an orphaned run.
type fate int

const (
	fateResume fate = iota
	fateTry         // resume, one at a time
	fateFail
	fateLeave
	fateQuarantine
	fateStuck
	fateUnpause // it was paused, and claimed for a cancel
	fateNone
)

// fateOf decides about an orphan, given its policy, whether its code is here, and
// its strikes. It is a pure function of its arguments.
func fateOf(row *store.Run, policy Policy, served bool, strikes, quarantineAfter int) fate {
	switch row.Status {
	case store.Running, store.Resuming:
	default:
		// Waiting and pending runs are claimed when they are due.
		return fateNone
	}
	switch {
	case !served:
		// Its policy is not known here either: whoever has its code decides.
		return fateStuck
	case row.Paused:
		return fateUnpause
	case policy == Leave:
		return fateLeave
	case policy == Fail:
		return fateFail
	case strikes >= quarantineAfter:
		return fateQuarantine
	case strikes >= quarantineAfter-1 && strikes > 1:
		return fateTry
	}
	return fateResume
}

// recoverOrphans deals with all runs whose owner is gone, slice by slice: what is
// decided of the first runs is under way before the last ones have been read.
func (rc *Recovery) recoverOrphans(ctx context.Context, rep *Report) error {
	n, pass := 0, orphanPass{rc: rc, judge: judge{o: rc.o}, rep: rep}
	f := store.Filter{Orphaned: true, OldestFirst: true, WithLast: true, Limit: recoverSlice}
	for row, err := range rc.o.List(ctx, f) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list interrupted runs: %w", commit.StoreError(err))
		}
		if err := pass.take(ctx, row); err != nil {
			return err
		}
		if n++; n%recoverSlice == 0 {
			pass.carryOut(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	pass.carryOut(ctx)
	return nil
}

// recoverSlice is how many orphans are read, decided about and continued at a time.
const recoverSlice = 256

// recoverOne does with a run whose process is gone what Recover does with all of them.
func (rc *Recovery) recoverOne(ctx context.Context, row *store.Run) error {
	pass := orphanPass{rc: rc, judge: judge{o: rc.o}, rep: &Report{}}
	if err := pass.take(ctx, row); err != nil {
		return err
	}
	pass.carryOut(ctx)
	return nil
}

// An orphanPass goes through runs whose owners are gone, and collects those that are to be
// executed here.
type orphanPass struct {
	rc     *Recovery
	judge  judge
	rep    *Report
	resume toContinue
	try    []string // suspects
}

// carryOut begins to execute what was collected.
func (p *orphanPass) carryOut(ctx context.Context) {
	p.rc.claims.continueAll(ctx, &p.resume, p.rep)
	p.rep.Suspects = append(p.rep.Suspects, p.try...)
	p.rc.trials.hold(p.try)
	p.resume, p.try = toContinue{}, nil
}

// take deals with one run whose owner is gone, or collects it.
func (p *orphanPass) take(ctx context.Context, row *store.Run) error {
	rc, rep := p.rc, p.rep
	row, err := rc.reconcileOnBoot(ctx, row, rep)
	if row == nil {
		return err
	}
	what, ends, err := p.judge.fate(ctx, row)
	if err != nil {
		// It is resumed, and whoever does so finds out what is wrong.
		rc.o.Log.AboutRun(slog.LevelWarn, row, "durable: how the earlier owners of a run ended could not be read", slog.Any("error", err))
	}
	switch what {
	case fateResume:
		p.resume.add(row)
	case fateTry:
		p.try = append(p.try, row.ID)
	case fateLeave:
		rep.Left = append(rep.Left, row.ID)
	case fateFail:
		if rc.fail(ctx, row, CodeRestarted, rc.o.BootReason, rep) {
			rep.Failed = append(rep.Failed, row.ID)
			rc.o.Log.AboutRun(slog.LevelInfo, row, "durable: run marked failed", slog.String("reason", rc.o.BootReason), rc.o.Log.Verdict(ctx, row.ID, store.Failed))
		}
	case fateQuarantine:
		reason := ends.Reason()
		if rc.fail(ctx, row, stuck.CodeQuarantined, reason, rep) {
			rep.Quarantine = append(rep.Quarantine, row.ID)
			rep.stuck(stuck.Of(row, stuck.CodeQuarantined, reason))
			rc.o.Log.AboutRun(slog.LevelWarn, row, "durable: run quarantined", slog.String("reason", reason), rc.o.Log.Verdict(ctx, row.ID, store.Failed))
		}
	case fateUnpause:
		if rc.unpause(ctx, row, rep) {
			p.resume.add(row)
		}
	case fateStuck:
		return rc.park(ctx, row, rep)
	}
	return nil
}

// CodeRestarted is the code of a run that failed because its process died.
const CodeRestarted = "server_restarted"

// park reports a run whose process is gone and whose code is not here. If
// nobody alive has it, the row no longer says that the run is executed: it is parked
// until somebody serves it, who then decides by its policy (resumeInterrupted). A
// program without workflows parks nothing.
func (rc *Recovery) park(ctx context.Context, row *store.Run, rep *Report) error {
	reason := rc.o.Program.NotServed(row)
	rep.stuck(stuck.Of(row, store.CodeNotRegistered, reason))
	executors, err := rc.o.Store.Executors(ctx)
	if err != nil {
		return fmt.Errorf("durable: recovery could not list executors: %w", commit.StoreError(err))
	}
	if stuck.LiveOf(executors, rc.o.Executor).Serves(row) {
		return nil
	}
	if row.Paused || row.CancelAsked || row.Last == nil {
		return nil // what was asked for is carried out by whoever has its code
	}
	if len(rc.o.Serves) == 0 {
		return nil // a program for operators: what it finds is theirs to judge, as it is
	}
	interrupted, code := store.Interrupted, store.CodeNotRegistered
	_, err = rc.o.Act(ctx, row, nil, commit.Act{
		From:  []store.Status{row.Status},
		Event: store.Event{Type: store.WorkflowInterrupted, Data: history.Encode(&history.Stop{Code: code, Reason: reason, Executor: rc.o.Executor})},
		Row:   &store.RowPatch{Status: &interrupted, Code: &code, Reason: &reason},
	})
	if err != nil && !commit.Overtaken(err) {
		rc.o.Log.AboutRun(slog.LevelWarn, row, "durable: a run that nobody can execute could not be marked so; it is tried again", slog.Any("error", err))
	}
	return nil
}

// fail marks a run failed, recoverable, unless somebody was faster.
func (rc *Recovery) fail(ctx context.Context, row *store.Run, code, reason string, rep *Report) bool {
	yes, failed, ended := true, store.Failed, rc.o.Now()
	_, err := rc.o.Act(ctx, row, nil, commit.Act{
		From:    []store.Status{row.Status},
		Event:   store.Event{Type: store.WorkflowFailed, Data: history.Encode(&history.End{Code: code, Reason: reason, Recoverable: &yes, Executor: rc.o.Executor})},
		Row:     &store.RowPatch{Status: &failed, Code: &code, Reason: &reason, Recoverable: &yes, EndedAt: &ended, WakeAt: new(store.Time)},
		Release: true,
	})
	switch {
	case err == nil:
		rc.o.Tracing.EndOrphanSpan(ctx, row, code)
		return true
	case commit.Overtaken(err):
		return false // another process recovered it in the same moment
	}
	rep.tryAgain(row, code, fmt.Sprintf("marking it failed did not succeed: %v", err), "call Recover again")
	return false
}

// unpause ends the pause of a cancelled run whose owner died before it could end the run.
func (rc *Recovery) unpause(ctx context.Context, row *store.Run, rep *Report) bool {
	no, interrupted := false, store.Interrupted
	_, err := rc.o.Act(ctx, row, nil, commit.Act{
		From:  []store.Status{store.Running, store.Resuming},
		Event: store.Event{Type: store.WorkflowUnpaused, Data: history.Encode(&history.Stop{Reason: "cancelled", Message: row.Inbox, Executor: rc.o.Executor})},
		Row:   &store.RowPatch{Paused: &no, Status: &interrupted},
	})
	if err == nil || commit.Overtaken(err) {
		return err == nil
	}
	rep.tryAgain(row, stuck.CodePaused, fmt.Sprintf("it was paused and cancelled, and taking it up did not succeed: %v", err), "call Recover again")
	return false
}
