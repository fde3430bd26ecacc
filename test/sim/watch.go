package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// faultAt counts a call of the store and returns the fault that meets it, if one does.
func (s *sim) faultAt(names []string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit *Fault
	if s.acting {
		names = append(names, AfterAct)
	}
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
	for _, a := range s.due(AFault) {
		s.background(func() { s.act(a) })
	}
	return hit
}

// committed notes what a commit has written.
func (s *sim) committed(ch *store.Change) {
	s.desk.mailed(s, ch.Send)
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
	s.trail.next(e.Type)
	if s.verbose {
		s.notes = append(s.notes, s.stamp()+run+" "+string(e.Type)+" "+e.Key)
	}
	due := s.due(string(e.Type))
	s.mu.Unlock()
	s.ledger.recorded(run, e)
	s.desk.recorded(s, run, e)
	s.bounces.recorded(s, run, e)
	s.askUntorn(run, e)
	if e.Type == store.WorkflowCreated {
		s.line.comes(run, s.now())
		s.askTick(run)
	}
	for _, a := range due {
		s.background(func() { s.act(a) })
	}
}

// due counts something that happens and returns the acts that it begins. The mutex is held.
func (s *sim) due(on string) (due []*Act) {
	s.happened[on]++
	for _, a := range s.waiting {
		if a.On == on && a.Nth == s.happened[on] && !s.well {
			due = append(due, a)
		}
	}
	return due
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

// askUntorn checks that no recovery finds a run that waits and whose row says otherwise, or the reverse:
// the store writes the row and the events in one change, and nobody has damaged either. The other states
// that recovery mends are those of sound runs: a process may die after the last step of one, or between
// the request of a jump and the jump, and a build may be gone.
func (s *sim) askUntorn(run string, e *store.Event) {
	if e.Type != store.WorkflowRecovered {
		return
	}
	var said struct{ Code, Reason string }
	if _ = json.Unmarshal(e.Data, &said); said.Code == durable.CodeA1 || said.Code == durable.CodeA2 {
		s.fail("%s is recovered, and nothing but the engine has written to it: %s", run, said.Reason)
	}
}
