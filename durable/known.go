package durable

import (
	"iter"
	"math"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A prefetch is the history of a run, or of its current generation, read just before
// the run is claimed to be executed here. The execution reads only what was recorded
// since, at least its claim; the whole is checked like any other.
type prefetch struct {
	branch int32
	events []store.Event
}

// prefetch returns what v has read, nil if rv has it taken apart first.
func (v *view) prefetch(rv *revision) *prefetch {
	if rv.cut != nil || len(v.events) == 0 {
		return nil
	}
	return &prefetch{branch: v.row.Branch, events: v.events}
}

// loadRest completes what was read of r's history. ok is false when it is of no
// use: somebody has turned to another branch since.
func (r *run) loadRest(k *prefetch) (h *store.History, p *history.Past, ok bool, err error) {
	if k.branch != r.row.Branch {
		return nil, nil, false, nil
	}
	last := k.events[len(k.events)-1].Seq
	h, err = r.eng.store.Load(r.ctx, r.id, store.Cursor{After: last, AfterMessage: math.MaxInt64})
	if err != nil || h.Run.Branch != k.branch {
		return nil, nil, false, err
	}
	h.Events = both(k.events, h.Events)
	if p, err = readPast(r.id, r.gapless(h), len(k.events)+16); err != nil {
		return h, p, true, err
	}
	mail, err := r.eng.store.Load(r.ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: p.Floor()})
	if err != nil {
		return nil, nil, true, err
	}
	h.Inbox, h.Run.CancelAsked = mail.Inbox, mail.Run.CancelAsked
	return h, p, true, nil
}

// both yields the events of a list, and then the others.
func both(list []store.Event, others iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for i := range list {
			if !yield(list[i], nil) {
				return
			}
		}
		others(yield)
	}
}
