package main

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// liveMost is how many runs one process executes at most here: a million would take most of the
// memory of a machine.
const liveMost = 100_000

var liveCurves = findings(live,
	curve{name: "live runs in one process", unit: "B/run", most: liveMost, goal: goal{most: 15_000}},
)

// live measures the memory of a process that executes as many runs as the store has.
func live(ctx context.Context, s *scaled) (map[string]float64, error) {
	var perRun float64
	err := alone(ctx, s.t, orders{Role: "live", Runs: s.runs}, &perRun)
	return map[string]float64{"live runs in one process": perRun}, err
}

// liveChild executes runs that have made a step, and says how many bytes each takes.
func liveChild(ctx context.Context, o orders, s store.Store, out io.Writer) error {
	var there atomic.Int64
	all, over := make(chan struct{}), make(chan struct{})
	want := int64(1)
	w := durable.Define("live", func(ctx context.Context, _ int) (int, error) {
		n, err := steps(ctx, 1)
		if err != nil {
			return 0, err
		}
		if there.Add(1) == want {
			close(all)
		}
		select {
		case <-over:
		case <-ctx.Done():
		}
		return n, nil
	})
	var before, after footprint
	err := withOptions(ctx, s, durable.Options{Workflows: []durable.Definition{w}, MaxRuns: o.Runs + 1}, func(ctx context.Context, _ *durable.Engine) (err error) {
		if _, err := w.Start(ctx, "warm", 0); err != nil {
			return err
		}
		if err := comes(ctx, all); err != nil {
			return err
		}
		if before, err = footprintNow(); err != nil {
			return err
		}
		all = make(chan struct{})
		want += int64(o.Runs)
		if _, err := w.StartAll(ctx, pile("live", o.Runs)); err != nil {
			return err
		}
		if err := comes(ctx, all); err != nil {
			return err
		}
		after, err = footprintNow()
		return err
	})
	if err != nil {
		return err
	}
	used := growth(before.resident, after.resident)
	if after.resident == 0 {
		used = growth(before.heap, after.heap)
	}
	return json.NewEncoder(out).Encode(used * 1e6 / float64(o.Runs))
}

func comes(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
