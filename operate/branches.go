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

// BranchInfo is a branch of a run's history. Branch 0 is the one it began with; a
// repair, a jump, an edit or Continue began every other one.
type BranchInfo struct {
	N          int32
	Parent     int32 // the branch it was cut from; N itself for a root, which has no history before it
	Root       bool  // branch 0, and the first branch of every generation
	Generation int
	// Cutoff is the number of the last event of the parent's lineage that the
	// branch keeps; for a root, that of the last event before it (0: none).
	Cutoff int64
	// Scope: only calls in this scope were cut, such as "items[3]"; empty: everything.
	Scope     string
	Reason    string
	CreatedAt store.Time
	// Current: the run is on this branch. InLineage: the run is on it, or some of its
	// events are part of the current history. A branch that is neither was left, or was
	// created and never used, which does no harm.
	Current   bool
	InLineage bool
	// Events is how many events the branch itself holds, and LeftBehind how many of its
	// parent's lineage were left behind where it was cut (Operator.LeftBehind yields
	// those).
	Events int
	Left   int
}

// Branches lists the branches of a run, oldest first; there is always branch 0.
// It reads the whole log, though not its payloads into memory. durable.ErrNotFound if
// there is no such run.
func (op *Operator) Branches(ctx context.Context, id string) ([]BranchInfo, error) {
	h, err := op.store.Load(ctx, id, store.Cursor{All: true})
	if err != nil {
		return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
	}
	current := store.LineageOf(h.Branches, h.Run.Branch).Branches()
	infos := []BranchInfo{{N: 0, Root: true, CreatedAt: h.Run.CreatedAt}}
	for _, b := range slices.SortedFunc(slices.Values(h.Branches), func(a, b store.Branch) int { return int(a.N - b.N) }) {
		infos = append(infos, BranchInfo{
			N: b.N, Parent: b.Parent, Root: b.Parent >= b.N, Generation: int(b.Generation), Cutoff: b.Cutoff,
			Scope: b.CutScope, Reason: b.Reason, CreatedAt: b.CreatedAt,
		})
	}
	left := make([]func(*store.Event) bool, len(infos))
	for i := range infos {
		b := &infos[i]
		b.Current, b.InLineage = b.N == h.Run.Branch, slices.Contains(current, b.N)
		left[i] = leftBy(h.Branches, b)
	}
	for ev, err := range h.Events {
		if err != nil {
			return nil, fmt.Errorf("durable: run %s: %w", id, storeError(err))
		}
		for i := range infos {
			if infos[i].N == ev.Branch {
				infos[i].Events++
			}
			if left[i](&ev) {
				infos[i].Left++
			}
		}
	}
	return infos, nil
}

// leftBy returns a test for the events that were left behind where b was cut.
func leftBy(branches []store.Branch, b *BranchInfo) func(*store.Event) bool {
	if b.Root {
		return func(*store.Event) bool { return false }
	}
	before, after := store.LineageOf(branches, b.Parent), store.LineageOf(branches, b.N)
	return func(ev *store.Event) bool { return before.Has(ev) && !after.Has(ev) }
}

// Lineage yields the history of any branch of a run, current or not: its ancestors'
// events up to each cutoff and its own, in order. It ends after an error:
// durable.ErrNotFound if there is no such run, or no such branch.
func (op *Operator) Lineage(ctx context.Context, id string, branch int32) iter.Seq2[store.Event, error] {
	return op.branchEvents(ctx, id, branch, store.Cursor{Branch: &branch}, nil)
}

// LeftBehind yields the events that were left behind where a branch was cut, in
// order: they are on its parent's lineage. A root has left none. It ends after an error:
// durable.ErrNotFound if there is no such run, or no such branch.
func (op *Operator) LeftBehind(ctx context.Context, id string, branch int32) iter.Seq2[store.Event, error] {
	return op.branchEvents(ctx, id, branch, store.Cursor{All: true}, leftBy)
}

// branchEvents yields the events of a cursor that pick, if any, selects.
func (op *Operator) branchEvents(ctx context.Context, id string, branch int32, c store.Cursor, pick func([]store.Branch, *BranchInfo) func(*store.Event) bool) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		fail := func(err error) {
			yield(store.Event{}, fmt.Errorf("durable: run %s, branch %d: %w", id, branch, storeError(err)))
		}
		h, err := op.store.Load(ctx, id, c)
		if err != nil {
			fail(err)
			return
		}
		info := BranchInfo{N: branch, Root: true}
		if i := slices.IndexFunc(h.Branches, func(b store.Branch) bool { return b.N == branch }); i >= 0 {
			info.Parent, info.Root = h.Branches[i].Parent, h.Branches[i].Parent >= branch
		} else if branch != 0 {
			fail(durable.ErrNotFound)
			return
		}
		wanted := func(*store.Event) bool { return true }
		if pick != nil {
			wanted = pick(h.Branches, &info)
		}
		for ev, err := range h.Events {
			if err != nil {
				fail(err)
				return
			}
			if wanted(&ev) && !yield(ev, nil) {
				return
			}
		}
	}
}

// Generation is a part of a run's life: from its start, or from a Continue, to
// the next one.
type Generation struct {
	N       int        // from 0
	Branch  int32      // its lineage is the history of the generation
	After   int64      // Seq of the last event before it; 0 for the first
	BeganAt store.Time // by the clock of the process that began it
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
// order; Engine.History yields that of the current one. It ends after an error:
// durable.ErrNotFound if there is no such run, or none with that generation.
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
