package sim

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// faultAt counts a call of the store and returns the fault that meets it, if one does.
func (s *sim) faultAt(names []string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit *Fault
	for _, name := range names {
		s.counts[name]++
		for i := range s.world.Faults {
			if f := &s.world.Faults[i]; f.On == name && f.Nth == s.counts[name] && !s.well && hit == nil {
				hit = f
			}
		}
	}
	if hit == nil {
		return nil
	}
	s.fired[hit.Do]++
	s.trail.faulted(hit.On, hit.Do)
	if hit.Do == Denied || slices.Contains(names, "claim") && (hit.Do == LostAfter || hit.Do == LostThenRefused || hit.Do == GivenUp || hit.Do == SlowAfter) {
		s.disturbed = true
	}
	s.notes = append(s.notes, s.stamp()+"fault "+string(hit.Do)+" at "+strings.Join(names, ", "))
	return hit
}

// committed notes what a commit has written.
func (s *sim) committed(ch *store.Change) {
	for i := range ch.Events {
		s.wrote(ch.RunID, &ch.Events[i])
	}
	for i := range ch.Start {
		s.committed(&ch.Start[i])
	}
}

// claimed notes the events of claims.
func (s *sim) claimed(rows []store.Run) {
	for i := range rows {
		if rows[i].Last != nil {
			s.wrote(rows[i].ID, rows[i].Last)
		}
	}
}

// wrote notes an event that is durable now, once.
func (s *sim) wrote(run string, e *store.Event) {
	s.mu.Lock()
	if e.Seq <= s.heads[run] {
		s.mu.Unlock()
		return
	}
	s.heads[run] = e.Seq
	s.last[run] = *e
	if s.sums[run] == nil {
		s.sums[run] = map[int64]uint32{}
	}
	s.sums[run][e.Seq] = e.Sum
	s.events++
	s.happened[string(e.Type)]++
	s.trail.next(e.Type)
	n := s.happened[string(e.Type)]
	if s.verbose {
		s.notes = append(s.notes, s.stamp()+run+" "+string(e.Type)+" "+e.Key)
	}
	var due []*Act
	for _, a := range s.waiting {
		if a.On == string(e.Type) && a.Nth == n && !s.well {
			due = append(due, a)
		}
	}
	s.mu.Unlock()
	s.ledger.recorded(run, e)
	if e.Type == store.WorkflowCreated {
		s.askTick(run)
	}
	for _, a := range due {
		s.background(func() { s.act(a) })
	}
}

// heard judges a line that an engine has logged.
func (s *sim) heard(message, line string) {
	for _, bad := range mustNotBeLogged {
		if !strings.Contains(message, bad) {
			continue
		}
		s.mu.Lock()
		excused := bad == "did not execute" && s.disturbed
		s.mu.Unlock()
		if !excused {
			s.fail("an engine says: %s", line)
		}
	}
}
