package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func counts(s store.Store) store.Counts {
	if m := store.CapabilitiesOf(s).Meter; m != nil {
		return m.Counts()
	}
	return store.Counts{}
}

// statements counts what a step costs the database.
func statements(ctx context.Context, t *target, _ size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	const n = 1000
	work := newStepper()
	w := durable.Define("statements", work.work)
	var all, reads, commits float64
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		run, err := w.Start(ctx, "statements", 0)
		if err != nil {
			return err
		}
		if _, err := work.block(ctx, run, 1); err != nil { // the start is not counted
			return err
		}
		before := counts(s)
		if _, err := work.block(ctx, run, n); err != nil {
			return err
		}
		after := counts(s)
		all = float64(after.Statements-before.Statements) / n
		reads = float64(after.Reads-before.Reads) / n
		commits = float64(after.Commits-before.Commits) / n
		close(work.blocks)
		_, err = run.Wait(ctx)
		return err
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{
		plainResult("STATEMENTS", "statements/step", []float64{all}),
		plainResult("STATEMENTS reads", "reads/step", []float64{reads}),
		plainResult("STATEMENTS commits", "commits/step", []float64{commits}),
	}, nil
}

// Fewer than settledBelow statements a second are heartbeats, and not the end of some
// work.
const settledBelow = 10

// settled waits until s is at rest. It takes at least a second, so that what is
// counted next does not begin with the heartbeat of Open and end just before one.
func settled(ctx context.Context, s store.Store) error {
	for {
		before := counts(s).Statements
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		if counts(s).Statements-before < settledBelow {
			return nil
		}
	}
}

// statementRate returns how many statements a second s sends to the database, over a
// while.
func statementRate(ctx context.Context, s store.Store, while time.Duration) (float64, error) {
	before := counts(s).Statements
	if err := pause(ctx, while); err != nil {
		return 0, err
	}
	return float64(counts(s).Statements-before) / while.Seconds(), nil
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
