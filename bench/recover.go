package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

const (
	// cutSteps is how many steps a run of RECOVER has, and cutAt after how many of them its
	// process is killed.
	cutSteps = 10
	cutAt    = 5
)

// recoverRuns measures how long a process takes, from its start, to carry on and to end the runs
// that were cut off in the middle when the one before it was killed.
func recoverRuns(ctx context.Context, t *target, n size) ([]result, error) {
	var all, claims, cpu []float64
	for range n.recoverRounds {
		address, err := t.create(ctx)
		if err != nil {
			return nil, err
		}
		o := orders{Role: "cut off", Store: t.name, Mode: t.mode, Address: address, Runs: n.recoverRuns}
		if _, err := o.carryOut(ctx, nil); err == nil {
			return nil, errors.New("the process that was to be killed has ended")
		} else if killed := (*killedError)(nil); !errors.As(err, &killed) {
			return nil, err
		}
		began := time.Now()
		o.Role = "recover"
		var r recovered
		c, err := o.carryOut(ctx, &r)
		if err != nil {
			return nil, err
		}
		all = append(all, micros(time.Unix(0, r.Done).Sub(began))/1000)
		claims = append(claims, micros(time.Unix(0, r.First).Sub(began))/1000)
		cpu = append(cpu, micros(c.used)/float64(n.recoverRuns))
	}
	return []result{plainResult("RECOVER", "ms", all), plainResult("RECOVER first", "ms", claims), plainResult("RECOVER CPU", "us/run", cpu)}, nil
}

// recovered is what a process that recovers says: when the first body began, and when all runs had
// ended, in Unix nanoseconds.
type recovered struct{ First, Done int64 }

// cutWorkflow is the workflow of RECOVER; before is called before each step.
func cutWorkflow(before func(step int)) *durable.Workflow[int, int] {
	return durable.Define("cut", func(ctx context.Context, n int) (int, error) {
		for i := range cutSteps {
			v, err := durable.Step(ctx, "step", func(context.Context) (int, error) { before(i); return i, nil })
			if err != nil {
				return 0, err
			}
			n += v
		}
		return n, nil
	})
}

// cutOffChild starts the runs of RECOVER, and kills itself when each of them is in the middle.
func cutOffChild(ctx context.Context, o orders, s store.Store, _ io.Writer) error {
	var there atomic.Int64
	all := make(chan struct{})
	w := cutWorkflow(func(step int) {
		if step == cutAt {
			if there.Add(1) == int64(o.Runs) {
				close(all)
			}
			<-ctx.Done()
		}
	})
	return withOptions(ctx, s, durable.Options{Workflows: []durable.Definition{w}, MaxRuns: o.Runs}, func(ctx context.Context, _ *durable.Engine) error {
		if _, err := w.StartAll(ctx, pile("cut", o.Runs)); err != nil {
			return err
		}
		select {
		case <-all:
		case <-ctx.Done():
			return ctx.Err()
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := self.Kill(); err != nil {
			return err
		}
		select {} // until it is dead
	})
}

// recoverChild recovers the runs of RECOVER, and ends when all have ended.
func recoverChild(ctx context.Context, o orders, s store.Store, out io.Writer) error {
	var r recovered
	var first, last atomic.Int64
	ending := make(chan struct{})
	w := cutWorkflow(func(step int) {
		first.CompareAndSwap(0, time.Now().UnixNano())
		if step == cutSteps-1 && last.Add(1) == int64(o.Runs) {
			close(ending)
		}
	})
	err := withOptions(ctx, s, durable.Options{Workflows: []durable.Definition{w}, MaxRuns: o.Runs}, func(ctx context.Context, _ *durable.Engine) error {
		select {
		case <-ending:
		case <-ctx.Done():
			return ctx.Err()
		}
		for {
			n, err := s.Count(ctx, store.Filter{Statuses: []store.Status{store.Completed}}, "")
			if err != nil {
				return err
			}
			if r.Done = time.Now().UnixNano(); n[""] == int64(o.Runs) {
				r.First = first.Load()
				return nil
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
