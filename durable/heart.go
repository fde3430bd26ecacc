package durable

import (
	"context"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// A heart tells the store that this executor lives, and has done what the answers
// ask for. It knows until when the executor's lease holds and what time it is in
// the store. An engine never polls: it sleeps until a notice of the store comes, a time is
// due, or a beat stands in for the other two.
type heart struct {
	eng      *Engine
	now      chan struct{} // beat at once
	openedAt time.Time
	at       atomic.Int64 // when the store last took a beat, in nanoseconds since openedAt
	lease    lease
	clock    storeclock.Clock
	pulses   pulses // brought back by beats, to be acted on
	turn     int    // of the looks that follow the beats; used by tendLoop alone
}

func (h *heart) open(e *Engine) {
	h.eng, h.now, h.openedAt = e, make(chan struct{}, 1), time.Now()
	h.pulses.ready = make(chan struct{}, 1)
}

// age returns how long ago the store took the last beat.
func (h *heart) age() time.Duration { return time.Since(h.openedAt) - time.Duration(h.at.Load()) }

// A pulse is what a beat has brought back.
type pulse struct {
	store.Pulse
	sent time.Time
	// gap: the lease did not hold any more when the beat was answered, so others
	// may have taken runs of ours. The lease is renewed once that is known.
	gap bool
}

// send tells the store that this executor lives.
func (h *heart) send(ctx context.Context, leaving bool) (pulse, error) {
	e := h.eng
	name, _ := os.Hostname()
	before := time.Now()
	p, err := e.store.Beat(ctx, store.Executor{
		ID: e.id, Name: e.options.Name, Host: name, Boot: host.BootID(), PID: os.Getpid(),
		Lease: e.options.Lease, Serves: e.program.defs.served, Leaving: leaving,
	})
	if err == nil {
		after := time.Now()
		h.at.Store(int64(after.Sub(h.openedAt)))
		if p.Now != 0 {
			h.readClock(before, after, p.Now)
		}
	}
	return pulse{Pulse: p, sent: before}, err
}

// readClock takes in what the store's clock has said between two moments.
func (h *heart) readClock(before, after time.Time, now store.Time) {
	if set := h.clock.Observe(before, after, now); set.Abs() > time.Second && h.lease.anchor != (time.Time{}) {
		h.eng.log.Warn("durable: the store's clock was set; timers and deadlines follow it", "executor", h.eng.id, "by_ms", millis(set))
	}
}

// openingBeats is how many beats Open makes at most to learn the store's time:
// more than one only if the answers are slow.
const openingBeats = 3

// register makes the first beats.
func (h *heart) register(ctx context.Context) (p pulse, err error) {
	h.clock.Start(h.openedAt)
	for i := 0; i < openingBeats; i++ {
		began := time.Now()
		if p, err = h.send(ctx, false); err != nil {
			return p, fmt.Errorf("%w: registering the executor: %w", ErrUnavailable, err)
		}
		if time.Since(began) < 20*time.Millisecond {
			break
		}
	}
	return p, nil
}

// leaseEnded says that the executor stops by itself.
func (h *heart) leaseEnded() {
	h.eng.log.Warn("durable: the lease could not be renewed: no step body begins until the store takes a beat again, and those under way are told to stop", "executor", h.eng.id)
}

// loop sends beats and does nothing else: what a pulse asks for is done by tendLoop, however long the store takes for it.
func (h *heart) loop(ctx context.Context) {
	e := h.eng
	every := e.options.Lease / 3
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.now:
		case <-t.C:
		}
		wait := every
		p, err := h.send(ctx, false)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.log.Warn("durable: beat failed; other executors may take over when the lease has run out", "executor", e.id, "error", err)
			wait = min(every, time.Second)
		default:
			p.gap = p.Late || !h.lease.holds(time.Now())
			if !p.gap {
				h.lease.renew(p.sent)
			}
			h.pulses.add(p)
			if p.Next > p.Now && p.Now != 0 {
				wait = min(every, max(p.Next.Sub(p.Now), time.Millisecond))
			}
		}
		if !t.Stop() {
			select {
			case <-t.C:
			default:
			}
		}
		t.Reset(wait)
	}
}

// pulses are those that were brought back and not acted on yet, taken together.
type pulses struct {
	ready chan struct{} // there is one
	mu    sync.Mutex
	last  *pulse
}

// add replaces what waits by p, which is of a later moment. What p may not
// say again is kept.
func (ps *pulses) add(p pulse) {
	ps.mu.Lock()
	if ps.last != nil {
		p.Late, p.gap, p.Skew = p.Late || ps.last.Late, p.gap || ps.last.gap, max(p.Skew, ps.last.Skew)
	}
	ps.last = &p
	ps.mu.Unlock()
	select {
	case ps.ready <- struct{}{}:
	default:
	}
}

