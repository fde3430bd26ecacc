package history

import (
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Generation is a part of a run's life: from its start, or from a Continue, to
// the next one.
type Generation struct {
	N       int        // from 0
	Branch  int32      // its lineage is the history of the generation
	After   int64      // Seq of the last event before it; 0 for the first
	BeganAt store.Time // by the clock of the process that began it
}

// GenerationsOf sorts the branches of a run by generation. The last branch of each is
// the one whose lineage counts: the others were cut off.
func GenerationsOf(h *store.History) []Generation {
	gens := []Generation{{BeganAt: h.Run.CreatedAt}}
	for _, b := range slices.SortedFunc(slices.Values(h.Branches), func(a, b store.Branch) int { return int(a.N - b.N) }) {
		if last := &gens[len(gens)-1]; last.N == int(b.Generation) {
			last.Branch = b.N
			continue
		}
		gens = append(gens, Generation{N: int(b.Generation), Branch: b.N, After: b.Cutoff, BeganAt: b.CreatedAt})
	}
	if last := &gens[len(gens)-1]; last.N == int(h.Run.Generation) {
		last.Branch = h.Run.Branch
	}
	return gens
}

// A Lifeline is the history of a run over all its generations: the events of each
// that no cut took away.
type Lifeline map[int32]store.Lineage // by branch

// LifelineOf returns the lifeline of a run.
func LifelineOf(h *store.History) Lifeline {
	c := Lifeline{}
	for _, g := range GenerationsOf(h) {
		l := store.LineageOf(h.Branches, g.Branch)
		for _, n := range l.Branches() {
			c[n] = l
		}
	}
	return c
}

// Has reports whether e is part of the lifeline.
func (c Lifeline) Has(e *store.Event) bool {
	l, known := c[e.Branch]
	return known && l.Has(e)
}
