package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// blockSize is the number of operations in a block of a paired case.
const blockSize = 200

// blocksPerRun makes a run of SEQ one of 1,000 steps.
const blocksPerRun = 5

// withEngine opens an engine on s for these workflows, recovers, calls fn, and
// closes the engine.
func withEngine(ctx context.Context, s store.Store, fn func(context.Context, *durable.Engine) error, defs ...durable.Definition) error {
	return withOptions(ctx, s, durable.Options{Workflows: defs}, fn)
}

// unrecovered is withEngine without a Recover, which reads through the runs that wait, in the
// background too: a million would take part of the time of what is measured.
func unrecovered(ctx context.Context, s store.Store, fn func(context.Context, *durable.Engine) error, defs ...durable.Definition) error {
	eng, err := durable.Open(ctx, s, durable.Options{Workflows: defs, Grace: -1})
	if err != nil {
		return err
	}
	return errors.Join(fn(durable.NewContext(ctx, eng), eng), eng.Close())
}

func withOptions(ctx context.Context, s store.Store, o durable.Options, fn func(context.Context, *durable.Engine) error) error {
	o.Grace = -1 // a workflow that still runs when fn returns is interrupted
	eng, err := durable.Open(ctx, s, o)
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		return errors.Join(err, eng.Close())
	}
	return errors.Join(fn(ctx, eng), eng.Close())
}

// steps makes n steps with an int result.
func steps(ctx context.Context, n int) (int, error) { return stepsOf(ctx, n, func() {}, 0) }

// stepsOf makes n steps with an int result and this body. The first few, as many as
// relaxed says, are recorded together with a later one.
func stepsOf(ctx context.Context, n int, body func(), relaxed int) (int, error) {
	sum := 0
	for i := range n {
		var o []durable.StepOption
		if i < relaxed {
			o = append(o, durable.Relaxed())
		}
		v, err := durable.Step(ctx, "step", func(context.Context) (int, error) { body(); return i, nil }, o...)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// stepper is a workflow that makes its steps in blocks, on demand, so that a
// block of the floor can be measured between two of them.
type stepper struct {
	blocks chan int // sizes; closed at the end of a run
	took   chan time.Duration
	body   func() // of each step
	// relaxed: the last step of a block records all of them.
	relaxed bool
	// steps, if set, makes the steps of a block in place of stepsOf.
	steps func(ctx context.Context, n int) (int, error)
}

func newStepper() *stepper {
	return &stepper{blocks: make(chan int), took: make(chan time.Duration), body: func() {}}
}

func (s *stepper) work(ctx context.Context, _ int) (int, error) {
	sum := 0
	for n := range s.blocks {
		began := time.Now()
		relaxed := 0
		if s.relaxed {
			relaxed = n - 1
		}
		make := s.steps
		if make == nil {
			make = func(ctx context.Context, n int) (int, error) { return stepsOf(ctx, n, s.body, relaxed) }
		}
		v, err := make(ctx, n)
		if err != nil {
			return 0, err
		}
		sum += v
		s.took <- time.Since(began)
	}
	return sum, nil
}

// block makes the run make n steps. It returns an error if the run ended instead.
func (s *stepper) block(ctx context.Context, run *durable.Run[int], n int) (time.Duration, error) {
	ended := make(chan error, 1)
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, err := run.Wait(watch)
		ended <- err
	}()
	s.blocks <- n
	select {
	case d := <-s.took:
		return d, nil
	case err := <-ended:
		return 0, fmt.Errorf("the run ended in the middle of a block: %w", err)
	}
}
