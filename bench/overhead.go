package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// The bodies of OVERHEAD, and how many of them a block has.
const (
	overheadBody  = 10 * time.Millisecond
	overheadBlock = 20
)

// overhead measures what a checkpoint adds to a step that does something: bodies of 10
// ms as the steps of a run, against the same bodies in a plain loop, and against a loop
// with a single insert after each, as a user would write by hand. It also measures
// steps of which only the last of a block is recorded at once, against the plain loop.
func overhead(ctx context.Context, t *target, n size) ([]result, error) {
	body := func() { time.Sleep(overheadBody) }
	strict, relaxed := newStepper(), newStepper()
	strict.body, relaxed.body, relaxed.relaxed = body, body, true
	steppers := []*stepper{strict, relaxed}
	w := durable.Define("overhead", func(ctx context.Context, i int) (int, error) { return steppers[i].work(ctx, 0) })
	plain := bodies(body, func() error { return nil })
	var results []result
	err := withFloor(ctx, t, func(ctx context.Context, f *floor) error {
		byHand := bodies(body, func() error { _, err := f.singles(ctx, 1); return err })
		var runs []*durable.Run[int]
		for i := range steppers {
			run, err := w.Start(ctx, fmt.Sprint("overhead-", i), i)
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		for _, c := range []struct {
			name    string
			floor   block
			stepper int
		}{{"OVERHEAD", plain, 0}, {"OVERHEAD by hand", byHand, 0}, {"OVERHEAD relaxed", plain, 1}} {
			measured, err := pairs(n.fanPairs, c.floor, func() (float64, error) {
				took, err := steppers[c.stepper].block(ctx, runs[c.stepper], overheadBlock)
				return micros(took) / overheadBlock, err
			})
			if err != nil {
				return err
			}
			results = append(results, pairedResult(c.name, "us/step", false, measured))
		}
		for i, run := range runs {
			close(steppers[i].blocks)
			if _, err := run.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	}, w)
	return results, err
}

// bodies is a loop that does something after each body.
func bodies(body func(), behind func() error) block {
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
