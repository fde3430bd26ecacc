package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

const (
	parBranches = 200
	parSteps    = 10 // of a branch

	mapAtOnce = 64
)

// par measures one run with many concurrent branches, in steps a second, against the
// rate of single inserts: what sharing commits is worth within a run. Besides its steps
// a branch records its outcome.
func par(ctx context.Context, t *target, n size) ([]result, error) {
	w := durable.Define("par", func(ctx context.Context, _ int) (int, error) {
		g := durable.NewGroup(ctx)
		for i := range parBranches {
			g.Go(fmt.Sprintf("branch-%d", i), func(ctx context.Context) error {
				_, err := steps(ctx, parSteps)
				return err
			})
		}
		return 0, g.Wait()
	})
	const made = parBranches * parSteps
	measured, err := againstInserts(ctx, t, n.fanPairs, w, made)
	if err != nil {
		return nil, err
	}
	var branches []float64
	for _, p := range measured {
		branches = append(branches, 1e6*made/p.ours/parBranches)
	}
	return []result{
		pairedResult("PAR", "steps/s", true, measured),
		plainResult("PAR branch", "us/branch", branches),
	}, nil
}

// mapping measures one run that maps over many items, in items a second, against the
// rate of single inserts. The function of an item makes no steps, so an item is one
// write.
func mapping(ctx context.Context, t *target, n size) ([]result, error) {
	items := make([]int, n.items)
	for i := range items {
		items[i] = i
	}
	w := durable.Define("map", func(ctx context.Context, _ int) (int, error) {
		out, err := durable.Map(ctx, "items", items, durable.MapOptions{Concurrency: mapAtOnce},
			func(_ context.Context, item int) (int, error) { return item, nil })
		return len(out), err
	})
	measured, err := againstInserts(ctx, t, n.fanPairs, w, n.items)
	if err != nil {
		return nil, err
	}
	return []result{pairedResult("MAP", "items/s", true, measured)}, nil
}

// againstInserts measures, in pairs, runs of w one after the other, each of which
// makes this many records, and single inserts, both in records a second.
func againstInserts(ctx context.Context, t *target, rounds int, w *durable.Workflow[int, int], records int) ([]pair, error) {
	var measured []pair
	err := withFloor(ctx, t, func(ctx context.Context, f *floor) (err error) {
		round := 0
		floor := func() (float64, error) {
			d, err := f.singles(ctx, fanFloor)
			return fanFloor / d.Seconds(), err
		}
		ours := func() (float64, error) {
			round++
			began := time.Now()
			_, err := w.Run(ctx, fmt.Sprintf("one-%d", round), 0)
			return float64(records) / time.Since(began).Seconds(), err
		}
		measured, err = pairs(rounds, floor, ours)
		return err
	}, w)
	return measured, err
}
