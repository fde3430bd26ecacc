package history

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// WithCut returns the data of the first event of a branch, with what that says of the
// branch.
func WithCut(data []byte, b *store.Branch, sum uint32) ([]byte, error) {
	cut := &Cut{Parent: b.Parent, Generation: b.Generation, Cutoff: b.Cutoff, Scope: b.CutScope, Sum: sum}
	if len(data) == 0 {
		data = []byte("{}")
	}
	return WithField(data, "cut", cut.Encode())
}

// branchOf returns the branch that e says it begins, by what was decoded of it; ok is false
// if it begins none, or if an earlier version of this library has recorded it.
func branchOf(e *store.Event, said any) (b store.Branch, ok bool) {
	if !BeginsBranch(e.Type) {
		return b, false
	}
	b = store.Branch{N: e.Branch}
	if d, renewed := said.(*Beginning); renewed {
		b.Parent, b.Generation, b.Cutoff, b.Reason = e.Branch, d.Generation, e.Seq-1, "continued"
		return b, true
	}
	cut, reason := cutOf(said)
	if cut == nil {
		return b, false
	}
	b.Parent, b.Generation, b.Cutoff, b.CutScope, b.Reason = cut.Parent, cut.Generation, cut.Cutoff, cut.Scope, reason
	if e.Type == store.Edited {
		b.Reason = "edited " + e.Key
	}
	return b, true
}

// cutOf returns what an event says of the branch that it begins, nil if nothing, and why
// the branch was made.
func cutOf(said any) (cut *Cut, reason string) {
	switch d := said.(type) {
	case *Act:
		return d.Cut, d.Reason
	case *Recovery:
		return d.Cut, d.Reason
	}
	return nil, ""
}

// checkCut compares the record of a branch with the event that begins it. The record's
// time of creation is a little earlier than the event's.
func checkCut(branches []store.Branch, want store.Branch) error {
	i := slices.IndexFunc(branches, func(b store.Branch) bool { return b.N == want.N })
	if i < 0 {
		return nil // a missing record is found elsewhere
	}
	have := branches[i]
	have.CreatedAt = want.CreatedAt
	if have == want {
		return nil
	}
	return fmt.Errorf("the record of branch %d was changed: it is %s, and the event that begins it says %s", want.N, shortBranch(have), shortBranch(want))
}

func shortBranch(b store.Branch) string {
	s := fmt.Sprintf("cut from %d behind %d", b.Parent, b.Cutoff)
	if b.CutScope != "" {
		s += " in " + b.CutScope
	}
	return fmt.Sprintf("%s, generation %d, %q", s, b.Generation, b.Reason)
}

// isWhole reports whether e, the first event of a branch, is as it was written, which the
// sum of the previous event tells, if e names it.
func isWhole(runID string, e *store.Event) bool {
	said, err := Decode(e)
	cut, _ := cutOf(said)
	return err != nil || cut == nil || store.Seal(runID, cut.Sum, e) == e.Sum
}

// Uncancelled is the reason of the branch on which a cancelled run goes on. It tells a
// later cancel that the message sent before no longer counts.
const Uncancelled = "resumed by force after it was cancelled"

// FirstCancel is the id of the message that cancels a run.
const FirstCancel = "cancel"

// CancelID returns the id of the message that cancels a run with these branches.
// The first one is kept, as all messages are, and another with the same id would be taken
// for it.
func CancelID(branches []store.Branch) string {
	last := int32(0)
	for i := range branches {
		if branches[i].Reason == Uncancelled {
			last = max(last, branches[i].N)
		}
	}
	if last == 0 {
		return FirstCancel
	}
	return fmt.Sprintf("%s~b%d", FirstCancel, last)
}
