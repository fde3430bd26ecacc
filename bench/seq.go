package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// seq measures the steps of a lone run of 1,000 steps, each a separate durable
// commit, against single inserts; the same commits in the store itself; and steps without an
// engine that do what an engine promises of a step (see bare).
func seq(ctx context.Context, t *target, n size) ([]result, error) {
	work := newStepper()
	w := durable.Define("seq", work.work)
	var measured, hands, alike []pair
	err := withFloor(ctx, t, func(ctx context.Context, f *floor) (err error) {
		r := &lone{work: work, workflow: w}
		measured, err = pairs(n.pairs, perOp(ctx, f.singles), func() (float64, error) { return r.block(ctx) })
		if err != nil {
			return err
		}
		hands, err = byHand(t, n.pairs, perOp(ctx, f.singles), func(h *hand) block { return h.steps(blockSize) })
		if err = errors.Join(err, r.end(ctx)); err != nil {
			return err
		}
		alike, err = byHand(t, n.pairs, perOp(ctx, f.singles), func(h *hand) block { return h.promised(blockSize) })
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{
		pairedResult("SEQ", "us/step", false, measured),
		pairedResult("SEQ by hand", "us/step", false, hands),
		pairedResult("SEQ alike", "us/step", false, alike),
	}, nil
}

// perOp turns a floor into a block whose value is microseconds an operation.
func perOp(ctx context.Context, ops func(context.Context, int) (time.Duration, error)) block {
	return func() (float64, error) {
		d, err := ops(ctx, blockSize)
		return micros(d) / blockSize, err
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// lone makes blocks of steps in runs one after the other, blocksPerRun each.
type lone struct {
	work     *stepper
	workflow *durable.Workflow[int, int]
	run      *durable.Run[int]
	blocks   int // made in run
	runs     int
}

func (l *lone) block(ctx context.Context) (float64, error) {
	if l.blocks == blocksPerRun {
		if err := l.end(ctx); err != nil {
			return 0, err
		}
	}
	if l.run == nil {
		l.runs++
		var err error
		if l.run, err = l.workflow.Start(ctx, fmt.Sprintf("seq-%d", l.runs), l.runs); err != nil {
			return 0, err
		}
	}
	l.blocks++
	d, err := l.work.block(ctx, l.run, blockSize)
	return micros(d) / blockSize, err
}

// end lets the run end.
func (l *lone) end(ctx context.Context) error {
	if l.run == nil {
		return nil
	}
	close(l.work.blocks)
	_, err := l.run.Wait(ctx)
	l.work.blocks = make(chan int)
	l.run, l.blocks = nil, 0
	return err
}
