package durable

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// BootPolicy says what Recover does with a run whose process died while it was
// executed. The zero value leaves the choice to Options.OnBoot.
type BootPolicy int

// The policies.
const (
	// ResumeOnBoot continues the run. It is the default.
	ResumeOnBoot BootPolicy = iota + 1
	// FailOnBoot marks it failed, recoverable: only a person resumes it.
	FailOnBoot
	// LeaveOnBoot leaves it as it is.
	LeaveOnBoot
)

func (p BootPolicy) valid() bool { return p >= 0 && p <= LeaveOnBoot }

func (rc *recovery) bootPolicy(def *definition) BootPolicy {
	if def != nil && def.boot != 0 {
		return def.boot
	}
	return rc.eng.options.OnBoot
}

// Report says what Recover did, by run id. Runs in progress elsewhere, pending
// runs and ended ones are in none of its lists.
type Report struct {
	Resumed    []string   // continued here, in the background
	Deferred   []string   // left for later: continued as soon as there is room (Options.MaxRuns)
	Failed     []string   // marked failed under FailOnBoot
	Left       []string   // left alone under LeaveOnBoot
	Approvals  []Approval // waiting for a person; kept as they are
	Suspects   []string   // ended their process before; tried one at a time
	Repaired   []Recovery // contradicted their events and were repaired, then treated like the others
	Stuck      []Stuck    // cannot go on here
	Quarantine []string   // of those, the ones set aside by this call

	continued []*run // executions of Resumed, whose histories are being read
}

// Stuck says why a run cannot go on, and what to do.
type Stuck struct {
	RunID    string
	Workflow string
	Version  string
	Code     string
	Reason   string
	Next     string
}

// recovery deals with runs whose executor is gone, when Recover is called and when
// an executor is found gone later.
type recovery struct {
	eng     *Engine
	orphans chan struct{} // some executor is gone and has left runs
	trials  trials
	// unserved are runs that nobody alive has the code of.
	unserved unservedRuns

	// Used by tend alone.
	turn     int // of the looks that follow the beats
	reminded bool
}

func (rc *recovery) open(e *Engine) {
	rc.eng, rc.orphans = e, make(chan struct{}, 1)
	rc.trials.eng, rc.unserved.eng = e, e
}

// Recover brings every run that was left unfinished into a defined state. Call
// it once on boot. Runs whose owner is gone are continued from the attempt they
// had reached, failed, or left, as their policy says; waiting runs keep
// waiting, and their prompts are reported; runs that were stopped gracefully are
// continued; pending ones become claimable by this engine. One run that cannot be recovered does not keep the
// others: it is in Report.Stuck. Runs that a live executor owns are never
// touched, and neither are ended ones; calling it again does no harm.
//
// The runs are continued in the background; Recover waits, for two seconds at most, until
// their histories were read, so that one that is damaged is in Report.Stuck. When
// they are more than Options.MaxRuns allows, the others follow, oldest first, as
// those before them end; until then they stay as they are, and another executor
// may take them. Recover's error says that the store could not be read.
func Recover(ctx context.Context) (Report, error) {
	e, err := engineOf(ctx)
	if err != nil {
		return Report{}, err
	}
	return e.Recover(ctx)
}

// Recover is the function Recover for this engine.
func (e *Engine) Recover(ctx context.Context) (Report, error) {
	var rep Report
	if e.roster.isClosing() {
		return rep, ErrClosed
	}
	if err := e.recovery.recoverOrphans(ctx, &rep); err != nil {
		return rep, err
	}
	if err := e.recovery.reconcileWaiting(ctx, &rep); err != nil {
		return rep, err
	}
	if err := e.recovery.announceApprovals(ctx, &rep); err != nil {
		return rep, err
	}
	if err := e.recovery.resumeInterrupted(ctx, &rep); err != nil {
		return rep, err
	}
	if err := e.recovery.reportUnserved(ctx, &rep); err != nil {
		return rep, err
	}
	e.recovery.judgeRead(ctx, &rep)
	rep.Stuck = onceEach(rep.Stuck)
	e.claims.recovered.Store(true)
	nudge(e.claims.wake)
	e.heart.BeatSoon()
	e.log.Info(fmt.Sprintf("Recovery complete: %d workflows marked failed, %d approvals restored.", len(rep.Failed), len(rep.Approvals)),
		"resumed", len(rep.Resumed), "deferred", len(rep.Deferred), "suspects", len(rep.Suspects), "left", len(rep.Left), "quarantined", len(rep.Quarantine), "repaired", len(rep.Repaired), "stuck", len(rep.Stuck))
	for i, s := range rep.Stuck {
		if i == maxStuckLines {
			e.log.Warn("durable: more runs are stuck; operate.On(engine).Stuck lists them", "runs", len(rep.Stuck)-i)
			break
		}
		e.log.AboutID(ctx, slog.LevelWarn, s.RunID, "durable: a run is stuck", slog.String("code", s.Code), slog.String("reason", s.Reason), slog.String("next", s.Next))
	}
	return rep, nil
}

