package claims

import (
	"maps"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

// A sieve keeps the loop from claiming waiting runs that may contradict their events, until Recover
// has compared all that wait: what is repaired follows its policy, for which a claim does not ask. Of
// most of them the row and the last event, which a claim sees, show that they are consistent. It
// passes over the others, which are compared next, wherever they stand in the listing.
type sieve struct {
	o    *Options
	bell chan struct{} // a claim has passed over some

	mu     sync.Mutex
	until  chan struct{}    // closed when all are compared; nil: nothing is passed over
	told   map[string]bool  // what claims have passed over
	passed map[string]int64 // what was compared since, by the last event that its log had then
	found  Report           // by these comparisons
	kept   map[string]bool  // what is being compared: if it is repaired, whoever compares it continues it
	late   bool             // a take-over has left to Recover what rests
}

// spare returns what tells a claim which runs to pass over; nil: none.
func (s *sieve) spare() func(*store.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		return nil
	}
	return s.spares
}

func (s *sieve) spares(row *store.Run) bool {
	if row.Status == store.Interrupted {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.kept[row.ID]
	}
	if row.Status != store.Waiting || row.Last == nil || !s.o.Program.Has(row.Workflow, row.Version) ||
		history.Glance(row, len(s.o.Program.Steps(row.Workflow, row.Version))) == history.LookNone {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq, ok := s.passed[row.ID]; s.until == nil || ok && seq == row.Last.Seq {
		return false
	}
	s.told[row.ID] = true
	nudge.Send(s.bell)
	return true
}

// shut begins to pass over runs. until is closed when that ends; first is false if it had begun
// before.
func (s *sieve) shut() (until <-chan struct{}, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first = s.until == nil; first {
		s.until, s.told, s.passed = make(chan struct{}), map[string]bool{}, map[string]int64{}
	}
	return s.until, first
}

// leaves reports whether a take-over leaves runs that rest to Recover, which compares them, and reports
// what it repairs.
func (s *sieve) leaves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = s.late || s.until != nil
	return s.until != nil
}

// open ends that: all are compared. late says that a take-over has left runs, perhaps others than
// those.
func (s *sieve) open() (late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until != nil {
		close(s.until)
	}
	late, s.late = s.late, false
	s.until, s.told, s.passed = nil, nil, nil
	return late
}

// take returns what was passed over since the last call.
func (s *sieve) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.Sorted(maps.Keys(s.told))
	clear(s.told)
	return ids
}

// keep keeps these runs from being claimed, even when they were repaired, until release is called.
func (s *sieve) keep(rows []*store.Run) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = make(map[string]bool, len(rows))
	for _, row := range rows {
		s.kept[row.ID] = true
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept = nil
	}
}

// pass lets claims take these runs, as they are now.
func (s *sieve) pass(rows []*store.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range rows {
		if s.until != nil && row.Last != nil {
			s.passed[row.ID] = row.Last.Seq
		}
	}
}
