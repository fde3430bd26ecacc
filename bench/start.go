package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// startGoal is how many raw inserts a start may take: it commits three times.
const startGoal = 3.4

// start measures a one-step run from Start to its result in the caller's hands,
// one at a time, against single inserts, and counts its durable commits.
func start(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f, err := t.openFloor(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := durable.Define("start", func(ctx context.Context, _ int) (int, error) { return steps(ctx, 1) })
	var p99s, commits []float64
	var p50s, hands []pair
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		ours := func() (float64, error) {
			before := counts(s)
			took := make([]float64, blockSize)
			for i := range took {
				began := time.Now()
				if _, err := w.Run(ctx, fmt.Sprintf("start-%d-%d", len(commits), i), i); err != nil {
					return 0, err
				}
				took[i] = micros(time.Since(began))
			}
			p99s = append(p99s, quantile(took, 0.99))
			commits = append(commits, float64(counts(s).Commits-before.Commits)/blockSize)
			return median(took), nil
		}
		floor := func() (float64, error) { return f.p50(blockSize) }
		if p50s, err = pairs(n.rounds, floor, ours); err != nil {
			return err
		}
		hands, err = byHand(t, n.rounds, floor, func(h *hand) block { return func() (float64, error) { return h.starts(blockSize) } })
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	inserts := inFloors("START p50 in inserts", "inserts/run", p50s)
	if t.isDurable() {
		inserts = inserts.within(startGoal)
	}
	return []result{
		pairedResult("START p50", "us/run", false, p50s),
		inserts,
		pairedResult("START by hand p50", "us/run", false, hands),
		inFloors("START by hand p50 in inserts", "inserts/run", hands),
		plainResult("START p99", "us/run", p99s),
		plainResult("START commits", "commits/run", commits),
	}, nil
}
