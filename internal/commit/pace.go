package commit

import (
	"math"
	"slices"
	"sync"
	"time"
)

// The commits that Pace covers.
const (
	pacedCommits = 1024
	pacedFor     = 5 * time.Minute
)

// Pace returns the duration that 99 of 100 of the last commits did not exceed, and
// how many commits that covers: at most 1,024, of the five minutes before now.
func (c *Committer) Pace(now time.Time) (p99 time.Duration, n int) { return c.paces.p99(now) }

// paces records how long the last commits took. The zero value has none.
type paces struct {
	mu   sync.Mutex
	took [pacedCommits]time.Duration
	at   [pacedCommits]time.Time // when each ended
	n    int                     // how many there have been in total
}

// add notes a commit that ended at now.
func (p *paces) add(now time.Time, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took[p.n%pacedCommits], p.at[p.n%pacedCommits] = took, now
	p.n++
}

// p99 returns the duration that 99 of 100 of the recorded commits that are recent
// at now did not exceed, and the number of those commits.
func (p *paces) p99(now time.Time) (time.Duration, int) {
	p.mu.Lock()
	recent := make([]time.Duration, 0, min(p.n, pacedCommits))
	for i := range min(p.n, pacedCommits) {
		if now.Sub(p.at[i]) < pacedFor {
			recent = append(recent, p.took[i])
		}
	}
	p.mu.Unlock()
	if len(recent) == 0 {
		return 0, 0
	}
	slices.Sort(recent)
	return recent[int(math.Ceil(0.99*float64(len(recent))))-1], len(recent)
}
