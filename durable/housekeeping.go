package durable

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/store"
)

// newHeart makes the heart of an engine: internal/heart sends its heartbeats and
// keeps its lease.
func newHeart(e *Engine) *heart.Heart {
	return heart.New(heart.Options{
		Store: e.store, Log: e.log.Logger,
		Executor: store.Executor{ID: e.id, Name: e.options.Name, Lease: e.options.Lease, Serves: e.program.defs.served},
		Late:     func(ctx context.Context) { e.metrics.LeaseLost(ctx) },
		Gap:      e.roster.loseTaken,
		Tend:     e.recovery.tend,
	})
}

// recoverReminder is how long after Open a missing Recover is worth a warning.
const recoverReminder = 10 * time.Second

// tend acts on a pulse, the store's answer to a heartbeat. Whatever else is to be
// checked with each heartbeat belongs here. A check that takes long gets a goroutine
// of its own, like recovery.loop, so that the next pulse does not wait.
func (rc *recovery) tend(p *store.Pulse) {
	e := rc.eng
	for _, m := range p.Mail {
		e.mailroom.counted(m.RunID, m.Inbox)
	}
	if e.claims.bulk.waits() || e.claims.later.waits() {
		nudge(e.claims.wake)
	}
	// The checks take turns, so that an engine with nothing to do hardly asks the
	// store: what it owns after every second heartbeat, who lives after every sixth,
	// which is two leases.
	if rc.turn = (rc.turn + 1) % 6; rc.turn == 0 {
		rc.unserved.look(e.life.loops)
	} else if rc.turn%2 == 1 {
		e.owned.audit()
	}
	recovered := e.claims.recovered.Load()
	if recovered && !e.roster.isClosing() {
		if len(p.Gone) > 0 {
			nudge(rc.orphans)
		}
		if p.Due {
			nudge(e.claims.wake)
		}
	}
	if !rc.reminded && !recovered && e.heart.Uptime() > recoverReminder {
		rc.reminded = true
		e.log.Warn("durable: Recover was not called since Open: interrupted and pending runs of earlier processes are left alone", "executor", e.id)
	}
}
