package history

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Missing is what an event is that should be between two others.
func Missing(runID string, after, before int64) *Damage {
	return &Damage{RunID: runID, Seq: after + 1, Err: fmt.Errorf("it is missing between %d and %d", after, before)}
}

// A hole is a place where a lineage passes over events of the log.
type hole struct {
	after, before int64 // the events of the lineage on both sides
	sum           uint32
}

// turned returns the branch to which, as an event says, the run has turned in the act that recorded the event. An
// event that does not say so was never part of such an act: it is on a branch to which the run never turned (D1).
func turned(e *store.Event) (to int32, ok bool) {
	if !BeginsBranch(e.Type) {
		return 0, false
	}
	said, err := Decode(e)
	if err != nil {
		return 0, false
	}
	switch d := said.(type) {
	case *Beginning:
		return e.Branch, true
	case *Recovery:
		return e.Branch, d.NewBranch != nil && *d.NewBranch == e.Branch || d.Code == CodeRepaired
	case *Act:
		return e.Branch, d.ToBranch == e.Branch && d.ToBranch != 0
	}
	return 0, false
}

// PassesOver reports whether the lineage of h may pass over events of its own branches: what a narrow cut
// has left behind is in between, and so may be events of a branch to which the run never turned.
func PassesOver(h *store.History) bool {
	lineage := store.LineageOf(h.Branches, h.Run.Branch).Branches()
	return slices.ContainsFunc(h.Branches, func(b store.Branch) bool { return b.CutScope != "" || !slices.Contains(lineage, b.N) })
}

// Gapless returns the events of h, which are one lineage, with an error in the place of a missing one: the
// numbers of events of one branch follow one another, unless another branch took over or a cut took only what is in
// a scope. An event whose branch was changed is no longer part of its lineage, so that no sum that is checked would show it.
func Gapless(h *store.History, read func(after int64) (*store.History, error)) iter.Seq2[store.Event, error] {
	holes := PassesOver(h)
	return func(yield func(store.Event, error) bool) {
		var before head
		var list []hole
		for e, err := range h.Events {
			if err == nil && before.Seq != 0 && e.Seq > before.Seq+1 && e.Branch == before.Branch {
				if holes {
					list = append(list, hole{before.Seq, e.Seq, before.Sum})
				} else {
					err = Missing(h.Run.ID, before.Seq, e.Seq)
				}
			}
			before = endAt(&e).head
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lookInto(&h.Run, list, read); err != nil {
			yield(store.Event{}, err)
		}
	}
}

// lookInto returns an error unless the events in the holes are there and unchanged: then none of them belongs to
// the lineage. It costs a second read, only for runs that were cut narrowly or have a stray branch.
func lookInto(row *store.Run, holes []hole, read func(after int64) (*store.History, error)) error {
	if len(holes) == 0 {
		return nil
	}
	h, err := read(holes[0].after)
	if err != nil {
		return err
	}
	seq, sum := holes[0].after, holes[0].sum
	for e, err := range h.Events {
		if err != nil {
			return err
		}
		for len(holes) > 0 && holes[0].before < e.Seq {
			if seq < holes[0].before {
				return Missing(row.ID, seq, e.Seq)
			}
			if holes = holes[1:]; len(holes) > 0 {
				seq, sum = holes[0].after, holes[0].sum
			}
		}
		switch {
		case len(holes) == 0:
			return nil
		case e.Seq <= holes[0].after:
			continue
		case e.Seq != seq+1:
			return Missing(row.ID, seq, e.Seq)
		case store.Seal(row.ID, sum, &e) != e.Sum:
			return &Damage{RunID: row.ID, Seq: e.Seq, Err: errors.New("its checksum does not fit: it, or the event before it, was changed")}
		}
		if to, ok := turned(&e); ok && to > row.Branch {
			return &Damage{RunID: row.ID, Seq: e.Seq, Err: fmt.Errorf("its row was changed: it is on branch %d there, and event %d has turned to branch %d", row.Branch, e.Seq, to)}
		}
		seq, sum = e.Seq, e.Sum
	}
	return nil
}
