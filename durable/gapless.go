package durable

import (
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// gapless returns the events of h, which are a lineage, with an error in the
// place of one that is missing: events of one branch follow one another, unless
// another branch took over or a cut took only what is in a scope. An event whose
// branch was changed is no part of its lineage any more, so that no sum that is
// checked would tell.
func gapless(h *store.History) iter.Seq2[store.Event, error] {
	lineage := store.LineageOf(h.Branches, h.Run.Branch).Branches()
	for i := range h.Branches {
		// Events of a branch that nobody turned to may stand in between.
		if h.Branches[i].CutScope != "" || !slices.Contains(lineage, h.Branches[i].N) {
			return h.Events
		}
	}
	return func(yield func(store.Event, error) bool) {
		var seq int64
		var branch int32
		for e, err := range h.Events {
			if err == nil && seq != 0 && e.Seq > seq+1 && e.Branch == branch {
				err = &DamagedError{RunID: h.Run.ID, Seq: seq + 1, Err: fmt.Errorf("it is missing between %d and %d", seq, e.Seq)}
			}
			seq, branch = e.Seq, e.Branch
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
