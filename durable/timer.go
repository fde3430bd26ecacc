package durable

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// MaxSleep limits a sleep or a time limit: a hundred years.
const MaxSleep = 100 * 365 * 24 * time.Hour

// Sleep waits for d. It records the moment at which it ends before it begins to wait: a restart
// does not begin the sleep again, and after a restart later than that moment it does not wait
// at all. It costs one write. d must not be negative, as what is left until a moment may be:
// SleepUntil takes that. With a d of zero it returns at once and records only the call.
//
// Sleep refuses a context to which the workflow has given a deadline of its own
// (context.WithTimeout): a later process would not see the same time pass. The run is
// parked (CodeUnrecorded) until the code is mended. Use a shorter d, Deadline for the
// whole run, or First over branches instead. Cancelling a context of the workflow's own
// does not cut the sleep short.
//
// Errors: ErrInvalid for a d below zero or above MaxSleep; those of every durable call (package
// documentation, Errors).
func Sleep(ctx context.Context, d time.Duration) error {
	s, err := scopeOf(ctx, "sleep")
	if err != nil {
		return err
	}
	if d < 0 || d > MaxSleep {
		return fmt.Errorf("durable: Sleep: %s is not between 0 and %s; SleepUntil takes a moment that may have passed: %w", d, MaxSleep, ErrInvalid)
	}
	return sleepIn(ctx, s, d, func() store.Time {
		// A run that comes from an executor whose clock was a little ahead sleeps
		// that much longer, so that Now does not show a shorter sleep. It does not wait
		// for a clock that was far ahead.
		now := s.run.eng.now()
		return max(now, min(s.lastAt, now.Add(storeclock.MaxSlew))).Add(d)
	})
}

// SleepUntil waits until t by the store's clock. If t has passed, it does not wait. See
// Sleep.
//
// Errors are those of Sleep.
func SleepUntil(ctx context.Context, t time.Time) error {
	s, err := scopeOf(ctx, "sleep")
	if err != nil {
		return err
	}
	if t.IsZero() || t.After(s.run.eng.now().Time().Add(MaxSleep)) {
		return fmt.Errorf("durable: SleepUntil: %s is not a moment within the next %s: %w", t, MaxSleep, ErrInvalid)
	}
	return sleepIn(ctx, s, 0, func() store.Time { return max(store.TimeOf(t), 1) })
}

// sleepIn waits, as a call of s, until a moment, and at least for least if the wait
// begins now.
func sleepIn(ctx context.Context, s *scope, least time.Duration, until func() store.Time) error {
	c := call{limited: s.limits(ctx)}
	if err := s.begin(&c, "sleep", history.CallTimer); err != nil {
		return err
	}
	defer s.end()
	r := s.run
	if c.done() {
		s.lastAt = c.rec.LastAt
		return nil
	}
	if err := s.stopped(); err != nil {
		return err
	}
	if err := r.rehearsal.frontier(); err != nil {
		return err
	}
	var at, began store.Time
	if c.opened() {
		at, began = c.rec.Until, c.rec.OpenedAt
	} else {
		s.awaitClock()
		at, began = until(), r.eng.now()
	}
	p := &parking{until: at, own: goroutine.Ours(), unsaid: !c.opened()}
	if least > 0 && !c.opened() {
		p.least = time.Now().Add(least)
	}
	r.waits.park(p)
	var err error
	if c.opened() {
		err = r.waits.sync()
	} else {
		_, err = s.recordWith(&c, store.Event{Type: store.TimerSet, Data: history.Encode(&history.Timer{Until: at})}, p.said())
	}
	if err == nil {
		_, err = s.waitFor(p, nil)
	}
	r.waits.unpark(p)
	if err != nil {
		return err
	}
	r.eng.metrics.SleepEnded(r.ctx, r.row.Workflow, at)
	s.trace.Waited(r.ctx, c.key, telemetry.Wait{Name: "sleep", Began: began, Outcome: telemetry.OutcomeOK})
	// The end needs no write of its own: if a crash loses it, a replay sees that the time
	// has come.
	s.stash(&c, store.Event{Type: store.TimerFired})
	return nil
}

// awaitClock precedes the first attempt of a step, from which the deadline of all attempts is counted.
func (st *step) awaitClock() {
	if st.policy.Deadline > 0 && st.start == 0 {
		st.call.scope.awaitClock()
	}
}

// awaitClock precedes what computes a moment that is recorded, so that it lies as far ahead as was
// asked, also for a process on another machine.
func (s *scope) awaitClock() {
	stopped := s.run.stop.done
	if s.undo {
		stopped = nil
	}
	s.run.eng.heart.AwaitClock(s.run.gone, stopped)
}