// judgeRead waits until the histories of the runs that this call continues were read,
// and says of those that cannot be read that they are stuck. What takes longer than
// readingTime is left to the log.
func (rc *recovery) judgeRead(ctx context.Context, rep *Report) {
	late := time.NewTimer(readingTime)
	defer late.Stop()
	unread := map[string]bool{}
	for _, r := range rep.continued {
		select {
		case <-r.loaded:
			continue // what it meets from here on is of its code
		case <-r.ended:
		case <-late.C:
			late.Reset(0)
			continue
		case <-ctx.Done():
			return
		}
		d := r.unread
		if d == nil || d.kind != deathParked {
			continue
		}
		unread[r.id] = true
		rep.Stuck = append(rep.Stuck, stuckOf(&r.row, d.code, d.err.Error()))
	}
	rep.Resumed = slices.DeleteFunc(rep.Resumed, func(id string) bool { return unread[id] })
	rep.continued = nil
}

// readingTime bounds how long Recover waits for the histories that it has begun to read.
const readingTime = 2 * time.Second

// maxStuckLines bounds how many stuck runs a boot logs one by one.
const maxStuckLines = 20

// onceEach leaves out what is said of a run for the second time: the first thing that
// was found is the reason.
func onceEach(list []Stuck) []Stuck {
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(s Stuck) bool {
		again := seen[s.RunID]
		seen[s.RunID] = true
		return again
	})
}

// loop recovers the runs of executors that were found gone, one take-over at a time.
func (rc *recovery) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-rc.orphans:
		}
		if rc.eng.heart.AwaitLease(ctx.Done(), nil) {
			rc.takeOver(ctx)
		}
	}
}

