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

// idle counts what an engine with nothing to do costs the database.
func idle(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	w := durable.Define("idle", func(context.Context, int) (int, error) { return 0, nil })
	var rate float64
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		// A run that came and went, so that the engine is idle and not unused.
		if _, err := w.Run(ctx, "idle", 0); err != nil {
			return err
		}
		before := counts(s)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(n.idle) * time.Second):
		}
		rate = float64(counts(s).Statements-before.Statements) / float64(n.idle)
		return nil
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{plainResult("IDLE", "statements/s", []float64{rate})}, nil
}
