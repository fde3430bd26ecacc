package commit

import (
	"context"
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
func (c *Committer) watch(wait time.Duration) {
	switch {
	case c.watching || c.stop.Err() != nil:
		return
	case c.relief == nil:
		c.relief = time.AfterFunc(wait, c.relieve)
	default:
		c.relief.Reset(wait)
	}
	c.watching = true
}

// relieve replaces a leader whose batch the store has not answered for long, if
// there is something to commit. Each run has at most one flight, so no write of a
// run overtakes an unanswered one.
func (c *Committer) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = false
	l := c.leader
	if l == nil || len(c.queue) == 0 || c.stop.Err() != nil {
		return
	}
	sentAt := l.sentAt.Load()
	out := time.Since(c.anchor) - time.Duration(sentAt)
	switch {
	case sentAt == 0, len(c.relieved) == maxRelieved:
		c.watch(slowAnswer)
		return
	case out < slowAnswer:
		c.watch(slowAnswer - max(out, 0))
		return
	}
	if len(c.relieved) == 0 {
		c.log.Warn("durable: the store does not answer a commit; runs that are not part of it go on beside it", "runs", len(l.flights))
	}
	l.relieved = true
	c.relieved = append(c.relieved, l)
	c.takeLead()
	c.leadBeside()
	c.watch(slowAnswer)
}

// leadBeside makes the leader lead on its own goroutine, because a store that does
// not answer must not block a caller whose context ends. One such goroutine stays
// for the next time: it has the stack that a commit needs, and growing a new one
// takes longer than the rest of a Start on a fast disk. The mutex is held.
func (c *Committer) leadBeside() {
	if c.standby {
		c.standby = false
		c.wake <- struct{}{}
		return
	}
	c.timers.Go(func() {
		for led := true; led; led = c.standBy() {
			c.mu.Lock()
			_ = c.lead(context.Background(), nil, c.leader)
		}
	})
}

// standBy waits until there is something to lead. It returns false at once if
// another goroutine is already waiting, and when the engine gives up.
func (c *Committer) standBy() bool {
	c.mu.Lock()
	if c.standby {
		c.mu.Unlock()
		return false
	}
	c.standby = true
	c.mu.Unlock()
	select {
	case <-c.wake:
		return true
	case <-c.stop.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standby {
		c.standby = false
		return false
	}
	<-c.wake // it was called at the same moment
	return true
}

// afterRelief ends a leader that another one has replaced. The mutex is held on
// entry and free on return.
func (c *Committer) afterRelief(ctx context.Context, w *Write, l *leading) error {
	c.relieved = slices.DeleteFunc(c.relieved, func(r *leading) bool { return r == l })
	if c.leader == nil && len(c.queue) > 0 {
		c.takeLead()
		c.handOver()
	}
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
	leaders := slices.Clone(c.relieved)
	if c.leader != nil {
		leaders = append(leaders, c.leader)
	}
	for _, l := range leaders {
		if l.sentAt.Load() != 0 {
			logs = append(logs, l.flights...)
		}
	}
	return append(logs, c.held...)
}

// Unanswered returns the ids of the runs with a change that the store has not
// answered, sorted.
func (c *Committer) Unanswered() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, lg := range c.out() {
		if f := lg.flight; len(f.writes) == 0 || f.writes[0].turn == nil { // a hold has sent nothing yet
			ids = append(ids, lg.id)
		}
	}
	slices.Sort(ids)
	return ids
}
