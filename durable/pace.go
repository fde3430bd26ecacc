package durable

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// What Health says of the pace of an engine is counted here: how long its commits
// take, and which of its timers are behind.

// The commits that Health.CommitP99 is of.
const (
	pacedCommits = 1024
	pacedFor     = 5 * time.Minute
)

// paces keeps how long the last commits took. The zero value has none.
type paces struct {
	mu   sync.Mutex
	took [pacedCommits]time.Duration
	at   [pacedCommits]time.Time // when each ended
	n    int                     // how many there have been in all
}

// add notes a commit that ended at now.
func (p *paces) add(now time.Time, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took[p.n%pacedCommits], p.at[p.n%pacedCommits] = took, now
	p.n++
}

// p99 returns what 99 of 100 of the commits that are kept, and are recent at
// now, did not exceed, and how many they are.
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

// lateAfter is how far behind a timer must be to be called late: what a slow
// commit or a busy machine costs is not worth a warning.
const lateAfter = time.Second

// timersLate returns how many unloaded runs of this engine wait for a moment that
// passed more than lateAfter ago: there are too many at once, or they cannot be
// read. A run that is loaded wakes by a timer of the runtime.
func (e *Engine) timersLate() int {
	due := e.now().Add(-lateAfter)
	e.mu.Lock()
	defer e.mu.Unlock()
	late := 0
	for d := range e.loading {
		late += one(e.dormant[d.id] == d && d.late(due)) // else it is loaded
	}
	for _, d := range e.waking {
		late += one(d.late(due))
	}
	return late + e.sleepers.late(0, due)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// late reports whether d was to go on before due. The engine's mutex is held.
func (d *dormant) late(due store.Time) bool {
	at := d.wake
	if d.due != 0 {
		at = d.due
	}
	return at != 0 && at < due
}

// late counts what is late at and below place i. Below one whose time has not
// come nothing is, but for those whose loading was put off: they are due within
// that pause.
func (s sleepers) late(i int, due store.Time) int {
	if i >= len(s) || s[i].wake > due.Add(lateAfter+loadPause) {
		return 0
	}
	return one(s[i].late(due)) + s.late(2*i+1, due) + s.late(2*i+2, due)
}
