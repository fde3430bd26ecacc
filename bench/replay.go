package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// replaySteps is the length of the history that is resumed.
const replaySteps = 5000

// shortSteps is the length of a history that costs next to nothing.
const shortSteps = 20

// replay measures how fast a run with a long history gets back to where it was: from
// the call of Recover, which claims it, to the first new line of the workflow. In turn, so that
// they can be compared, it measures that of a run with a short one, which is what each recovery
// takes, and loops that read the same history without an engine.
func replay(ctx context.Context, t *target, n size) ([]result, error) {
	long, err := newReplayed(ctx, t, replaySteps)
	if err != nil {
		return nil, err
	}
	defer long.s.Close()
	short, err := newReplayed(ctx, t, shortSteps)
	if err != nil {
		return nil, err
	}
	defer short.s.Close()
	rows, err := openRowsByHand(ctx, t, long.address)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ways := []struct {
		name string
		per  float64 // events
		once func() (took, cpu time.Duration, err error)
	}{
		{"REPLAY", replaySteps, func() (time.Duration, time.Duration, error) { return resume(ctx, long.s, long.w, long.reached) }},
		{"REPLAY short", 0, func() (time.Duration, time.Duration, error) { return resume(ctx, short.s, short.w, short.reached) }},
		{"REPLAY by hand", replaySteps, clocked(func() error { return replayByHand(ctx, long.s, replayID) })},
		{"REPLAY rows by hand", replaySteps, clocked(func() error { return rows.replay(ctx, replayID) })},
	}
	rates, costs := make([][]float64, len(ways)), make([][]float64, len(ways))
	for range n.rounds {
		for i, w := range ways {
			took, cpu, err := w.once()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if w.per == 0 {
				rates[i], costs[i] = append(rates[i], micros(took)), append(costs[i], micros(cpu))
				continue
			}
			rates[i], costs[i] = append(rates[i], w.per/took.Seconds()), append(costs[i], micros(cpu)/w.per)
		}
	}
	var results []result
	for i, w := range ways {
		rate, cost := "events/s", "us/event"
		if w.per == 0 {
			rate, cost = "us/run", "us/run"
		}
		results = append(results, plainResult(w.name, rate, rates[i]))
		if slices.Max(costs[i]) > 0 {
			results = append(results, plainResult(w.name+" CPU", cost, costs[i]))
		}
	}
	return results, nil
}

// clocked returns what measures a call.
func clocked(call func() error) func() (took, cpu time.Duration, err error) {
	return func() (took, cpu time.Duration, err error) {
		before, began := cpuTime(), time.Now()
		err = call()
		return time.Since(began), cpuTime() - before, err
	}
}

// replayID is the id of the run that is resumed.
const replayID = "replay"

// replayed is a run that has made its steps, in a store of its own.
type replayed struct {
	s       store.Store
	address string
	w       durable.Definition
	reached chan time.Time // gets when the workflow has come to its first new line
}

// newReplayed makes a run of so many steps. The engine that writes the history is closed; each one
// after it replays it and is closed in turn.
func newReplayed(ctx context.Context, t *target, n int) (*replayed, error) {
	address, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	r := &replayed{address: address, reached: make(chan time.Time, 1)}
	if r.s, err = connect(t.name, t.mode, address); err != nil {
		return nil, err
	}
	w := durable.Define(replayID, func(ctx context.Context, _ int) (int, error) {
		sum, err := steps(ctx, n)
		if err != nil {
			return 0, err
		}
		r.reached <- time.Now()
		<-ctx.Done() // until the engine is closed
		return sum, context.Cause(ctx)
	})
	r.w = w
	err = withEngine(ctx, r.s, func(ctx context.Context, _ *durable.Engine) error {
		if _, err := w.Start(ctx, replayID, 0); err != nil {
			return err
		}
		_, err := arrival(ctx, r.reached)
		return err
	}, w)
	if err == nil {
		err = t.settle(ctx, address) // what other cases have written is not written while this one reads
	}
	if err != nil {
		return nil, errors.Join(err, r.s.Close())
	}
	return r, nil
}

// resume opens an engine, has it recover the run, and returns how long the
// run took to get back to where it was, and the CPU time that the process has used by then.
func resume(ctx context.Context, s store.Store, def durable.Definition, reached <-chan time.Time) (took, cpu time.Duration, err error) {
	err = unrecovered(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		before, began := cpuTime(), time.Now()
		if _, err := durable.Recover(ctx); err != nil {
			return err
		}
		at, err := arrival(ctx, reached)
		took, cpu = at.Sub(began), cpuTime()-before
		return err
	}, def)
	return took, cpu, err
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
