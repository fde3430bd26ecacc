package claims

import (
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
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

// policyFor returns the policy under which a run goes on that has lost its process, given that of its
// workflow: a cancel that a person has asked for is carried out under each.
func policyFor(row *store.Run, policy Policy) Policy {
	if row.CancelAsked {
		return Resume
	}
	return policy
}

// fateOf decides about an orphan, given its policy, whether its code is here, and
// its strikes. It is a pure function of its arguments; take, of orphan.go, carries it out.
func fateOf(row *store.Run, policy Policy, served bool, strikes, quarantineAfter int) fate {
	switch row.Status {
	case store.Running, store.Resuming:
	default:
		// Waiting and pending runs are claimed when they are due.
		return fateNone
	}
	policy = policyFor(row, policy)
	switch {
	case !served:
		// Its policy is not known here either: an executor that has its code decides.
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

// A strike is the end of a process that this run can have caused: its owner is
// dead, and a body of the run had begun there and has recorded nothing. As a rule the
// beginning of a body is not recorded, because that would cost a write for each step. So
// an execution that was claimed from an owner that died is on probation: until something
// is recorded, it writes step_started before each body. The first end of such a series
// counts for nothing.
//
//	1 workflow_started (X)                          X dies: nothing is known
//	2 run_resumed (Y)                               on probation
//	3 step_started charge                           Y dies: a strike
//	4 run_resumed (Z)                               Z dies before it came to a body: none
//	5 run_resumed (V)
//	6 step_started charge                           V has only lost its lease: none while it lives
//
// Anything else that is recorded (an outcome, a failed attempt, saved progress) cancels
// all strikes.

// trialTail is how many events at the end of a log are read for strikes: more than all
// the executions that count leave if they record nothing.
const trialTail = 64

// A judge decides what becomes of orphaned runs. It asks once which executors are alive.
type judge struct {
	o     *Options
	tails *tails
	live  map[string]bool // executors; nil: not asked yet
}

// fate decides about an orphaned run. ends is what its log says of its earlier owners; err
// says that this could not be read, and that the decision was made without it.
func (j *judge) fate(ctx context.Context, row *store.Run) (what fate, ends history.Strikes, err error) {
	ends, err = j.strikes(ctx, row)
	policy, here := j.o.Program.OnBoot(row.Workflow, row.Version), j.o.Program.Has(row.Workflow, row.Version)
	return fateOf(row, policy, here, ends.N, j.o.QuarantineAfter), ends, err
}

// staysDecided reports whether a run that was to be continued still is. Meanwhile
// another executor may have taken the run, and the run may have ended that process: then
// it is a suspect, for the recovery that this makes necessary.
func (j *judge) staysDecided(ctx context.Context, row *store.Run) bool {
	switch row.Status {
	case store.Interrupted:
		return true // a run that is parked or paused by now is not claimed
	case store.Running, store.Resuming:
		what, _, err := j.fate(ctx, row)
		return err == nil && what == fateResume
	}
	return false
}

// mayHaveStrikes reports whether an orphaned run can have strikes: its log ends with the
// beginning of a body, or with a claim that was not the first since something was recorded.
func mayHaveStrikes(row *store.Run) bool {
	last := row.Last
	return last != nil && row.Executing() && (history.BeginsBody(last) || last.Type.Claims() && row.Strikes > 0)
}

// strikes counts the strikes of an orphaned run.
func (j *judge) strikes(ctx context.Context, row *store.Run) (s history.Strikes, err error) {
	if !mayHaveStrikes(row) {
		return s, nil
	}
	if j.live == nil {
		if j.live, err = j.o.others(ctx); err != nil {
			return s, err
		}
		j.live[j.o.Executor] = true
	}
	tail, err := j.tails.of(ctx, row, trialTail)
	if err != nil {
		return s, err
	}
	tail = slices.DeleteFunc(slices.Clone(tail), func(ev store.Event) bool { return ev.Seq > row.Last.Seq }) // the listing is older
	return history.StrikesOf(tail, row.Owner, func(x string) bool { return !j.live[x] }), nil
}
