package commit

import (
	"math"
	"slices"
	"time"
)

// The commits that Pace covers.
const (
	pacedCommits = 1024
	pacedFor     = 5 * time.Minute
)

// Pace returns the duration that 99 of 100 of the last commits did not exceed, and
// how many commits that covers: at most 1,024, of the five minutes before now.
func (c *Committer) Pace(now time.Time) (p99 time.Duration, n int) {
	c.mu.Lock()
	recent := c.paces.since(now.Sub(c.anchor) - pacedFor)
	c.mu.Unlock()
	return p99Of(recent)
}

// paces records how long the last commits took. The zero value has none. The
// committer's mutex guards it.
type paces struct {
	took [pacedCommits]time.Duration
	at   [pacedCommits]time.Duration // when each ended, since the committer's anchor
	n    int                         // how many there have been in total
}

// add notes a commit that ended at this moment.
func (p *paces) add(at, took time.Duration) {
	p.took[p.n%pacedCommits], p.at[p.n%pacedCommits] = took, at
	p.n++
}

// since returns how long the recorded commits took that ended after this moment.
func (p *paces) since(begin time.Duration) []time.Duration {
	recent := make([]time.Duration, 0, min(p.n, pacedCommits))
	for i := range min(p.n, pacedCommits) {
		if p.at[i] > begin {
			recent = append(recent, p.took[i])
		}
	}
	return recent
}

// p99Of returns the duration that 99 of 100 of these did not exceed, and their number.
func p99Of(recent []time.Duration) (time.Duration, int) {
	if len(recent) == 0 {
		return 0, 0
	}
	slices.Sort(recent)
	return recent[int(math.Ceil(0.99*float64(len(recent))))-1], len(recent)
}
