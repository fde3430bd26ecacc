package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// replaySteps is the length of the history that is resumed.
const replaySteps = 5000

// replay measures how fast a run with a long history gets back to where it was: from
// the call of Recover, which claims it, to the first new line of the workflow.
func replay(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	reached := make(chan time.Time, 1)
	w := durable.Define("replay", func(ctx context.Context, _ int) (int, error) {
		sum, err := steps(ctx, replaySteps)
		if err != nil {
			return 0, err
		}
		reached <- time.Now()
		<-ctx.Done() // until the engine is closed
		return sum, context.Cause(ctx)
	})
	// The first engine writes the history and is closed; each one after it
	// replays it and is closed in turn.
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		if _, err := w.Start(ctx, "replay", 0); err != nil {
			return err
		}
		_, err := arrival(ctx, reached)
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	var rates []float64
	for range n.rounds {
		took, err := resume(ctx, s, w, reached)
		if err != nil {
			return nil, err
		}
		rates = append(rates, replaySteps/took.Seconds())
	}
	return []result{plainResult("REPLAY", "events/s", rates)}, nil
}

// resume opens an engine, has it recover the run, and returns how long the run
// took to get back to where it was.
func resume(ctx context.Context, s store.Store, def durable.Definition, reached <-chan time.Time) (time.Duration, error) {
	eng, err := durable.Open(ctx, s, durable.Options{Workflows: []durable.Definition{def}, Grace: -1})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := durable.Recover(durable.NewContext(ctx, eng)); err != nil {
		return 0, errors.Join(err, eng.Close())
	}
	at, err := arrival(ctx, reached)
	return at.Sub(began), errors.Join(err, eng.Close())
}

// arrival waits for the workflow to reach its first new line.
func arrival(ctx context.Context, reached <-chan time.Time) (time.Time, error) {
	select {
	case at := <-reached:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case <-time.After(time.Minute):
		return time.Time{}, errors.New("the run did not get to the end of its history within a minute")
	}
}
