package operate

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Generation is a part of a run's life: from its start, or from a Continue, to
// the next one.
type Generation struct {
	N       int        // from 0
	Branch  int32      // its lineage is the history of the generation
	After   int64      // Seq of the last event before it; 0 for the first
	BeganAt store.Time // by the clock of who began it
}

// Generations lists the generations of a run, oldest first; the last one is the
// current one. durable.ErrNotFound if there is no such run.
func (op *Operator) Generations(ctx context.Context, id string) ([]Generation, error) {
	h, err := op.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	var list []Generation
	for _, g := range history.GenerationsOf(h) {
		list = append(list, Generation(g))
	}
	return list, nil
}

// HistoryOf yields the events of one generation of a run, closed or not, in
// order; History is that of the current one. After an error it ends: durable.ErrNotFound
// if there is no such run, or none with that generation.
func (op *Operator) HistoryOf(ctx context.Context, id string, generation int) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		fail := func(err error) {
			yield(store.Event{}, fmt.Errorf("durable: run %s, generation %d: %w", id, generation, storeError(err)))
		}
		h, err := op.store.Load(ctx, id, store.Cursor{NoEvents: true})
		if err != nil {
			fail(err)
			return
		}
		gens := history.GenerationsOf(h)
		i := slices.IndexFunc(gens, func(g history.Generation) bool { return g.N == generation })
		if i < 0 {
			fail(durable.ErrNotFound)
			return
		}
		h, err = op.store.Load(ctx, id, store.Cursor{After: gens[i].After, Branch: &gens[i].Branch})
		if err != nil {
			fail(err)
			return
		}
		for ev, err := range h.Events {
			if err != nil {
				fail(err)
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}