// takeOver recovers the runs of executors that were found gone while we run.
func (rc *recovery) takeOver(ctx context.Context) {
	var rep Report
	if err := rc.recoverOrphans(ctx, &rep); err != nil {
		if ctx.Err() == nil {
			rc.eng.log.Warn("durable: taking over runs of a lost executor failed; the next beat tries again", "error", err)
		}
		return
	}
	if n := len(rep.Resumed) + len(rep.Deferred) + len(rep.Failed) + len(rep.Suspects) + len(rep.Quarantine); n > 0 {
		rc.eng.log.Info("durable: took over runs of a lost executor", "resumed", len(rep.Resumed), "deferred", len(rep.Deferred), "failed", len(rep.Failed), "suspects", len(rep.Suspects), "quarantined", len(rep.Quarantine))
	}
}

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
// its strikes.
// It is a pure function of its arguments.
func fateOf(row *store.Run, policy BootPolicy, served bool, strikes, quarantineAfter int) fate {
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
	case policy == LeaveOnBoot:
		return fateLeave
	case policy == FailOnBoot:
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
func (rc *recovery) recoverOrphans(ctx context.Context, rep *Report) error {
	e := rc.eng
	var resume toContinue
	var try []string
	n, judge := 0, judge{eng: e}
	f := store.Filter{Orphaned: true, OldestFirst: true, WithLast: true, Limit: recoverSlice}
	for row, err := range e.runsOf(ctx, f) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list interrupted runs: %w", storeError(err))
		}
		if err := rc.recoverOrphan(ctx, row, &judge, rep, &resume, &try); err != nil {
			return err
		}
		if n++; n%recoverSlice == 0 {
			e.claims.continueAll(ctx, &resume, rep)
			rep.Suspects = append(rep.Suspects, try...)
			rc.trials.hold(try)
			resume, try = toContinue{}, nil
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	e.claims.continueAll(ctx, &resume, rep)
	rep.Suspects = append(rep.Suspects, try...)
	rc.trials.hold(try)
	return nil
}

// recoverSlice is how many orphans are read, decided about and continued at a time.
const recoverSlice = 256

// recoverOrphan deals with one run whose owner is gone. One that is to be
// continued is added to resume, or to try if it is a suspect.
func (rc *recovery) recoverOrphan(ctx context.Context, row *store.Run, judge *judge, rep *Report, resume *toContinue, try *[]string) error {
	e := rc.eng
	row, err := rc.reconcileOnBoot(ctx, row, rep)
	if row == nil {
		return err
	}
	def := e.program.defs.find(row.Workflow, row.Version)
	ends, err := judge.strikes(ctx, row)
	if err != nil {
		// It is resumed, and whoever does so finds out what is wrong.
		e.log.AboutRun(slog.LevelWarn, row, "durable: how the earlier owners of a run ended could not be read", slog.Any("error", err))
	}
	switch fateOf(row, e.recovery.bootPolicy(def), def != nil, ends.N, e.options.QuarantineAfter) {
	case fateResume:
		resume.add(row)
	case fateTry:
		*try = append(*try, row.ID)
	case fateLeave:
		rep.Left = append(rep.Left, row.ID)
	case fateFail:
		if rc.failOrphan(ctx, row, CodeRestarted, e.options.BootReason, rep) {
			rep.Failed = append(rep.Failed, row.ID)
			e.log.AboutRun(slog.LevelInfo, row, "durable: run marked failed", slog.String("reason", e.options.BootReason), e.log.Verdict(ctx, row.ID, store.Failed))
		}
	case fateQuarantine:
		reason := ends.Reason()
		if rc.failOrphan(ctx, row, CodeQuarantined, reason, rep) {
			rep.Quarantine = append(rep.Quarantine, row.ID)
			rep.Stuck = append(rep.Stuck, stuckOf(row, CodeQuarantined, reason))
			e.log.AboutRun(slog.LevelWarn, row, "durable: run quarantined", slog.String("reason", reason), e.log.Verdict(ctx, row.ID, store.Failed))
		}
	case fateUnpause:
		if rc.unpauseOrphan(ctx, row, rep) {
			resume.add(row)
		}
	case fateStuck:
		return rc.parkUnserved(ctx, row, rep)
	}
	return nil
}

// parkUnserved reports a run whose process is gone and whose code is not here. If
// nobody alive has it, the row no longer says that the run is executed: it is parked
// until somebody serves it, who then decides by its policy (resumeInterrupted). A
// program without workflows parks nothing.
func (rc *recovery) parkUnserved(ctx context.Context, row *store.Run, rep *Report) error {
	e := rc.eng
	reason := e.program.defs.notServed(row)
	rep.Stuck = append(rep.Stuck, stuckOf(row, CodeNotRegistered, reason))
	executors, err := e.store.Executors(ctx)
	if err != nil {
		return fmt.Errorf("durable: recovery could not list executors: %w", storeError(err))
	}
	for _, x := range executors {
		if x.Live && x.ID != e.id && store.Serves(x.Serves, row.Workflow, row.Version) {
			return nil
		}
	}
	if row.Paused || row.CancelAsked || row.Last == nil {
		return nil // what was asked for is carried out by whoever has its code
	}
	if len(e.program.defs.byName) == 0 {
		return nil // a program for operators: what it finds is theirs to judge, as it is
	}
	interrupted, code := store.Interrupted, CodeNotRegistered
	_, err = e.act(ctx, row, nil, commit.Act{
		From:  []store.Status{row.Status},
		Event: store.Event{Type: store.WorkflowInterrupted, Data: history.Encode(&history.Stop{Code: code, Reason: reason, Executor: e.id})},
		Row:   &store.RowPatch{Status: &interrupted, Code: &code, Reason: &reason},
	})
	if err != nil && !commit.Overtaken(err) {
		e.log.AboutRun(slog.LevelWarn, row, "durable: a run that nobody can execute could not be marked so; it is tried again", slog.Any("error", err))
	}
	return nil
}

// leftToAPerson reports whether a run that lost its process while nobody had its
// code is not to be continued by this engine, which has it.
func (rc *recovery) leftToAPerson(row *store.Run) bool {
	def := rc.eng.program.defs.find(row.Workflow, row.Version)
	return def != nil && rc.bootPolicy(def) != ResumeOnBoot
}

func stuckOf(row *store.Run, code, reason string) Stuck {
	return Stuck(stuck.Of(row, code, reason))
}

// failOrphan marks a run failed, recoverable, unless somebody was faster.
func (rc *recovery) failOrphan(ctx context.Context, row *store.Run, code, reason string, rep *Report) bool {
	e := rc.eng
	yes, failed, ended := true, store.Failed, e.now()
	_, err := e.act(ctx, row, nil, commit.Act{
		From:    []store.Status{row.Status},
		Event:   store.Event{Type: store.WorkflowFailed, Data: history.Encode(&history.End{Code: code, Reason: reason, Recoverable: &yes, Executor: e.id})},
		Row:     &store.RowPatch{Status: &failed, Code: &code, Reason: &reason, Recoverable: &yes, EndedAt: &ended, WakeAt: new(store.Time)},
		Release: true,
	})
	switch {
	case err == nil:
		e.tracing.EndOrphanSpan(ctx, row, code)
		return true
	case commit.Overtaken(err):
		return false // another process recovered it in the same moment
	}
	rep.Stuck = append(rep.Stuck, Stuck{RunID: row.ID, Workflow: row.Workflow, Version: row.Version, Code: code, Reason: fmt.Sprintf("marking it failed did not succeed: %v", err), Next: "call Recover again"})
	return false
}

// reportUnserved lists pending and waiting runs whose code nobody alive has: they
// would wait for ever without a word.
func (rc *recovery) reportUnserved(ctx context.Context, rep *Report) error {
	e := rc.eng
	executors, err := e.store.Executors(ctx)
	if err != nil {
		return fmt.Errorf("durable: recovery could not list executors: %w", storeError(err))
	}
	f := store.Filter{Statuses: []store.Status{store.Pending, store.Waiting}, OldestFirst: true}
	for row, err := range e.runsOf(ctx, f) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list pending and waiting runs: %w", storeError(err))
		}
		if row.Paused {
			rep.Stuck = append(rep.Stuck, Stuck(stuck.Paused(row)))
			continue
		}
		served := func(x store.Executor) bool { return x.Live && store.Serves(x.Serves, row.Workflow, row.Version) }
		if e.program.defs.find(row.Workflow, row.Version) == nil && !slices.ContainsFunc(executors, served) {
			e.recovery.servable(row, rep)
		}
	}
	return nil
}

