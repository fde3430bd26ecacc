package claims

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// Recovery deals with runs whose executor is gone, when Recover is called and when
// an executor is found gone later.
type Recovery struct {
	repairs
	o        *Options
	claims   *Claims
	trials   trials
	unserved unservedRuns

	comparing turn // taken while waiting runs are compared with their events, slice by slice
	sifting   turn // taken for as long as a sift takes, with its report

	// mayRest: those who are gone may own runs that rest; else a take-over lists only what they executed.
	mayRest atomic.Bool

	awaited sync.Map // by run id, the delayed children that are taken up when they may begin

	deferred int // how many runs the last take-over left in line; used by takeOver alone

	// Used by Tend alone.
	turn     int // of the checks that follow heartbeats
	reminded bool
	gone     []string // as the last beat said
}

// NewRecovery returns the recovery that belongs to c.
func NewRecovery(c *Claims) *Recovery {
	return &Recovery{
		repairs: repairs{o: c.o, claims: c},
		o:       c.o, claims: c, trials: trials{claims: c}, unserved: unservedRuns{o: c.o, claims: c},
		comparing: make(turn, 1), sifting: make(turn, 1),
	}
}

// Recover brings every run that was left unfinished into a defined state. What was cut off and
// what was stopped is claimed first; from then on the loop claims what is due. The runs that wait, of
// which there may be any number, are compared with their events meanwhile, and the loop passes over
// those that may contradict them: see sieve and survey.
//
// It calls announce for each run that waits for a person and that no other live executor owns;
// announce returns how many questions the run asks, or why its history cannot be read.
// The error says that the store could not be read; the report has what was done until
// then.
func (rc *Recovery) Recover(ctx context.Context, announce Announce) (rep Report, err error) {
	if rc.o.Runs.Closing() {
		return rep, commit.ErrClosed
	}
	pass := rc.orphanPass(&rep)
	err = pass.all(ctx, cutOff...)
	pass.keepPlaces(err)
	if err != nil {
		return rep, err
	}
	if err := rc.resumeInterrupted(ctx, &rep); err != nil {
		return rep, err
	}
	rc.shut()
	rc.claims.recovered.Store(true)
	rc.claims.Wake()
	rc.judgeRead(ctx, &rep)
	rc.o.Heart.BeatSoon()
	return rc.survey(ctx, rep, announce)
}

// orphanPass returns a pass over orphans that adds to a report.
func (rc *Recovery) orphanPass(rep *Report) *orphanPass {
	return &orphanPass{o: rc.o, claims: rc.claims, trials: &rc.trials, repairs: &rc.repairs, judge: judge{o: rc.o}, rep: rep}
}

// say logs what a call of Recover has done.
func (rc *Recovery) say(ctx context.Context, rep *Report) {
	log := rc.o.Log
	// The sentence is prescribed, and sounds like an accident where there was none.
	log.Info(fmt.Sprintf("Recovery complete: %d workflows marked failed, %d approvals restored.", len(rep.Failed), rep.approvals), rep.counts()...)
	for i, s := range rep.Stuck {
		if i == maxStuckLines {
			log.Warn("durable: more runs are stuck; operate.On(engine).Stuck lists them", "runs", len(rep.Stuck)-i)
			break
		}
		log.AboutID(ctx, slog.LevelWarn, s.RunID, "durable: a run is stuck", slog.String("code", s.Code), slog.String("reason", s.Reason), slog.String("next", s.Next))
	}
}

// maxStuckLines limits how many stuck runs a boot logs one by one.
const maxStuckLines = 20

// resumeInterrupted continues the runs that were stopped gracefully, and reports
// those that wait for a person or for other code.
func (rc *Recovery) resumeInterrupted(ctx context.Context, rep *Report) error {
	return rc.o.eachSlice(ctx, store.Filter{Statuses: []store.Status{store.Interrupted}}, "interrupted", func(rows []*store.Run, ends *tails) error {
		var resume toContinue
		defer func() { rc.claims.continueAll(ctx, &resume, rep) }()
		for _, row := range rows {
			row, err := rc.onBoot(ctx, row, ends, rep)
			if err != nil {
				return err
			}
			if row != nil {
				rc.sort(ctx, row, &resume, rep)
			}
		}
		return nil
	})
}

// sort collects an interrupted run if it is to be continued, or reports why it is not.
func (rc *Recovery) sort(ctx context.Context, row *store.Run, resume *toContinue, rep *Report) {
	switch {
	case row.Paused && (!row.CancelAsked || row.Parked() && !rc.mayFit(row)): // a cancel ends a pause
		rep.paused(row)
	case row.Code == history.CodeRecovered:
		rc.settle(ctx, row, rep)
	case rc.mayFit(row) && !rep.hasResumed(row.ID):
		rep.misfits = append(rep.misfits, row) // after what can go on without a replay
	case row.Code != "" && row.Code != store.CodeNotRegistered:
		rep.parked(row)
	case row.Code == store.CodeNotRegistered && rc.leftToAPerson(row):
		rc.settle(ctx, row, rep)
	case !rc.servable(row, rep):
	case row.Paused: // the loop takes it, to cancel it
	case row.NeedsPlace():
		rep.Deferred = append(rep.Deferred, row.ID) // it is in line again, and gets its place in turn
	default:
		resume.add(row)
	}
}

// leftToAPerson reports whether a run that lost its process while no executor had its
// code must not be continued by this engine, which has it.
func (rc *Recovery) leftToAPerson(row *store.Run) bool {
	return rc.o.Program.Has(row.Workflow, row.Version) && policyFor(row, rc.o.Program.OnBoot(row.Workflow, row.Version)) != Resume
}

// servable reports whether the code of a run is here; it reports a run without code as
// stuck. If no live executor serves a run's pinned version, the run was given back its
// initial version before this: that is E2 of package history.
func (rc *Recovery) servable(row *store.Run, rep *Report) bool {
	if rc.o.Program.Has(row.Workflow, row.Version) {
		return true
	}
	rep.stuck(stuck.Of(row, store.CodeNotRegistered, rc.o.Program.NotServed(row)))
	return false
}

// judgeRead waits until the histories of the runs that this call continues were read,
// and reports those that cannot be read as stuck. Reads that take longer than readingTime
// are left to the log.
func (rc *Recovery) judgeRead(ctx context.Context, rep *Report) {
	late := time.NewTimer(readingTime)
	defer late.Stop()
	unread := map[string]bool{}
	for _, r := range rep.continued {
		select {
		case <-r.Loaded:
			continue // what it meets from here on is a matter of its code
		case <-r.Ended:
		case <-late.C:
			late.Reset(0)
			continue
		case <-ctx.Done():
			return
		}
		code, reason, ok := r.Parked()
		if !ok {
			continue
		}
		unread[r.Row.ID] = true
		rep.stuck(stuck.Of(r.Row, code, reason))
	}
	rep.Resumed = slices.DeleteFunc(rep.Resumed, func(id string) bool { return unread[id] })
	rep.continued = nil
}

// readingTime limits how long Recover waits for the histories that it has begun to read.
const readingTime = 2 * time.Second
