package durable

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/claims"
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
	// FailOnBoot marks it failed, recoverable: only a person resumes it. A run whose cancel is
	// recorded goes on nevertheless, to be undone and to end cancelled.
	FailOnBoot
	// LeaveOnBoot leaves it as it is, unless its cancel is recorded.
	LeaveOnBoot
)

func (p BootPolicy) valid() bool { return p >= 0 && p <= LeaveOnBoot }

// bootPolicy returns what is done with runs of this code; nil: it is not here.
func (o *Options) bootPolicy(def *definition) BootPolicy {
	if def != nil && def.boot != 0 {
		return def.boot
	}
	return o.OnBoot
}

// Report is what Recover did, by run id. Runs in progress elsewhere, pending runs and
// ended ones are in none of its lists.
type Report struct {
	Resumed    []string   // continued here, in the background
	Deferred   []string   // left for later: continued as soon as there is room (Options.MaxRuns)
	Failed     []string   // marked failed under FailOnBoot
	Left       []string   // left alone under LeaveOnBoot
	Approvals  []Approval // waiting for a person; kept as they are
	Suspects   []string   // ended their process before; tried one at a time
	Repaired   []Recovery // contradicted their events and were repaired, then treated like the others
	Stuck      []Stuck    // cannot go on here
	Quarantine []string   // of Stuck, the runs that this call has quarantined
	Unparked   []string   // go on, too: other code had parked them, and the code that is here fits

	// Partial: there are so many runs that wait that Recover has not looked at all of them. The rest
	// of Approvals, Repaired and Stuck is logged, and counted in the line "Recovery complete".
	Partial bool
}

// Stuck says why a run cannot go on, and what to do.
type Stuck struct {
	RunID    string
	Workflow string
	Version  string
	Code     string
	Reason   string
	Next     string
	Since    store.Time // when it last moved
}

// Recover continues the runs that earlier processes have left unfinished, and from then on this
// engine takes up what others start or leave; an engine that never calls it executes only the
// runs that it starts itself. Call it once on boot. Runs whose owner is gone are continued from
// the attempt they had reached, failed, or left, as their policy says. Waiting runs keep waiting, and
// their prompts are reported. Runs that were stopped gracefully are continued, and
// pending ones become claimable by this engine. A run that cannot be recovered does not
// stop the others: it is in Report.Stuck. Recover never touches runs that a live executor
// owns, or ended ones; calling it again does no harm.
//
// Before that, the first call stores the queues and schedules of Options; from then on schedules
// are fired here, too.
//
// The runs are continued in the background. Recover waits, for two seconds at most, until
// their histories were read, so that a damaged one is in Report.Stuck. If there are more
// runs than Options.MaxRuns allows, the others follow, oldest first, as those before them
// end; until then they stay as they are, and another executor may take them.
//
// A run that was parked because its code had changed, a value could not be read, or the code of a
// child was missing (CodeDefinitionChanged, CodeUndecodable, CodeChildNotRegistered) is replayed
// with the code that is here. If that fits, the run goes on, and is in Report.Unparked;
// otherwise nothing is written, and it stays in Report.Stuck. A build that has parked a run itself is not tried
// again, nor is a workflow whose policy is not ResumeOnBoot. One whose outcome could not be recorded
// (CodeUnrecorded), or where the body of a step could not read its progress or an earlier output, is
// tried by another build alone (Options.Build): the body runs again.
//
// Runs that were cut off or stopped go on first, and then those that are due may be claimed. The runs
// that wait are compared with their events meanwhile: nothing has to wait for that but a due run that
// may contradict its own, which is compared before it is claimed. Recover waits for it, for the open
// approvals and for what is stuck for five seconds at most (Report.Partial).
//
// Errors: ErrNoEngine; ErrClosed; ErrInWorkflow; ErrUnavailable when the store could not be read; the cause of
// ctx's end.
func Recover(ctx context.Context) (Report, error) {
	e, err := engineOf(ctx)
	if err != nil {
		return Report{}, err
	}
	return e.Recover(ctx)
}

