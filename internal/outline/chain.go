package outline

import (
	"errors"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A Chain sees whether the events of a lineage, which may be its last ones alone, follow one another. Make
// one with NewChain.
type Chain struct {
	run    string
	cut    bool
	before store.Event
}

// NewChain makes the Chain of a history that was read.
func NewChain(h *store.History) *Chain {
	return &Chain{run: h.Run.ID, cut: history.PassesOver(h)}
}

// Next returns what is wrong with the next event: its checksum does not fit the event before it, or
// events between the two are missing. It cannot tell of the first event that was read.
func (c *Chain) Next(e *store.Event) *history.Damage {
	before := c.before
	c.before = *e
	switch {
	case e.Seq == before.Seq+1 && store.Seal(c.run, before.Sum, e) != e.Sum:
		return &history.Damage{RunID: c.run, Seq: e.Seq, Err: errors.New("its checksum does not fit")}
	case before.Seq > 0 && e.Seq > before.Seq+1 && e.Branch == before.Branch && !c.cut:
		return history.Missing(c.run, before.Seq, e.Seq)
	}
	return nil
}
