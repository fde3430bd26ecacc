package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// engineSteps make a block of ENGINE long enough that the start of its run is
// no part of the figure.
const engineSteps = 20_000

// engine measures the library alone: steps with an int result on a store
// without I/O.
func engine(ctx context.Context, t *target, n size) ([]result, error) {
	var nanos, allocs []float64
	for round := range n.rounds {
		s, err := t.open() // a new one, so that a round does not carry the data of those before
		if err != nil {
			return nil, err
		}
		work := newStepper()
		w := durable.Define("engine", work.work)
		err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
			run, err := w.Start(ctx, fmt.Sprintf("engine-%d", round), 0)
			if err != nil {
				return err
			}
			if _, err := work.block(ctx, run, blockSize); err != nil { // warm
				return err
			}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took, err := work.block(ctx, run, engineSteps)
			if err != nil {
				return err
			}
			runtime.ReadMemStats(&after)
			nanos = append(nanos, float64(took)/float64(time.Nanosecond)/engineSteps)
			allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/engineSteps)
			close(work.blocks)
			_, err = run.Wait(ctx)
			return err
		}, w)
		if err := s.Close(); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
	}
	return []result{
		plainResult("ENGINE", "ns/step", nanos),
		plainResult("ENGINE allocations", "allocations/step", allocs),
	}, nil
}
