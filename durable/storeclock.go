package durable

import "sync"

// A store clock is what is known of how far the store's clock is ahead of ours.
// Each beat measures it, and is off by at most half of the time it took: the
// answer was made somewhere in between. So the fastest of the last beats counts,
// and not one that happened to meet a busy store, by which timers would fire too
// early or too late.
type storeClock struct {
	mu     sync.Mutex
	recent []clockReading // oldest first
}

// clockReading is one measurement, in microseconds.
type clockReading struct {
	offset int64
	within int64 // how far off it may be, on either side
}

// clockReadings is how many measurements are kept: with the usual lease those of
// more than a minute, in which two clocks drift apart by less than a millisecond
// or two.
const clockReadings = 8

// observe takes in a measurement and returns the best estimate. One that cannot
// be true together with the best of the earlier ones says that a clock was set,
// or has drifted: then the earlier ones mean nothing any more.
func (c *storeClock) observe(r clockReading) (offset int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) > 0 {
		best := c.best()
		if d := r.offset - best.offset; max(d, -d) > r.within+best.within {
			c.recent = c.recent[:0]
		}
	}
	if len(c.recent) == clockReadings {
		c.recent = append(c.recent[:0], c.recent[1:]...)
	}
	c.recent = append(c.recent, r)
	return c.best().offset
}

// best returns the narrowest reading, of equals the latest. The mutex is held.
func (c *storeClock) best() clockReading {
	best := c.recent[0]
	for _, r := range c.recent[1:] {
		if r.within <= best.within {
			best = r
		}
	}
	return best
}
