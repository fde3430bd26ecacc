package history

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Cut is what the first event of a branch says of the branch. Its record stands
// beside the log, without a sum of its own, and decides what belongs to the history;
// and the event before it, whose sum would tell that it is as it was written, is most
// often one that the branch has left behind.
type Cut struct {
	Parent     int32  `json:"parent"`
	Generation int32  `json:"generation,omitempty"`
	Cutoff     int64  `json:"cutoff"`
	Scope      string `json:"scope,omitempty"`
	Sum        uint32 `json:"sum"` // of the event before
}

// WithCut returns the data of the first event of a branch, with what it says of it.
func WithCut(data []byte, b *store.Branch, sum uint32) ([]byte, error) {
	cut := &Cut{Parent: b.Parent, Generation: b.Generation, Cutoff: b.Cutoff, Scope: b.CutScope, Sum: sum}
	if len(data) == 0 {
		data = []byte("{}")
	}
	return WithField(data, "cut", cut.Encode())
}

// Encode returns c as the first event of a branch keeps it.
func (c *Cut) Encode() []byte {
	b, _ := json.Marshal(c) // numbers and a string
	return b
}

// branchOf returns the branch that an event says it begins; ok is false for one that
// begins none, or that an earlier version of this library has recorded.
func branchOf(e *store.Event, d *Data) (b store.Branch, ok bool) {
	b = store.Branch{N: e.Branch}
	switch {
	case e.Type == store.WorkflowStarted && d.Generation > 0:
		b.Parent, b.Generation, b.Cutoff, b.Reason = e.Branch, d.Generation, e.Seq-1, "continued"
	case d.Cut == nil:
		return b, false
	default:
		b.Parent, b.Generation, b.Cutoff, b.CutScope, b.Reason = d.Cut.Parent, d.Cut.Generation, d.Cut.Cutoff, d.Cut.Scope, d.Reason
		if e.Type == store.Edited {
			b.Reason = "edited " + e.Key
		}
	}
	return b, true
}

// checkCut compares the record of a branch with the event that begins it. When it was
// made, the record says a little earlier than the event.
func checkCut(branches []store.Branch, want store.Branch) error {
	i := slices.IndexFunc(branches, func(b store.Branch) bool { return b.N == want.N })
	if i < 0 {
		return nil // that its record is missing is found without it
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

// fits reports whether the first event of a branch is as it was written, which the sum
// of the event before tells, as far as it says that.
func (d *Data) fits(runID string, e *store.Event) bool {
	return d.Cut == nil || store.Seal(runID, d.Cut.Sum, e) == e.Sum
}

// takeCut files what the first event of a branch says of the branch.
func (p *Past) takeCut(e *store.Event) error {
	d, err := DataOf(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	if b, ok := branchOf(e, &d); ok {
		p.cuts = append(p.cuts, b)
	}
	return nil
}

// Uncancelled is the reason of the branch on which a cancelled run goes on. A cancel
// knows by it that the message which was sent before counts no more.
const Uncancelled = "resumed by force after it was cancelled"

// FirstCancel is the id of the message that cancels a run.
const FirstCancel = "cancel"

// CancelID returns the id of the message that cancels a run with these branches.
// The first one is kept, as all messages are, and another with its id would be
// taken for it.
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
