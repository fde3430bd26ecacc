package claims

import (
	"context"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// An orphanPass goes through runs whose owners are gone, decides about each, and collects
// those that are to be executed here.
type orphanPass struct {
	o       *Options
	claims  *Claims
	trials  *trials
	repairs *repairs
	judge   judge
	rep     *Report

	resume toContinue
	try    []string       // suspects
	seen   int            // runs that were listed
	owed   map[string]int // runs that were left for lack of room here, by queue
	back   []func()       // give back the room that was set aside for resume
}

// Of the runs whose owner is gone, those that it executed are dealt with first: there may be any
// number of others.
var (
	cutOff  = []store.Status{store.Running, store.Resuming}
	resting = []store.Status{store.Pending, store.Waiting, store.Interrupted}
)

// all deals with all runs in these statuses whose owner is gone, slice by slice.
func (p *orphanPass) all(ctx context.Context, statuses ...store.Status) error {
	return p.o.eachSlice(ctx, store.Filter{Orphaned: true, Statuses: statuses}, "interrupted", func(rows []*store.Run, ends *tails) error {
		defer p.carryOut(ctx)
		p.seen += len(rows)
		p.judge.tails = ends
		for _, row := range rows {
			if err := p.take(ctx, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// keepPlaces ends a pass over all runs: the next places that become free here are for those that it
// has left. A pass that could not look at all of them keeps none.
func (p *orphanPass) keepPlaces(err error) {
	if err != nil {
		p.owed = nil
	}
	if p.claims.rooms.Owe(p.owed) {
		p.claims.Wake() // the loop may have left places that nobody needs now
	}
}

// one deals with a single run whose owner is gone.
func (p *orphanPass) one(ctx context.Context, row *store.Run) error {
	p.judge.tails = &tails{o: p.o}
	if err := p.take(ctx, row); err != nil {
		return err
	}
	p.carryOut(ctx)
	return nil
}

// carryOut begins to execute what was collected.
func (p *orphanPass) carryOut(ctx context.Context) {
	p.claims.continueAll(ctx, &p.resume, p.rep)
	p.rep.Suspects = append(p.rep.Suspects, p.try...)
	p.trials.hold(p.try)
	for _, giveBack := range p.back {
		giveBack()
	}
	p.resume, p.try, p.back = toContinue{}, nil, nil
}

// admit collects a run that is to be executed here, with add, unless its queue has no room for it
// in this process. Then the run stays as it is, for another executor, or until there is room.
func (p *orphanPass) admit(row *store.Run, add func(*store.Run)) {
	giveBack, ok := p.claims.admit(row)
	if !ok {
		p.rep.Deferred = append(p.rep.Deferred, row.ID)
		if p.owed == nil {
			p.owed = map[string]int{}
		}
		p.owed[row.Queue]++
		return
	}
	p.back = append(p.back, giveBack)
	add(row)
}

// leave leaves a run to the executors that take runs from its queue, and reports it if there is none.
func (p *orphanPass) leave(ctx context.Context, row *store.Run) error {
	if !row.Executing() {
		return nil
	}
	executors, err := p.o.executors(ctx)
	if live := stuck.LiveOf(executors, ""); err == nil && !live.Serves(row) {
		p.rep.stuck(live.OfQueue(row))
	}
	return err
}

// take deals with one run whose owner is gone, or collects it.
func (p *orphanPass) take(ctx context.Context, row *store.Run) error {
	rep := p.rep
	row, err := p.repairs.onBoot(ctx, row, p.judge.tails, rep)
	if row == nil {
		return err
	}
	if !p.claims.Serves(row.Queue) {
		return p.leave(ctx, row)
	}
	what, ends, err := p.judge.fate(ctx, row)
	if err != nil {
		// It is resumed, and the execution finds out what is wrong.
		p.o.Log.AboutRun(slog.LevelWarn, row, "durable: how the earlier owners of a run ended could not be read", slog.Any("error", err))
	}
	switch what {
	case fateResume:
		p.admit(row, p.resume.add)
	case fateTry:
		p.try = append(p.try, row.ID)
	case fateLeave:
		rep.Left = append(rep.Left, row.ID)
	case fateFail:
		if p.o.fail(ctx, row, CodeRestarted, p.o.BootReason, rep) {
			rep.Failed = append(rep.Failed, row.ID)
			p.o.Log.AboutRun(slog.LevelInfo, row, "durable: run marked failed", slog.String("reason", p.o.BootReason), p.o.Log.Verdict(ctx, row.ID, store.Failed))
		}
	case fateQuarantine:
		reason := ends.Reason()
		if p.o.fail(ctx, row, stuck.CodeQuarantined, reason, rep) {
			rep.Quarantine = append(rep.Quarantine, row.ID)
			rep.stuck(stuck.Of(row, stuck.CodeQuarantined, reason))
			p.o.Log.AboutRun(slog.LevelWarn, row, "durable: run quarantined", slog.String("reason", reason), p.o.Log.Verdict(ctx, row.ID, store.Failed))
		}
	case fateUnpause:
		if p.o.unpause(ctx, row, rep) {
			p.admit(row, p.resume.add)
		}
	case fateStuck:
		return p.o.park(ctx, row, rep)
	}
	return nil
}
