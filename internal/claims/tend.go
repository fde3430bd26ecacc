package claims

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

// Loop recovers the runs of executors that were found gone, one take-over at a time.
func (rc *Recovery) Loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-rc.claims.orphans:
		}
		if rc.o.Heart.AwaitLease(ctx.Done(), nil) {
			rc.takeOver(ctx)
		}
	}
}

// takeOver recovers the runs of executors that were found gone while we run.
func (rc *Recovery) takeOver(ctx context.Context) {
	var rep Report
	pass := rc.orphanPass(&rep)
	err := pass.all(ctx, cutOff...)
	if err == nil && rc.mayRest.Swap(false) {
		leaves, before := rc.claims.sieve.leaves(), pass.seen
		if !leaves {
			err = pass.all(ctx, resting...)
		}
		if leaves || err != nil || pass.seen > before {
			rc.mayRest.Store(true)
		}
	}
	pass.keepPlaces(err)
	if err != nil {
		if ctx.Err() == nil {
			rc.o.Log.Warn("durable: taking over runs of a lost executor failed; the next beat tries again", "error", err)
		}
		return
	}
	if len(rep.Repaired) > 0 {
		rc.mayRest.Store(true)
	}
	deferred := rc.deferred
	rc.deferred = len(rep.Deferred)
	// Runs that stay in line are told once: each heartbeat finds them again.
	if n := len(rep.Resumed) + len(rep.Failed) + len(rep.Suspects) + len(rep.Quarantine); n > 0 || len(rep.Deferred) > deferred {
		rc.o.Log.Info("durable: took over runs of a lost executor", "resumed", len(rep.Resumed), "deferred", len(rep.Deferred), "failed", len(rep.Failed), "suspects", len(rep.Suspects), "quarantined", len(rep.Quarantine))
	}
}

// recoverReminder is how long after the engine was opened a missing Recover is worth a
// warning.
const recoverReminder = 10 * time.Second

// Tend does what a heartbeat asks for. Work that takes long gets a goroutine of its own,
// like Loop, so that the work of the next heartbeat does not wait.
func (rc *Recovery) Tend(p *store.Pulse) {
	c := rc.claims
	if c.bulk.waits() || c.later.waits() {
		c.Wake()
	}
	// The checks take turns, so that an executor with nothing to do hardly asks the
	// store: what it owns after every second heartbeat, who lives after every sixth,
	// which is two leases.
	if rc.turn = (rc.turn + 1) % 6; rc.turn == 0 {
		rc.mayRest.Store(true) // a process that was thought gone may have written since
	} else if rc.turn%2 == 1 {
		c.owned.audit()
	}
	if rc.turn == 0 && (c.Recovered() || len(rc.unserved.last()) > 0) || c.foreign.HasNew() {
		rc.unserved.look()
	}
	if c.Recovered() && !rc.o.Runs.Closing() {
		if !slices.Equal(p.Gone, rc.gone) {
			rc.gone = slices.Clone(p.Gone)
			rc.mayRest.Store(true)
		}
		if len(p.Gone) > 0 {
			nudge.Send(c.orphans)
		}
		if p.Due {
			c.Wake()
		}
	}
	if !rc.reminded && !c.Recovered() && rc.o.Heart.Uptime() > recoverReminder {
		rc.reminded = true
		rc.o.Log.Warn("durable: Recover was not called since Open: interrupted and pending runs of earlier processes are left alone", "executor", rc.o.Executor)
		if rc.o.Declares {
			rc.o.Log.Warn("durable: the queues and schedules that this program declares are not stored, and no schedule is fired here: Recover was not called", "executor", rc.o.Executor)
		}
	}
}

// EachUnserved calls report for each workflow and version with runs whose code no live
// executor has, and for each queue with runs that none who has their code takes from it. Of very
// many such queues, the rest are reported together, without a name.
func (rc *Recovery) EachUnserved(report func(workflow, version, queue string, runs int64)) {
	rc.unserved.last().Each(report)
}
