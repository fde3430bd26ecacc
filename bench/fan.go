package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

const (
	fanRuns   = 1000
	fanAtOnce = 100
	fanSteps  = 10
	// fanChanges are the durable changes of a run: its start, its steps and its
	// completion.
	fanChanges = fanSteps + 2
	// fanFloor inserts take about as long as the runs, so that both sides get the same
	// share of the machine's noise.
	fanFloor = 1000
)

// fanShares are how many of the runs share a commit when it is made by hand: all of them, and
// about as many as when an engine executes them.
var fanShares = []int{fanAtOnce, 70}

// fan measures many concurrent runs, in durable changes a second, against the rate of
// single inserts: what sharing commits is worth. The same runs by hand say how much of that the
// store gives.
func fan(ctx context.Context, t *target, n size) ([]result, error) {
	w := durable.Define("fan", func(ctx context.Context, _ int) (int, error) { return steps(ctx, fanSteps) })
	var measured []pair
	hands := map[int][]pair{}
	err := withFloor(ctx, t, func(ctx context.Context, f *floor) (err error) {
		round := 0
		floor := func() (float64, error) {
			d, err := f.singles(ctx, fanFloor)
			return fanFloor / d.Seconds(), err
		}
		ours := func() (float64, error) {
			round++
			d, err := crowd(ctx, w, round)
			return float64(fanRuns*fanChanges) / d.Seconds(), err
		}
		if measured, err = pairs(n.fanPairs, floor, ours); err != nil {
			return err
		}
		for _, share := range fanShares {
			hands[share], err = byHand(t, n.fanPairs, floor, func(h *hand) block { return h.crowd(share) })
			if err != nil {
				return err
			}
		}
		return nil
	}, w)
	if err != nil {
		return nil, err
	}
	results := []result{pairedResult("FAN", "changes/s", true, measured)}
	for _, share := range fanShares {
		results = append(results, pairedResult(fmt.Sprintf("FAN by hand %d", share), "changes/s", true, hands[share]))
	}
	return results, nil
}

// lanesOf is how many batches at a time LANES compares with one.
const lanesOf = 4

// lanes measures the runs of FAN with several batches at a time against the same with one.
func lanes(ctx context.Context, t *target, n size) (_ []result, err error) {
	w := durable.Define("fan", func(ctx context.Context, _ int) (int, error) { return steps(ctx, fanSteps) })
	round := 0
	rate := func(ctx context.Context) func() (float64, error) {
		return func() (float64, error) {
			round++
			d, err := crowd(ctx, w, round)
			return float64(fanRuns*fanChanges) / d.Seconds(), err
		}
	}
	var measured []pair
	err = withLanes(ctx, t, 1, w, func(one context.Context) error {
		return withLanes(ctx, t, lanesOf, w, func(several context.Context) (err error) {
			measured, err = pairs(n.fanPairs, rate(one), rate(several))
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return []result{pairedResult(fmt.Sprintf("LANES %d", lanesOf), "changes/s", true, measured)}, nil
}

// withLanes opens a new store that takes so many batches at a time, and an engine for w.
func withLanes(ctx context.Context, t *target, lanes int, w durable.Definition, fn func(context.Context) error) (err error) {
	address, err := t.create(ctx)
	if err != nil {
		return err
	}
	s, err := postgres.OpenOptions(address, postgres.Options{Lanes: lanes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error { return fn(ctx) }, w)
}

// crowd brings fanRuns runs from start to result, fanAtOnce at a time.
func crowd(ctx context.Context, w *durable.Workflow[int, int], round int) (time.Duration, error) {
	next := make(chan int)
	errs := make(chan error, fanAtOnce)
	began := time.Now()
	var workers sync.WaitGroup
	for range fanAtOnce {
		workers.Go(func() {
			for i := range next {
				if _, err := w.Run(ctx, fmt.Sprintf("fan-%d-%d", round, i), i); err != nil {
					select {
					case errs <- err:
					default: // one is enough
					}
				}
			}
		})
	}
	for i := range fanRuns {
		next <- i
	}
	close(next)
	workers.Wait()
	took := time.Since(began)
	select {
	case err := <-errs:
		return 0, err
	default:
		return took, nil
	}
}
