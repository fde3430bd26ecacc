package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// start measures a one-step run from Start to its result in the caller's hands,
// one at a time, and counts its durable commits.
func start(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	w := durable.Define("start", func(ctx context.Context, _ int) (int, error) { return steps(ctx, 1) })
	var p50s, p99s, commits []float64
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		for round := range n.rounds {
			before := counts(s)
			took := make([]float64, blockSize)
			for i := range took {
				began := time.Now()
				if _, err := w.Run(ctx, fmt.Sprintf("start-%d-%d", round, i), i); err != nil {
					return err
				}
				took[i] = micros(time.Since(began))
			}
			p50s = append(p50s, median(took))
			p99s = append(p99s, quantile(took, 0.99))
			commits = append(commits, float64(counts(s).Commits-before.Commits)/blockSize)
		}
		return nil
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{
		plainResult("START p50", "us/run", p50s),
		plainResult("START p99", "us/run", p99s),
		plainResult("START commits", "commits/run", commits),
	}, nil
}
