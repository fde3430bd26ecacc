package commit

import (
	"fmt"
	"slices"
	"time"
)

// settle deals with the answers to a batch. The mutex is held.
func (c *Committer) settle(flights []*Log, errs []error) {
	var stuck []*Log
	var why error
	for i, lg := range flights {
		f, err := lg.flight, errs[i]
		answer := f.sent.hear(err)
		switch {
		case len(f.writes) == 0: // given up
			c.land(lg, err)
		case answer == taken:
			c.land(lg, nil)
		case answer == closed:
			lg.owner.Lose(ErrClosed)
			c.land(lg, f.sent.unanswered(err, ErrClosed, ErrClosed))
		case answer == lost && f.change[0].Expect.Inbox != nil:
			c.refuse(lg, err)
		case answer == lost:
			lg.owner.Lose(fmt.Errorf("%w: %w", ErrLost, err))
			c.land(lg, ErrLost)
		case answer == refused:
			c.refuse(lg, err)
		case answer == failed && f.mayFail():
			lg.handBack()
			lg.owner.RowRefused()
			c.land(lg, fmt.Errorf("%w: %w", ErrUnavailable, err))
		default:
			stuck, why = append(stuck, lg), err
		}
	}
	if len(stuck) == 0 {
		if c.retries > 0 {
			c.log.Info("durable: the store is available again")
		}
		c.retries = 0
		return
	}
	c.again(stuck, why)
}

// refuse answers the writers of a flight whose change was refused. If it carried
// several writes, each is tried on its own, so that only the culprit fails. The
// mutex is held.
func (c *Committer) refuse(lg *Log, err error) {
	lg.handBack()
	lg.owner.RowRefused()
	if w := lg.flight.writes[0]; len(lg.flight.writes) == 1 {
		lg.count(w, -1)
		if w.stashed {
			lg.tear(&w.Events[0], err)
		}
		c.land(lg, err)
		return
	}
	for _, w := range lg.flight.writes {
		w.Alone, w.unsure = true, w.unsure || lg.flight.sent.unknown
	}
	lg.putBack()
	if c.stop.Err() != nil {
		lg.settlePending(errGaveUp) // there will be no further attempt
		return
	}
	c.call(c.enqueue(lg))
}

// land ends a flight. The mutex is held.
func (c *Committer) land(lg *Log, err error) {
	f := lg.flight
	lg.flight = nil
	if err == nil {
		lg.owner.Landed(&f.change[0])
	}
	f.settle(err)
	if err == nil && !f.sent.unknown {
		c.flights.landed(f)
	}
	if over := lg.owner.Lost(); over != nil {
		lg.settlePending(over)
		return
	}
	if c.stop.Err() != nil {
		lg.settlePending(errGaveUp) // there will be no further attempt
		return
	}
	if len(lg.pending) > 0 && lg.queued == nil {
		c.call(c.enqueue(lg))
	}
}

// again resends, after a pause, flights whose outcome is unknown or that the store
// could not accept. The mutex is held.
func (c *Committer) again(stuck []*Log, why error) {
	if c.retries == 0 {
		c.log.Warn("durable: the store does not take a commit; it is tried again until it does", "error", why, "runs", len(stuck))
	}
	pause := min(5*time.Millisecond<<min(c.retries, 10), 2*time.Second)
	c.retries++
	logs := append([]*Log{}, stuck...)
	c.timers.Go(func() {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.stop.Done():
		}
		c.mu.Lock()
		if c.stop.Err() != nil {
			gaveUp := fmt.Errorf("%w: %w", ErrUnavailable, why)
			for _, lg := range logs {
				c.land(lg, lg.flight.sent.unanswered(gaveUp, ErrClosed, gaveUp))
			}
			c.mu.Unlock()
			return
		}
		for _, lg := range logs {
			lg.queued = c.laneOf(lg)
			lg.queued.queue = slices.Insert(lg.queued.queue, 0, lg)
		}
		for _, ln := range c.lanes() {
			if len(ln.leaders) > 0 {
				c.watch(ln, slowAnswer)
			} else if len(ln.queue) > 0 {
				c.leadBeside(ln.takeLead())
			}
		}
		c.mu.Unlock()
	})
}

// errGaveUp is the answer to a write that the store did not accept before the
// engine was closed.
var errGaveUp = fmt.Errorf("%w: it took nothing more before the engine was closed", ErrUnavailable)

// Abandon gives up what is not committed, once stop has ended: every caller that
// waits for the committer gets an answer, except the leader of a batch that the
// store does not answer.
func (c *Committer) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ln := range c.lanes() {
		if ln.relief != nil {
			ln.relief.Stop()
		}
		for _, lg := range ln.queue {
			lg.queued = nil
			if lg.flight != nil {
				c.land(lg, lg.flight.sent.unanswered(errGaveUp, ErrClosed, errGaveUp))
			} else {
				lg.settlePending(errGaveUp)
			}
		}
		ln.queue = nil
	}
	for _, lg := range c.out() {
		f := lg.flight
		f.sent.unknown = true
		f.settle(f.sent.unanswered(errGaveUp, ErrClosed, errGaveUp))
		lg.settlePending(errGaveUp)
	}
}
