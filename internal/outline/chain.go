package outline

import (
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Chain sees whether the events of a lineage, which may be its last ones alone, follow one another. Make
// one with NewChain.
type Chain struct {
	run      string
	branches []store.Branch
	cut      bool
	before   store.Event
}

// NewChain makes the Chain of a history that was read.
func NewChain(h *store.History) *Chain {
	return &Chain{run: h.Run.ID, branches: h.Branches, cut: history.PassesOver(h)}
}

// Next returns what is wrong with the next event: its checksum does not fit the event before it, or
// events between the two are missing. It cannot tell of the first event that was read.
func (c *Chain) Next(e *store.Event) *history.Damage {
	before := c.before
	c.before = *e
	begun := slices.IndexFunc(c.branches, func(b store.Branch) bool { return b.N == e.Branch })
	switch {
	case e.Seq == before.Seq+1 && store.Seal(c.run, before.Sum, e) != e.Sum:
		return &history.Damage{RunID: c.run, Seq: e.Seq, Err: errors.New("its checksum does not fit")}
	case before.Seq == 0 || c.cut:
	case e.Branch == before.Branch && e.Seq > before.Seq+1:
		return history.Missing(c.run, before.Seq, e.Seq)
	case e.Branch == before.Branch || begun < 0:
	case before.Seq < c.branches[begun].Cutoff:
		return history.Missing(c.run, before.Seq, c.branches[begun].Cutoff+1)
	case !history.BeginsBranch(e.Type):
		return &history.Damage{RunID: c.run, Seq: e.Seq, Err: errors.New("a branch begins with it, and not with the event that made the branch")}
	}
	return nil
}
