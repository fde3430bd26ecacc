// Package storeclock estimates a store's clock between two answers of the store.
package storeclock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Clock derives the store's time from our monotonic clock, so setting the clock of
// this machine does not affect it. Each beat measures how far the store is ahead, to
// within the beat's round trip, because the answer was made somewhere in between. The
// Clock combines the readings of several beats.
//
// It is corrected only when it is proved wrong, and never goes back: when it is behind
// it jumps to the earliest possible time, and when it is ahead it runs at half speed
// until it is not. Only when the store's clock was set back by more than MaxSlew does it
// follow at once, because slewing would take hours.
//
//	readings of the offset       was   is
//	[100, 110]                   -     105
//	[ 90, 200]                   105   105   a slow beat says nothing new
//	[107, 109]                   105   107
//	[ 98,  99]                   107   107, then slowly 99: the first readings are forgotten
type Clock struct {
	// Skew is set before Start, by tests alone.
	Skew Skew

	anchor time.Time
	pace   atomic.Pointer[pace]

	mu       sync.Mutex
	recent   []reading     // oldest first
	observed chan struct{} // closed with the next reading
	leap     context.Context
	leapt    context.CancelFunc // ends leap
}

// reading is one measurement: how many microseconds the store is ahead of our clock, at
// least and at most, at a moment of our clock.
type reading struct {
	low, high, at int64
}

// pace says how to derive the store's time from ours, until the next reading. It is
// immutable. All in microseconds; our clock counts from the anchor.
type pace struct {
	from   int64 // our clock when it was made
	offset int64 // then
	excess int64 // how much of the offset is too much; reduced at half speed
	low    int64 // the least that the offset can be
	// ahead is how far our wall clock was ahead of our monotonic one when the reading was asked for,
	// if read.
	ahead int64
	read  bool // there was a reading
	// unsteady: a recent reading contradicted those before it. Our clock and the store's
	// run at different rates, so low is not trusted for long.
	unsteady int
}

const (
	// maxReadings is how many measurements are kept: with the usual lease they cover
	// more than a minute.
	maxReadings = 8
	// driftOneIn bounds how far two sound clocks drift apart: by at most one part in
	// 2,000 of the elapsed time, the limit of NTP.
	driftOneIn = 2000
	// MaxSlew is the largest error that is corrected by slowing the clock down instead
	// of setting it back.
	MaxSlew = 10 * time.Second
	// apart is by how much, in microseconds, wall clock and monotonic clock may differ that were read
	// one after the other.
	apart = 2000
	// leastLeap is by how much the clock must have been behind for those to be told that wait for a time.
	leastLeap = 100 * time.Millisecond
	// steadyAgain is how many readings in a row must agree after one did not.
	steadyAgain = 4
)

// Start gives the clock its anchor: our clock counts from there.
func (c *Clock) Start(t time.Time) {
	// A whole microsecond, like the store's times, so that both truncate in the same
	// way.
	c.anchor = t.Add(-time.Duration(t.Nanosecond() % 1000))
	c.observed = make(chan struct{})
	c.leap, c.leapt = context.WithCancel(context.Background())
	wall := c.Skew.Wall(c.anchor) / 1000
	c.pace.Store(&pace{offset: wall, low: wall})
}

func (c *Clock) ours(t time.Time) int64 { return c.Skew.Between(c.anchor, t).Microseconds() }

// At returns the store's time at a moment of ours.
func (c *Clock) At(t time.Time) store.Time {
	p, now := c.pace.Load(), c.ours(t)
	return store.Time(now + p.offset - min(p.excess, max(now-p.from, 0)/2))
}

// Surely returns a time that the store's own clock has certainly reached.
func (c *Clock) Surely(t time.Time) store.Time {
	p, now := c.pace.Load(), c.ours(t)
	if p.unsteady > 0 {
		now -= max(now-p.from, 0) / 2
	}
	return store.Time(now + p.low)
}

// Doubtful reports whether the store must be asked before its clock is known to within a
// few milliseconds.
func (c *Clock) Doubtful(t time.Time) bool {
	return c.At(t).Sub(c.Surely(t)) > 2*time.Millisecond
}

// Outdated reports whether the wall clock and the monotonic clock of this machine have gone apart
// since the last reading: the machine was suspended, which stops the monotonic clock, or its wall clock
// was set. In the first case the estimate is behind by as much, until the store is asked.
func (c *Clock) Outdated(t time.Time) bool {
	p, now := c.pace.Load(), c.ours(t)
	by := c.ahead(t) - p.ahead
	return p.read && max(by, -by) > apart+max(now-p.from, 0)/driftOneIn
}

// ahead returns how far our wall clock is ahead of our monotonic one at a moment.
func (c *Clock) ahead(t time.Time) int64 { return c.Skew.Wall(t)/1000 - c.ours(t) }

// Next returns a channel that is closed with the next reading.
func (c *Clock) Next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.observed
}

// Leap returns a context that ends once a reading shows that the clock was behind: the machine was
// suspended, for example, which no timer of this process has counted. Whoever waits for a time of the
// store then finds that it is nearer.
func (c *Clock) Leap() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leap
}

// Observe records that the store's clock said now between two moments of ours. It
// returns by how much the store's clock was set, 0 if it was not.
func (c *Clock) Observe(before, after time.Time, now store.Time) (set time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := reading{low: int64(now) - c.ours(after), high: int64(now) + 1 - c.ours(before), at: c.ours(after)}
	p := &pace{from: r.at, offset: int64(c.At(after)) - r.at, unsteady: max(c.pace.Load().unsteady-1, 0), ahead: c.ahead(before), read: true}
	if len(c.recent) == 0 {
		p.offset = (r.low + r.high) / 2 // there was nothing to go by
	} else if low, high := c.bounds(r.at); r.low > high || r.high < low {
		c.recent, p.unsteady = c.recent[:0], steadyAgain
	}
	if len(c.recent) == maxReadings {
		c.recent = append(c.recent[:0], c.recent[1:]...)
	}
	c.recent = append(c.recent, r)
	low, high := c.bounds(r.at)
	p.low = low
	switch ahead := p.offset - high; {
	case p.offset < low:
		set, p.offset = time.Duration(low-p.offset)*time.Microsecond, low
	case ahead > MaxSlew.Microseconds():
		set, p.offset = -time.Duration(ahead)*time.Microsecond, high
	case ahead > 0:
		p.excess = ahead
	}
	c.pace.Store(p)
	close(c.observed)
	c.observed = make(chan struct{})
	if set >= leastLeap {
		c.leapt()
		c.leap, c.leapt = context.WithCancel(context.Background())
	}
	return set
}

// bounds returns the limits that all readings together put on the offset at a moment of
// our clock; no reading contradicts the others. The mutex is held.
func (c *Clock) bounds(at int64) (low, high int64) {
	for i, r := range c.recent {
		drift := (at - r.at) / driftOneIn
		if i == 0 || r.low-drift > low {
			low = r.low - drift
		}
		if i == 0 || r.high+drift < high {
			high = r.high + drift
		}
	}
	return low, high
}
