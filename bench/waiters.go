package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

const (
	waiters = 1000
	// waitersFor is how long they are watched, after as long a time until they look as rarely as they
	// ever do.
	waitersFor = 4 * time.Second
	// waitersGoal: before they shared their looks they used 36 on SQLite and 53 on PostgreSQL.
	waitersGoal = 5
)

var waiterCurves = findings(waitElsewhere,
	curve{name: "1,000 waiters for one run elsewhere", unit: "ms CPU/s", goal: goal{most: waitersGoal}},
	curve{name: "1,000 waiters for as many runs", unit: "ms CPU/s", goal: goal{most: waitersGoal}},
)

// waitElsewhere measures the CPU time of a process that waits for runs that another one has.
func waitElsewhere(ctx context.Context, s *scaled) (map[string]float64, error) {
	found := map[string]float64{}
	for name, runs := range map[string]int{"1,000 waiters for one run elsewhere": 1, "1,000 waiters for as many runs": waiters} {
		o := orders{Role: "waiters", Store: s.t.name, Mode: s.t.mode, Address: s.address, Runs: runs, Window: s.window(waitersFor)}
		var used float64
		if _, err := o.carryOut(ctx, &used); err != nil {
			return nil, err
		}
		found[name] = used
	}
	return found, nil
}

// waitersChild waits for runs that sleep, and says how many milliseconds of CPU time a second that
// took.
func waitersChild(ctx context.Context, o orders, s store.Store, out io.Writer) error {
	var used float64
	err := unrecovered(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		page, err := s.List(ctx, store.Filter{Statuses: []store.Status{store.Waiting}, Workflows: []string{dashWorkflow.Name()}, Limit: o.Runs})
		if err != nil {
			return err
		}
		if len(page.Runs) == 0 {
			return errors.New("no run sleeps")
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		ended := make(chan error, waiters)
		for i := range waiters {
			h, err := dashWorkflow.Handle(ctx, page.Runs[i%len(page.Runs)].ID)
			if err != nil {
				return err
			}
			go func() {
				_, err := h.Wait(ctx)
				ended <- err
			}()
		}
		if err := pause(ctx, o.Window); err != nil {
			return err
		}
		began, cpu := time.Now(), cpuTime()
		select {
		case err := <-ended:
			return fmt.Errorf("a run is to sleep: %w", err)
		case <-time.After(o.Window):
		case <-ctx.Done():
			return ctx.Err()
		}
		used = milliseconds(cpuTime()-cpu) / time.Since(began).Seconds()
		return nil
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(used)
}
