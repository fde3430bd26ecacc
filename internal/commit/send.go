package commit

import (
	"context"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// send commits the next batch of the lane, if there is one. The mutex is held on entry and on
// return.
func (c *Committer) send(l *leading) {
	if c.late != nil {
		c.sendLate(l)
		return
	}
	c.form(l)
	if len(l.flights) == 0 {
		return
	}
	c.mu.Unlock()
	batch := l.build()
	began := l.begin(c.anchor)
	c.hear(l, began, c.store.Commit(context.Background(), batch))
}

// sendLate is send for a store that takes the batch when it can write it: what comes while it
// waits for other writers still goes with it.
func (c *Committer) sendLate(l *leading) {
	l.flights = l.flights[:0]
	if len(l.lane.queue) == 0 {
		return
	}
	c.mu.Unlock()
	began := l.begin(c.anchor)
	errs := c.late.CommitLate(context.Background(), func() []store.Change {
		c.mu.Lock()
		l.sentAt.Store(0) // until the batch is complete
		c.form(l)
		l.shared = max(l.shared, len(l.flights))
		c.mu.Unlock()
		if len(l.flights) == 0 {
			return nil // the engine has given up, or a leader that has replaced this one was faster
		}
		batch := l.build()
		l.sentAt.Store(max(int64(began), 1))
		return batch
	})
	c.hear(l, began, errs)
}

// hear settles the batch of l, which the store was given at began, by its answers. It locks the
// mutex.
func (c *Committer) hear(l *leading, began time.Duration, errs []error) {
	ended := time.Since(c.anchor)
	if len(errs) > 0 {
		c.measure(ended-began, errs)
	}
	c.mu.Lock()
	c.paces.add(ended, ended-began)
	l.sentAt.Store(0)
	c.settle(l.flights, errs)
	l.forget(errs)
}

// gather lets the callers of the last batch come back before the next batch is
// formed, as long as fewer than half of them are back. It yields the processor,
// which takes no time when no goroutine is ready. The mutex is held.
func (c *Committer) gather(l *leading) {
	for range 4 {
		if 2*len(l.lane.queue) >= l.shared {
			break
		}
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	l.shared = len(l.lane.queue)
}

// form takes the next batch off the queue: at most one flight per id, bounded by
// count and bytes. The mutex is held.
func (c *Committer) form(l *leading) {
	ln := l.lane
	l.flights, l.batch = l.flights[:0], l.batch[:0]
	if len(ln.queue) == 1 && ln.queue[0].flight == nil && len(ln.queue[0].pending) == 1 {
		// The usual case of a single run: there is nothing to measure or sort.
		c.formOfOne(l)
		return
	}
	size, full := 0, false
	clear(l.ids)
	kept := ln.queue[:0]
	for _, lg := range ln.queue {
		if full = full || len(l.flights) == c.limits.Changes; full {
			kept = append(kept, lg)
			continue
		}
		// An id that is started again while its last execution makes way has two
		// logs; a batch takes one of them.
		if _, twice := l.ids[lg.id]; twice {
			kept = append(kept, lg)
			continue
		}
		f := lg.flight
		if f == nil {
			f = lg.takeOff(c.flights.next())
		}
		for _, w := range f.writes {
			size += w.bytes
		}
		if size > ln.bytes && len(l.flights) > 0 {
			if !f.again {
				lg.putBack()
			}
			kept, full = append(kept, lg), true
			continue
		}
		lg.queued = nil
		l.ids[lg.id] = struct{}{}
		l.flights = append(l.flights, lg)
		l.batch = append(l.batch, store.Change{})
	}
	clear(ln.queue[len(kept):])
	ln.queue = kept
}

// formOfOne takes the only run of the queue off it.
func (c *Committer) formOfOne(l *leading) {
	lg := l.lane.queue[0]
	l.lane.queue[0], l.lane.queue = nil, l.lane.queue[:0]
	lg.takeOff(c.flights.next())
	lg.queued = nil
	l.flights = append(l.flights, lg)
}