// liveExecutors returns the ids of the executors that are alive, but not ours.
func (rc *recovery) liveExecutors(ctx context.Context) (map[string]bool, error) {
	list, err := rc.eng.store.Executors(ctx)
	if err != nil {
		return nil, fmt.Errorf("durable: recovery could not list executors: %w", storeError(err))
	}
	live := map[string]bool{}
	for _, x := range list {
		if x.Live && x.ID != rc.eng.id {
			live[x.ID] = true
		}
	}
	return live, nil
}

// resumeInterrupted continues the runs that were stopped gracefully, and reports
// those that wait for a person or for other code.
func (rc *recovery) resumeInterrupted(ctx context.Context, rep *Report) error {
	e := rc.eng
	var resume toContinue
	f := store.Filter{Statuses: []store.Status{store.Interrupted}, OldestFirst: true, WithLast: true}
	for row, err := range e.runsOf(ctx, f) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list interrupted runs: %w", storeError(err))
		}
		if row, err = rc.reconcileOnBoot(ctx, row, rep); row == nil {
			if err != nil {
				return err
			}
			continue
		}
		switch {
		case row.Paused:
			rep.Stuck = append(rep.Stuck, Stuck(stuck.Paused(row)))
		case row.Code == CodeRecovered:
			rc.settleRecovered(ctx, row, rep)
		case row.Code != "" && row.Code != CodeNotRegistered:
			rep.Stuck = append(rep.Stuck, stuckOf(row, row.Code, row.Reason))
		case row.Code == CodeNotRegistered && rc.leftToAPerson(row):
			rc.settleRecovered(ctx, row, rep)
		default:
			if e.recovery.servable(row, rep) {
				resume.add(row)
			}
		}
	}
	e.claims.continueAll(ctx, &resume, rep)
	return nil
}
