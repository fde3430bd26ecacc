package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// openCurves are those of an engine that begins to serve a store.
var openCurves = slices.Concat(
	findings(firstClaim,
		curve{name: "open to first claim", goal: within(300 * time.Millisecond)},
		curve{name: "open to a due run behind what was cut off"},
	),
	[]curve{
		// It waits for what it reports, for five seconds at most.
		{name: "Recover", goal: within(5500 * time.Millisecond), once: true, run: func(ctx context.Context, s *scaled) error {
			return withEngine(ctx, s.Store, func(context.Context, *durable.Engine) error { return nil }, dashWorkflow)
		}},
	},
)

// firstClaim opens the store, and an engine that recovers, and measures how long it takes until it
// executes any run, and until it executes one that is due: those that were cut off, one of a
// thousand, go before that.
func firstClaim(ctx context.Context, s *scaled) (map[string]float64, error) {
	first, due := make(chan time.Time, 1), make(chan time.Time, 1)
	note := func(c chan time.Time) {
		select {
		case c <- time.Now():
		default: // it was not the first
		}
	}
	cutOff := durable.Define(dashWorkflow.Name(), func(ctx context.Context, fate string) (string, error) {
		note(first)
		return dashOrder(ctx, fate)
	})
	w := durable.Define("first", func(context.Context, int) (int, error) {
		note(first)
		note(due)
		return 0, nil
	})
	if _, err := durable.Ref[int, int](w.Name()).Start(durable.NewContext(ctx, s.engine), "first", 0); err != nil {
		return nil, err
	}
	began := time.Now()
	st, err := connect(s.t.name, s.t.mode, s.address)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var found map[string]float64
	eng, err := durable.Open(ctx, st, durable.Options{Grace: -1, Workflows: []durable.Definition{w, cutOff}})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	recovered := make(chan struct{})
	go func() {
		_, err := durable.Recover(durable.NewContext(ctx, eng))
		if err != nil {
			stop(err)
		}
		close(recovered)
	}()
	select {
	case at := <-due:
		found = map[string]float64{
			"open to first claim":                       milliseconds((<-first).Sub(began)),
			"open to a due run behind what was cut off": milliseconds(at.Sub(began)),
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	err = errors.Join(err, eng.Close())
	<-recovered
	return found, err
}
