package durable

import (
	"context"
	"fmt"
	"iter"
	"slices"

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
// current one. ErrNotFound if there is no such run.
func (e *Engine) Generations(ctx context.Context, id string) ([]Generation, error) {
	h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	return generationsOf(h), nil
}

// generationsOf sorts branches by generation. The last branch of each is the one
// whose lineage counts: the others were cut off.
func generationsOf(h *store.History) []Generation {
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

// HistoryOf yields the events of one generation of a run, closed or not, in
// order; History is that of the current one. After an error it ends: ErrNotFound
// if there is no such run, or none with that generation.
func (e *Engine) HistoryOf(ctx context.Context, id string, generation int) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		fail := func(err error) {
			yield(store.Event{}, fmt.Errorf("durable: run %s, generation %d: %w", id, generation, storeError(err)))
		}
		h, err := e.store.Load(ctx, id, store.Cursor{NoEvents: true})
		if err != nil {
			fail(err)
			return
		}
		gens := generationsOf(h)
		i := slices.IndexFunc(gens, func(g Generation) bool { return g.N == generation })
		if i < 0 {
			fail(ErrNotFound)
			return
		}
		h, err = e.store.Load(ctx, id, store.Cursor{After: gens[i].After, Branch: &gens[i].Branch})
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

// lifeline is the history of a run over all its generations: of each the events
// that no cut took away.
type lifeline map[int32]store.Lineage // by branch

func lifelineOf(h *store.History) lifeline {
	c := lifeline{}
	for _, g := range generationsOf(h) {
		l := store.LineageOf(h.Branches, g.Branch)
		for _, n := range l.Branches() {
			c[n] = l
		}
	}
	return c
}

// has reports whether e is part of the lifeline.
func (c lifeline) has(e *store.Event) bool {
	l, known := c[e.Branch]
	return known && l.Has(e)
}
