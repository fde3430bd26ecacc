package sqlstore

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// Sightings records when a handle first saw the last beat of each executor, by the
// handle's own clock. The time that a beat carries may come from another clock:
// that of a process whose clock is ahead, or this clock before it was set. A lease
// that such a time would lengthen or shorten is counted from the sighting instead.
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
// the same moment by this process's clock, which sightings use.
//
// A beat from the future is believed for one lease from when it was first seen.
// So is a beat older than three leases if exists says that the process
// nevertheless exists (nil: that is unknown): after a suspension, or beside a
// process whose clock is behind, all leases seem to have expired long ago
// although every executor is alive.
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

// Keep forgets all executors except these, which are registered.
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