// Recover is the function Recover for this engine.
//
// Errors are those of Recover.
func (e *Engine) Recover(ctx context.Context) (Report, error) {
	if err := outsideFunction(ctx, "Recover"); err != nil {
		return Report{}, err
	}
	if e.roster.isClosing() {
		return Report{}, ErrClosed
	}
	if err := e.program.declared.Store(ctx, e.store, e.id, e.log.Logger); err != nil {
		return Report{}, err
	}
	var mu sync.Mutex // Recover may return before it has announced the last one
	var approvals []Approval
	rep, err := e.recovery.Recover(ctx, func(ctx context.Context, row *store.Run) (int, error) {
		open, err := e.asked(ctx, row)
		if err != nil {
			return 0, err
		}
		for _, a := range open {
			e.log.AboutRun(slog.LevelInfo, row, "durable: approval restored", append(e.log.PromptAttrs(a.Prompt), slog.String("wait", a.Key))...)
			mu.Lock()
			approvals = append(approvals, Approval(a))
			mu.Unlock()
		}
		return len(open), nil
	})
	mu.Lock()
	defer mu.Unlock()
	return Report{
		Partial: rep.Partial,
		Resumed: rep.Resumed, Deferred: rep.Deferred, Failed: rep.Failed, Left: rep.Left, Approvals: slices.Clone(approvals),
		Suspects: rep.Suspects, Repaired: convert(rep.Repaired, func(r claims.Repaired) Recovery { return Recovery(r) }),
		Stuck: convert(rep.Stuck, func(s stuck.Run) Stuck { return Stuck(s) }), Quarantine: rep.Quarantine, Unparked: rep.Unparked,
	}, err
}

// convert returns the list in another form.
func convert[A, B any](list []A, as func(A) B) (out []B) {
	for _, a := range list {
		out = append(out, as(a))
	}
	return out
}

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
	// Code of the catalogue (CodeA1, ...) and its text. If several things were wrong,
	// they are those of the first.
	Code   string
	Reason string
	// NewBranch is the branch that the run is on since, and Cutoff the number of the last
	// event that it keeps of the previous branch. Under CodeE2 nothing is left behind:
	// NewBranch is the branch it was on, and Cutoff is 0.
	NewBranch int32
	Cutoff    int64
}

// UnrecoverableError says that a run is inconsistent and that nothing was done
// about it, because only a person can decide what to do.
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

// RecoverRun compares a run with its events and, if they contradict each other,
// repairs it: a new branch begins after the last event from which the run can go on, the
// event workflow_recovered says why and where, and the run becomes claimable; under
// FailOnBoot and LeaveOnBoot it is parked with CodeRecovered, for a person to resume.
// Nothing is deleted: what the cut leaves behind stays on the previous branch
// (operate.Operator.Branches, operate.Operator.LeftBehind). docs/recovery.md has the
// catalogue of what is repaired, and how.
//
// RecoverRun writes nothing to a consistent run, an ended one, or a pending one. The
// repair is one change, and durable when RecoverRun returns: a second call finds nothing
// to do, and of two concurrent calls one makes the branch and the other finds it. Resume
// and Recover make this check themselves.
//
// Errors: ErrNotFound; *UnrecoverableError, with Needed, Code and Reason set and
// nothing done; one that matches store.ErrOwned when a live executor has the run
// and it seems inconsistent; *DamagedError when its history cannot be believed;
// *UndecodableError when a newer version of this library has recorded it.
func (e *Engine) RecoverRun(ctx context.Context, id string) (Recovery, error) {
	if err := outsideFunction(ctx, "RecoverRun of run "+id); err != nil {
		return Recovery{}, err
	}
	rec, err := e.recovery.Repair(ctx, id)
	return Recovery(rec), unrecoverable(err)
}

// unrecoverable returns err as callers know it: for a run that only a person can mend, an
// UnrecoverableError.
func unrecoverable(err error) error {
	if u := (*claims.Unrecoverable)(nil); errors.As(err, &u) {
		return (*UnrecoverableError)(u)
	}
	return err
}

// Adopt executes here a run that waits, is pending, or was stopped gracefully,
// and that no live executor has. It does at once for one run what Recover would do in
// time for all of them, and Recover need not have been called. So a program that a person
// runs for the sake of one run (a command line) executes that run and no other. Adopt is
// not Resume: a run that was parked, that has failed, or whose process died while it was
// executed is left to Resume.
//
// Children that the run waits for, and that no process executes either, are taken up with
// it, by the rules of Recover.
//
// When Adopt returns, the run durably belongs to this executor; it goes on in the
// background. Adopting a run that is executed here already does nothing.
//
// Errors: ErrNotFound; ErrNotRegistered when this engine lacks the code of its
// workflow or version; *NotResumableError for a run in any other status, for a
// paused or parked one, for one that may not begin yet (Delay, StartAt, Debounce), and for
// one that another live executor has; ErrInWorkflow in a workflow function. After any of them nothing has changed.
func (e *Engine) Adopt(ctx context.Context, id string) error {
	if err := outsideFunction(ctx, "Adopt of run "+id); err != nil {
		return err
	}
	err := e.recovery.Adopt(ctx, id)
	if no := (*claims.Refusal)(nil); errors.As(err, &no) {
		return (*NotResumableError)(no)
	}
	return err
}
