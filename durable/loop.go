package durable

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// The engine sleeps until something happens: a notice of the store, a due time,
// or the beat, which stands behind the other two. It never polls.

// beatLoop tells the store that this executor lives, and does nothing else:
// what a pulse asks for is done by tendLoop, however long the store takes for it.
func (e *Engine) beatLoop(ctx context.Context) {
	every := e.options.Lease / 3
	t := time.NewTimer(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.look:
		case <-t.C:
		}
		wait := every
		p, err := e.beat(ctx, false)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			e.log.Warn("durable: beat failed; other executors may take over when the lease has run out", "executor", e.id, "error", err)
			wait = min(every, time.Second)
		default:
			p.gap = p.Late || !e.lease.holds(time.Now())
			if !p.gap {
				e.lease.renew(p.sent)
			}
			e.pulses.add(p)
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

func (ps *pulses) take() *pulse {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.last
	ps.last = nil
	return p
}

// tendLoop does what the pulses ask for. A store that answers slowly delays
// this, and no beat.
func (e *Engine) tendLoop(ctx context.Context) {
	warned, skewed := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.pulses.ready:
		}
		if p := e.pulses.take(); p != nil {
			e.tend(ctx, p)
			if p.Skew > skewReminder && !skewed {
				skewed = true
				e.log.Warn("durable: the clock of another executor on this store is ahead of this process's clock; set both, or leases and timers are judged wrongly",
					"executor", e.id, "ahead_ms", millis(p.Skew))
			}
		}
		if !warned && !e.claims.recovered.Load() && time.Since(e.openedAt) > recoverReminder {
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
// place here; what takes long gets a goroutine of its own, like takeOverLoop,
// so that the next pulse is not kept waiting.
func (e *Engine) tend(ctx context.Context, p *pulse) {
	if p.Late {
		e.metrics.lost.Add(ctx, 1)
		e.log.Warn("durable: the lease had run out before this beat; runs that were taken meanwhile end here", "executor", e.id)
	}
	if p.gap {
		if err := e.loseTaken(ctx); err != nil {
			// Bodies go on waiting. The next beat finds the gap again.
			sleep(ctx, recheckPause)
			nudge(e.look)
		} else {
			e.lease.renew(p.sent)
		}
	}
	for _, m := range p.Mail {
		e.news(m.RunID, m.Inbox)
	}
	if e.claims.bulk.waits() || e.claims.later.waits() {
		nudge(e.claims.wake)
	}
	// The looks take turns, so that an engine with nothing to do hardly asks the
	// store: what it owns after every second beat, who lives after every sixth, which
	// is two leases.
	if e.turn = (e.turn + 1) % 6; e.turn == 0 {
		e.lookForStranded(e.loop)
	} else if e.turn%2 == 1 {
		e.auditOwned()
	}
	if e.claims.recovered.Load() && !e.roster.isClosing() {
		if len(p.Gone) > 0 {
			nudge(e.orphans)
		}
		if p.Due {
			nudge(e.claims.wake)
		}
	}
}

// recheckPause is how long after a failed look at its runs an executor beats again,
// to look once more.
const recheckPause = 50 * time.Millisecond

// loseTaken stops the executions of runs that somebody else has taken: their
// bodies learn of it at once and not at their next write, and none begins. After
// a nil error what is left was this executor's when it looked.
func (e *Engine) loseTaken(ctx context.Context) error {
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
				e.lose(id, row)
			}
		}
		ids = ids[n:]
	}
	return nil
}

// lose ends the execution of a run that is not ours, by its row, or that is gone,
// without one.
func (e *Engine) lose(id string, row *store.Run) {
	r := e.roster.active(id)
	switch {
	case r == nil:
		before := int64(math.MaxInt64)
		if row != nil {
			before = row.Epoch
		}
		e.dormitory.drop(id, before)
		e.watchers.notify([]string{id})
	case row == nil && !r.isLoaded(), row != nil && row.Epoch <= r.row.Epoch:
		// It is being created, or was claimed again here since.
	default:
		_ = r.die(&death{kind: deathLost, err: ErrLost})
	}
}

// noticeLoop passes on what the store tells.
func (e *Engine) noticeLoop(ctx context.Context, n store.Notifier) {
	for ctx.Err() == nil {
		err := n.Notify(ctx, func(notice store.Notice) {
			e.watchers.notify(notice.RunIDs)
			e.readMail(notice.RunIDs)
			if !e.claims.recovered.Load() {
				return
			}
			for _, id := range notice.RunIDs {
				if e.roster.listening(id) == nil && !e.dormitory.has(id) {
					nudge(e.claims.wake)
					return
				}
			}
			if len(notice.RunIDs) == 0 {
				nudge(e.claims.wake)
			}
		})
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return
		}
		e.log.Warn("durable: notices of the store ended; they are taken up again", "error", err)
		sleep(ctx, time.Second)
	}
}

// readMail looks into the inboxes of runs that are executed here; with no ids,
// the mail loop finds out which of them have mail.
func (e *Engine) readMail(ids []string) {
	if len(ids) == 0 {
		nudge(e.mail)
	}
	var here []string
	for _, id := range ids {
		// A run that is ending is told of by its own end.
		if r := e.roster.active(id); r != nil && !r.ending.Load() || e.dormitory.has(id) {
			here = append(here, id)
		}
	}
	if len(here) > 0 {
		// The notice may be of something else, such as what we have just written
		// ourselves: an inbox is not read, nor a run loaded, for nothing.
		e.rouseForMail(here...)
	}
}

// news lets a run of ours fetch its mail if it has not seen all there is.
func (e *Engine) news(id string, inbox int64) {
	if r := e.roster.active(id); r == nil || r.unloaded() {
		e.dormitory.rouseFor(id, inbox)
	} else if r.inbox.seen() < inbox {
		e.roster.background(r.fetchMail)
	}
}

// mailPause is the least time between two looks for mail, so that a store which
// is busy with other processes' runs does not spend its time answering.
const mailPause = 5 * time.Millisecond

// mailLoop asks the store, when a notice does not say for whom it is, which runs
// of this executor have mail.
func (e *Engine) mailLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.mail:
		}
		e.lookForMail(ctx, store.Filter{Owners: []string{e.id}, Mail: true, Limit: 500})
		sleep(ctx, mailPause)
	}
}

// lookForMail tells the runs that match of what they have not seen. What a
// failure leaves out, a beat finds, which is tried until the store answers.
func (e *Engine) lookForMail(ctx context.Context, f store.Filter) {
	for row, err := range e.runsOf(ctx, f) {
		if err != nil {
			if ctx.Err() == nil {
				nudge(e.look)
			}
			return
		}
		e.news(row.ID, row.Inbox)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
