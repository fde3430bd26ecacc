package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// The bodies of OVERHEAD, and how many of them a block has.
const (
	overheadBody  = 10 * time.Millisecond
	overheadBlock = 20
)

// overhead measures what a checkpoint adds to a step that does something: bodies
// of 10 ms as the steps of a run, against the same bodies in a plain loop.
func overhead(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	body := func() { time.Sleep(overheadBody) }
	work := newStepper()
	work.body = body
	w := durable.Define("overhead", work.work)
	var measured []pair
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		run, err := w.Start(ctx, "overhead", 0)
		if err != nil {
			return err
		}
		plain := func() (float64, error) {
			began := time.Now()
			for range overheadBlock {
				body()
			}
			return micros(time.Since(began)) / overheadBlock, nil
		}
		ours := func() (float64, error) {
			took, err := work.block(ctx, run, overheadBlock)
			return micros(took) / overheadBlock, err
		}
		if measured, err = pairs(n.fanPairs, plain, ours); err != nil {
			return err
		}
		close(work.blocks)
		_, err = run.Wait(ctx)
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{pairedResult("OVERHEAD", "us/step", false, measured)}, nil
}
