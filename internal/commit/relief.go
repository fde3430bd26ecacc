package commit

import (
	"context"
	"iter"
	"slices"
	"time"
)

// A batch that is in flight for longer than slowAnswer does not hold up the runs
// that are not in it: at most maxRelieved others are sent beside it.
const (
	slowAnswer  = time.Second
	maxRelieved = 4
)

// watch makes sure that a leader that gets no answer is relieved. The mutex is held.
func (c *Committer) watch(ln *lane, wait time.Duration) {
	switch {
	case ln.watching || c.stop.Err() != nil:
		return
	case ln.relief == nil:
		ln.relief = time.AfterFunc(wait, func() { c.relieve(ln) })
	default:
		ln.relief.Reset(wait)
	}
	ln.watching = true
}

// relieve replaces the leader whose batch the store has not answered for longest, if all
// others wait for an answer, too, and there is something to commit. Each run has at most one
// flight, so no write of a run overtakes an unanswered one.
func (c *Committer) relieve(ln *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ln.watching = false
	if len(ln.leaders) == 0 || len(ln.queue) == 0 || c.stop.Err() != nil {
		return
	}
	l, latest := ln.inFlight()
	out := time.Since(c.anchor) - latest
	switch {
	case l == nil, len(c.relieved) == maxRelieved:
		c.watch(ln, slowAnswer)
		return
	case out < slowAnswer:
		c.watch(ln, slowAnswer-max(out, 0))
		return
	}
	if len(c.relieved) == 0 {
		c.log.Warn("durable: the store does not answer a commit; runs that are not part of it go on beside it", "runs", len(l.flights))
	}
	l.relieved = true
	c.relieved = append(c.relieved, l)
	ln.end(l)
	ln.spare = nil // l uses its memory until it has an answer
	c.leadBeside(ln.takeLead())
	c.watch(ln, slowAnswer)
}

// leadBeside makes l lead on its own goroutine, because a store that does
// not answer must not block a caller whose context ends. One such goroutine stays
// for the next time: it has the stack that a commit needs, and growing a new one
// takes longer than the rest of a Start on a fast disk. The mutex is held.
func (c *Committer) leadBeside(l *leading) {
	if c.standby {
		c.standby = false
		c.wake <- l
		return
	}
	c.timers.Go(func() {
		for ; l != nil; l = c.standBy() {
			c.mu.Lock()
			_ = c.lead(context.Background(), nil, l)
		}
	})
}

// standBy waits until there is something to lead. It returns nil at once if
// another goroutine is already waiting, and when the engine gives up.
func (c *Committer) standBy() *leading {
	c.mu.Lock()
	if c.standby {
		c.mu.Unlock()
		return nil
	}
	c.standby = true
	c.mu.Unlock()
	select {
	case l := <-c.wake:
		return l
	case <-c.stop.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standby {
		c.standby = false
		return nil
	}
	return <-c.wake // it was called at the same moment
}

// afterRelief ends a leader that another one has replaced. The mutex is held on
// entry and free on return.
func (c *Committer) afterRelief(ctx context.Context, w *Write, l *leading) error {
	c.relieved = slices.DeleteFunc(c.relieved, func(r *leading) bool { return r == l })
	c.call(l.lane)
	if w == nil || w.settled {
		defer c.mu.Unlock()
		if w == nil {
			return nil
		}
		return w.err
	}
	return c.follow(ctx, w)
}

// out returns the logs with a change that the store has not answered. The mutex is
// held.
func (c *Committer) out() (logs []*Log) {
	for l := range c.waiting() {
		logs = append(logs, l.flights...)
	}
	return append(logs, c.held...)
}

// waiting yields the leaders whose batch the store has not answered. The mutex is held.
func (c *Committer) waiting() iter.Seq[*leading] {
	return func(yield func(*leading) bool) {
		for _, l := range slices.Concat(c.relieved, c.small.leaders, c.large.leaders) {
			if l.sentAt.Load() != 0 && !yield(l) {
				return
			}
		}
	}
}

// Unanswered returns the ids of the runs with a change that the store has not
// answered, sorted, and of those whose goroutine waits for the answer to others' changes.
func (c *Committer) Unanswered() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lg := range c.out() {
		if f := lg.flight; len(f.writes) == 0 || f.writes[0].turn == nil { // a hold has sent nothing yet
			ids = append(ids, lg.id)
		}
	}
	for l := range c.waiting() {
		if l.of != "" {
			ids = append(ids, l.of)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
