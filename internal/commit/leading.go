package commit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// leading is one leader, from batch to batch.
type leading struct {
	sentAt   atomic.Int64 // when the batch was sent to the store, in nanoseconds since the anchor; 0: it is not in flight
	relieved bool         // another leader has replaced it
	// now is when the leader took the lead, since the anchor, if its write says so: what it
	// leads at once is sent at that time. 0: the clock has to be read.
	now time.Duration

	// Used by the leader only.
	batch   []store.Change
	flights []*Log
	ids     map[string]struct{} // of the runs in flights, unless there is only one
}

// takeLead makes the caller the leader. The mutex is held.
func (c *Committer) takeLead() *leading {
	l := c.spare
	if c.spare = nil; l == nil {
		l = &leading{ids: map[string]struct{}{}}
	}
	l.now = 0
	c.leader = l
	return l
}

// CommitNow is Commit if that begins at once: nothing is being committed, and nothing of lg waits.
// Otherwise it does nothing, and began is false.
func (c *Committer) CommitNow(lg *Log, w *Write) (began bool, err error) {
	c.mu.Lock()
	if c.leader != nil || lg.Busy() || lg.StashesLocked() || len(lg.early) > 0 {
		c.mu.Unlock()
		return false, nil
	}
	if err := c.admit(lg, w); err != nil {
		c.mu.Unlock()
		return false, err
	}
	return true, c.lead(context.Background(), w, c.takeLead())
}

// Idle reports whether nothing is being committed.
func (c *Committer) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader == nil
}

// build returns the changes of the flights.
func (l *leading) build() []store.Change {
	if len(l.flights) == 1 {
		return l.flights[0].build() // where it is: a change has 200 bytes
	}
	for i, lg := range l.flights {
		l.batch[i] = lg.build()[0]
	}
	return l.batch
}

// begin notes that the batch is sent now, and returns when that is. The changes are built:
// from then on Abandon may answer their callers, who use their writes for something else.
func (l *leading) begin(anchor time.Time) (began time.Duration) {
	if began = l.now; began == 0 {
		began = time.Since(anchor)
	}
	l.now = 0
	l.sentAt.Store(max(int64(began), 1))
	return began
}
