package commit

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// largeSize is the size in bytes from which on a write goes through the lane of the
// large ones, so that the small ones do not wait until a batch with it is durable.
// largeBatch bounds the batches there: on a store with one writer a small write waits
// for at most one of them.
const (
	largeSize  = 64 << 10
	largeBatch = 256 << 10
)

// leastBeside is how many runs must have something to commit before a batch is sent
// beside one in flight. Smaller batches cost the store more than the wait.
const leastBeside = 16

// A lane has batches of its own. Each run is in one lane at a time and has one change in
// flight, whatever the lane, so nothing of a run overtakes anything else of it. The
// committer's mutex guards a lane.
type lane struct {
	most  int // batches in flight at a time
	bytes int // of a batch, unless it is of one run

	queue   []*Log     // logs with something to commit and nothing in flight
	leaders []*leading // as long as the queue has any logs, there is one
	spare   *leading   // memory of one that has ended

	relief   *time.Timer // runs relieve; made when it is first needed
	watching bool        // relief is set
}

// wantsLeader reports whether a further leader is to commit what is in the queue.
func (ln *lane) wantsLeader() bool {
	n := len(ln.leaders)
	return len(ln.queue) > 0 && (n == 0 || n < ln.most && len(ln.queue) >= leastBeside)
}

// takeLead makes the caller a leader.
func (ln *lane) takeLead() *leading {
	l := ln.spare
	if ln.spare = nil; l == nil {
		l = &leading{lane: ln, ids: map[string]struct{}{}}
	}
	l.now = 0
	ln.leaders = append(ln.leaders, l)
	return l
}

// end says that l leads no more.
func (ln *lane) end(l *leading) {
	if len(ln.leaders) == 1 && ln.leaders[0] == l {
		ln.leaders = ln.leaders[:0]
	} else {
		ln.leaders = slices.DeleteFunc(ln.leaders, func(o *leading) bool { return o == l })
	}
	ln.spare = l
}

// leading is one leader, from batch to batch.
type leading struct {
	lane     *lane
	sentAt   atomic.Int64 // when the batch was sent to the store, in nanoseconds since the anchor; 0: it is not in flight
	relieved bool         // another leader has replaced it
	of       string       // the run whose goroutine leads; empty: that of no run
	// now is when the leader took the lead, since the anchor, if its write says so: what it
	// leads at once is sent at that time. 0: the clock has to be read.
	now time.Duration

	shared int // how many runs shared the last batch, or are to share this one

	// Used by the leader only.
	batch   []store.Change
	flights []*Log
	ids     map[string]struct{} // of the runs in flights, unless there is only one
}

// forget lets go of the runs and the changes of a batch that has these answers: each may keep much, and
// a batch as large may not come again.
func (l *leading) forget(errs []error) {
	clear(l.flights)
	l.flights = l.flights[:0]
	if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, store.ErrUnknown) }) {
		l.batch = nil // the store may still be reading it
		return
	}
	clear(l.batch)
	l.batch = l.batch[:0]
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

// inFlight returns the leader whose batch was sent first, and when the last batch was, since the
// anchor; nil if a leader has not sent its batch yet.
func (ln *lane) inFlight() (first *leading, latest time.Duration) {
	earliest := int64(math.MaxInt64)
	for _, l := range ln.leaders {
		at := l.sentAt.Load()
		if at == 0 {
			return nil, 0
		}
		if at < earliest {
			first, earliest = l, at
		}
		latest = max(latest, time.Duration(at))
	}
	return first, latest
}
