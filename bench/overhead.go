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
// of 10 ms as the steps of a run, against the same bodies in a plain loop, and
// against a loop that makes a single insert behind each, as one would by hand.
func overhead(ctx context.Context, t *target, n size) ([]result, error) {
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
	body := func() { time.Sleep(overheadBody) }
	work := newStepper()
	work.body = body
	w := durable.Define("overhead", work.work)
	var plainPairs, handPairs []pair
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		run, err := w.Start(ctx, "overhead", 0)
		if err != nil {
			return err
		}
		loop := func(behind func() error) block {
			return func() (float64, error) {
				began := time.Now()
				for range overheadBlock {
					body()
					if err := behind(); err != nil {
						return 0, err
					}
				}
				return micros(time.Since(began)) / overheadBlock, nil
			}
		}
		plain := loop(func() error { return nil })
		byHand := loop(func() error { _, err := f.singles(ctx, 1); return err })
		ours := func() (float64, error) {
			took, err := work.block(ctx, run, overheadBlock)
			return micros(took) / overheadBlock, err
		}
		if plainPairs, err = pairs(n.fanPairs, plain, ours); err != nil {
			return err
		}
		if handPairs, err = pairs(n.fanPairs, byHand, ours); err != nil {
			return err
		}
		close(work.blocks)
		_, err = run.Wait(ctx)
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{pairedResult("OVERHEAD", "us/step", false, plainPairs), pairedResult("OVERHEAD by hand", "us/step", false, handPairs)}, nil
}
