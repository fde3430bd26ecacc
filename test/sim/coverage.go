package sim

import (
	"cmp"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// A Triple is what a disturbance met, and what came after it: the type of the event that
// was being written (or, for an act, the last one of its run), the fault or the act, and
// the type of the next durable event.
type Triple struct{ Event, Fault, Next string }

// A trail collects the triples of one world. Its sim's mutex guards it.
type trail struct {
	open []Triple // without what comes next
	seen []Triple
}

func newTrail() trail { return trail{} }

func (t *trail) faulted(on string, h Harm) {
	t.open = append(t.open, Triple{Event: on, Fault: string(h)})
}

func (t *trail) acted(s *sim, a *Act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last[s.roots()[a.Run%len(s.roots())]]
	t.open = append(t.open, Triple{Event: string(last.Type), Fault: "act " + string(a.Do)})
}

func (t *trail) next(typ store.Type) {
	for _, o := range t.open {
		o.Next = string(typ)
		t.seen = append(t.seen, o)
	}
	t.open = t.open[:0]
}

// Coverage is what many worlds have shown.
type Coverage struct {
	Triples map[Triple]int
	pairs   map[[2]string]int // of (event, fault)
	events  map[string]int
}

// NewCoverage returns an empty one.
func NewCoverage() *Coverage {
	return &Coverage{Triples: map[Triple]int{}, pairs: map[[2]string]int{}, events: map[string]int{}}
}

// Add takes in what a world has shown, and reports whether any of it is new.
func (c *Coverage) Add(seen []Triple) (fresh bool) {
	for _, t := range seen {
		fresh = fresh || c.Triples[t] == 0
		c.Triples[t]++
		c.pairs[[2]string{t.Event, t.Fault}]++
		c.events[t.Next]++
	}
	return fresh
}

// rare returns an event at which this fault was seldom seen, of some that pick chooses
// from; "" if it knows none.
func (c *Coverage) rare(fault string, pick func(n int) int) string {
	events := slices.Sorted(maps.Keys(c.events))
	if len(events) == 0 {
		return ""
	}
	var some []string
	for range 4 {
		some = append(some, events[pick(len(events))])
	}
	return slices.MinFunc(some, func(a, b string) int {
		return cmp.Compare(c.pairs[[2]string{a, fault}], c.pairs[[2]string{b, fault}])
	})
}
