package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// careSteps is how many steps the runs of CARE have.
const careSteps = 50

// care measures the cost of maintenance: VERIFY, the events that VerifyAll checks in a
// second, and RETENTION, the ended runs that Clean deletes in a second. Each round
// makes its own runs, which are gone when it ends.
func care(ctx context.Context, t *target, n size) ([]result, error) {
	s, err := t.open()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	w := durable.Define("care", func(ctx context.Context, _ int) (int, error) { return steps(ctx, careSteps) })
	var verified, deleted []float64
	err = withEngine(ctx, s, func(ctx context.Context, eng *durable.Engine) error {
		for round := range n.rounds {
			if err := startAndEnd(ctx, w, round, n.careRuns); err != nil {
				return err
			}
			events, began := 0, time.Now()
			for v, err := range operate.On(eng).VerifyAll(ctx, store.Filter{}) {
				if err != nil {
					return err
				}
				if !v.Sound() {
					return fmt.Errorf("run %s is not sound: %v", v.RunID, v.Findings)
				}
				events += v.Events
			}
			verified = append(verified, float64(events)/time.Since(began).Seconds())
			began = time.Now()
			c, err := operate.On(eng).Clean(ctx, operate.CleanOptions{All: true})
			if err != nil {
				return err
			}
			if c.Runs != n.careRuns {
				return fmt.Errorf("%d runs were deleted of %d", c.Runs, n.careRuns)
			}
			deleted = append(deleted, float64(c.Runs)/time.Since(began).Seconds())
		}
		return nil
	}, w)
	if err != nil {
		return nil, err
	}
	return []result{plainResult("VERIFY", "events/s", verified), plainResult("RETENTION", "runs/s", deleted)}, nil
}

// startAndEnd creates ended runs, a few at a time.
func startAndEnd(ctx context.Context, w *durable.Workflow[int, int], round, runs int) error {
	const callers = 32
	errs := make([]error, callers)
	var all sync.WaitGroup
	for k := range callers {
		all.Go(func() {
			for i := k; i < runs && errs[k] == nil; i += callers {
				_, errs[k] = w.Run(ctx, fmt.Sprintf("care-%d-%d", round, i), i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
