package commit

import (
	"context"
	"time"
)

// isAlone reports whether w, which has its place, is all that there is to commit, and nothing
// but a few small events. It is not if its batch would wait for others, because they shared the
// last one (see gather). The mutex is held.
func (c *Committer) isAlone(lg *Log, w *Write) bool {
	ln := &c.small
	return c.late == nil && len(ln.leaders) == 0 && len(ln.queue) == 0 && (ln.spare == nil || ln.spare.shared <= 2) &&
		lg.queued == nil && lg.flight == nil && len(lg.pending) == 0 && w.bytes < promptSize && w.plain()
}

// commitAlone leads a batch of w alone, which passes through no queue. While it is in flight
// it is a batch like any other: it is watched, relieved and abandoned. early: doEarly did
// something. The mutex is held on entry and free on return.
func (c *Committer) commitAlone(ctx context.Context, lg *Log, w *Write, early bool) error {
	l, f := c.small.takeLead(), c.flights.next()
	if !early {
		l.now = c.since(w.Clock)
	}
	f.writes, f.again, f.sent = append(f.writes[:0], w), false, sent{}
	lg.flight = f
	l.flights, l.shared = append(l.flights[:0], lg), 1
	c.mu.Unlock()
	batch := lg.build()
	began := l.begin(c.anchor)
	errs := c.store.Commit(context.Background(), batch)
	ended := time.Since(c.anchor)
	if len(errs) > 0 {
		c.measure(ended-began, errs)
	}
	c.mu.Lock()
	c.paces.add(ended, ended-began)
	l.sentAt.Store(0)
	if errs[0] == nil && c.stillAlone(lg, l) {
		lg.flight = nil
		lg.owner.Landed(&f.change[0])
		w.settle(nil)
		f.writes[0] = nil
		f.writes = f.writes[:0]
		c.flights.landed(f)
		l.lane.end(l)
		c.mu.Unlock()
		return nil
	}
	c.settle(l.flights, errs)
	if over, err := c.led(ctx, w, l); over {
		return err
	}
	return c.lead(ctx, w, l)
}

// stillAlone reports whether nothing has happened while the write of lg was in flight that
// anybody but its caller must learn of. Nobody has abandoned it before stop has ended. The mutex
// is held.
func (c *Committer) stillAlone(lg *Log, l *leading) bool {
	return !l.relieved && c.retries == 0 && len(lg.pending) == 0 && len(l.lane.queue) == 0 &&
		lg.owner.Lost() == nil && c.stop.Err() == nil
}