// next returns what waits, nil if nothing does.
func (ps *pulses) next() *pulse {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.last
	ps.last = nil
	return p
}

// tendLoop does what the pulses ask for. A store that answers slowly delays
// this, and no beat.
func (h *heart) tendLoop(ctx context.Context) {
	e := h.eng
	warned, skewed := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.pulses.ready:
		}
		if p := h.pulses.next(); p != nil {
			h.tend(ctx, p)
			if p.Skew > skewReminder && !skewed {
				skewed = true
				e.log.Warn("durable: the clock of another executor on this store is ahead of this process's clock; set both, or leases and timers are judged wrongly",
					"executor", e.id, "ahead_ms", millis(p.Skew))
			}
		}
		if !warned && !e.claims.recovered.Load() && time.Since(h.openedAt) > recoverReminder {
			warned = true
			e.log.Warn("durable: Recover was not called since Open: interrupted and pending runs of earlier processes are left alone", "executor", e.id)
		}
	}
}

// skewReminder is by how much clocks may differ without a word.
const skewReminder = time.Second

// recoverReminder is how long after Open a missing Recover is worth a warning.
const recoverReminder = 10 * time.Second

// tend acts on a pulse. Whatever else is to be looked at once a beat has its
// place here; what takes long gets a goroutine of its own, like recovery.loop,
// so that the next pulse is not kept waiting.
func (h *heart) tend(ctx context.Context, p *pulse) {
	e := h.eng
	if p.Late {
		e.metrics.lost.Add(ctx, 1)
		e.log.Warn("durable: the lease had run out before this beat; runs that were taken meanwhile end here", "executor", e.id)
	}
	if p.gap {
		if err := h.loseTaken(ctx); err != nil {
			// Bodies go on waiting. The next beat finds the gap again.
			sleep(ctx, recheckPause)
			nudge(h.now)
		} else {
			h.lease.renew(p.sent)
		}
	}
	for _, m := range p.Mail {
		e.mailroom.counted(m.RunID, m.Inbox)
	}
	if e.claims.bulk.waits() || e.claims.later.waits() {
		nudge(e.claims.wake)
	}
	// The looks take turns, so that an engine with nothing to do hardly asks the
	// store: what it owns after every second beat, who lives after every sixth, which
	// is two leases.
	if h.turn = (h.turn + 1) % 6; h.turn == 0 {
		e.recovery.unserved.look(e.life.loops)
	} else if h.turn%2 == 1 {
		e.owned.audit()
	}
	if e.claims.recovered.Load() && !e.roster.isClosing() {
		if len(p.Gone) > 0 {
			nudge(e.recovery.orphans)
		}
		if p.Due {
			nudge(e.claims.wake)
		}
	}
}

// recheckPause is how long after a failed look at its runs an executor beats again,
// to look once more.
const recheckPause = 50 * time.Millisecond

// loseTaken stops the executions of runs that another executor has taken: their
// bodies learn of it at once and not at their next write, and none begins. When it
// returns nil, this executor owned all that is left at the time of the look.
func (h *heart) loseTaken(ctx context.Context) error {
	e := h.eng
	ids := e.roster.ids()
	for len(ids) > 0 {
		n := min(len(ids), 200)
		page, err := e.store.List(ctx, store.Filter{IDs: ids[:n], Limit: n})
		if err != nil {
			e.log.Warn("durable: after a gap between two beats the runs of this executor could not be looked at; no step body begins until they are", "executor", e.id, "error", err)
			return err
		}
		ours := make(map[string]*store.Run, len(page.Runs))
		for i := range page.Runs {
			ours[page.Runs[i].ID] = &page.Runs[i]
		}
		for _, id := range ids[:n] {
			if row := ours[id]; row == nil || row.Owner != e.id {
				h.lose(id, row)
			}
		}
		ids = ids[n:]
	}
	return nil
}

// lose ends the execution of a run that is not ours, by its row, or that is gone,
// without one.
func (h *heart) lose(id string, row *store.Run) {
	e := h.eng
	before := int64(math.MaxInt64)
	if row != nil {
		before = row.Epoch
	}
	e.dormitory.drop(id, before) // first: what is loaded in this moment is found by what comes next
	r := e.roster.active(id)
	switch {
	case r == nil:
		e.watchers.notify([]string{id})
	case row == nil && !r.isLoaded(), row != nil && row.Epoch <= r.row.Epoch:
		// It is being created, or was claimed again here since.
	default:
		_ = r.die(&death{kind: deathLost, err: ErrLost})
	}
}

// awaitLease returns true once the lease holds, and false when one of the
// channels is closed before.
func (h *heart) awaitLease(gone, stopped <-chan struct{}) bool {
	for {
		next := h.lease.next()
		if h.lease.holds(time.Now()) {
			return true
		}
		nudge(h.now)
		select {
		case <-next:
		case <-gone:
			return false
		case <-stopped:
			return false
		}
	}
}
