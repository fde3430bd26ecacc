package sqlstore

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Sightings are when a handle first saw the last beat of each executor, by its
// own clock. The time that a beat carries is another's: of a process whose clock
// is ahead, or of this clock before it was set. A lease that the two would make
// longer or shorter than it is, is counted from the sighting.
//
// The zero value has seen nothing. Safe for concurrent use.
type Sightings struct {
	mu   sync.Mutex
	seen map[string]sighting
}

type sighting struct {
	beatAt int64
	at     time.Time
}

// Live reports whether the lease of r runs at now, by the store's clock. here is
// this process's clock at the same moment, which sightings are counted by.
//
// A beat from the future is believed for one lease from when it was first seen.
// So is one that is older than three leases if exists says that the process is
// there all the same (nil: that cannot be told): after a suspension, or beside a
// process whose clock is behind, all leases ran out long ago, and everybody
// lives.
func (s *Sightings) Live(r *ExecutorRow, now store.Time, here time.Time, exists func() bool) bool {
	s.mu.Lock()
	seen, ok := s.seen[r.ID]
	if !ok || seen.beatAt != r.BeatAt {
		if s.seen == nil {
			s.seen = map[string]sighting{}
		}
		seen = sighting{beatAt: r.BeatAt, at: here}
		s.seen[r.ID] = seen
	}
	s.mu.Unlock()
	waited := here.Sub(seen.at) >= time.Duration(r.Lease)*time.Microsecond
	if r.Ahead(now) {
		return !waited
	}
	return r.Leased(now) || (!waited && exists != nil && int64(now)-r.BeatAt >= 3*r.Lease && exists())
}

// Keep forgets all executors but these, which are registered.
func (s *Sightings) Keep(rows []ExecutorRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) <= len(rows) {
		return
	}
	kept := make(map[string]sighting, len(rows))
	for i := range rows {
		if seen, ok := s.seen[rows[i].ID]; ok {
			kept[rows[i].ID] = seen
		}
	}
	s.seen = kept
}
