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

var asleepCurves = findings(asleep,
	curve{name: "asleep: open to first claim", goal: within(2 * time.Second)},
	curve{name: "asleep: heap", unit: "MB", goal: goal{most: 50}},
	curve{name: "asleep: memory of the process", unit: "MB"},
)

// asleepFor is how long the runs of a store sleep in which all do.
const asleepFor = 24 * time.Hour

// asleepWorkflow sleeps if its input is positive; else it calls woken.
func asleepWorkflow(woken func()) *durable.Workflow[time.Duration, int] {
	return durable.Define("asleep", func(ctx context.Context, d time.Duration) (int, error) {
		if d > 0 {
			return 0, durable.Sleep(ctx, d)
		}
		woken()
		return 0, nil
	})
}

// asleep measures a process that opens a store in which all runs sleep but one: the time from its
// start until it executes that one, and its memory when it has recovered.
func asleep(ctx context.Context, s *scaled) (found map[string]float64, err error) {
	address, err := newAsleep(ctx, s.t, s.runs)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.t.remove(address)) }()
	var r risen
	began := time.Now()
	o := orders{Role: "asleep", Store: s.t.name, Mode: s.t.mode, Address: address}
	if _, err := o.carryOut(ctx, &r); err != nil {
		return nil, err
	}
	return map[string]float64{
		"asleep: open to first claim":   milliseconds(time.Unix(0, r.First).Sub(began)),
		"asleep: heap":                  r.Heap,
		"asleep: memory of the process": r.Resident,
	}, nil
}

// newAsleep makes a store in which so many runs sleep, and one is pending.
func newAsleep(ctx context.Context, t *target, runs int) (address string, err error) {
	if address, err = t.create(ctx); err != nil {
		return "", err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := asleepWorkflow(func() {})
	err = withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		if _, err := w.Start(ctx, "sample", asleepFor); err != nil {
			return err
		}
		_, err := dashSampleOf(ctx, s, "sample")
		return err
	}, w)
	if err != nil {
		return "", err
	}
	wake := int64(store.TimeOf(time.Now().Add(asleepFor)))
	set := map[string]string{"id": "'asleep-' || i", "created_at": "t.created_at + i", "wake_at": fmt.Sprintf("%d + i", wake), "owner": "''"}
	if err := copyRuns(ctx, t, address, "sample", runs-1, set); err != nil {
		return "", err
	}
	if err := t.settle(ctx, address); err != nil {
		return "", err
	}
	return address, withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		_, err := durable.Ref[time.Duration, int](w.Name()).Start(ctx, "first", 0)
		return err
	})
}

// risen is what a process says that has opened such a store: when the first body began, in Unix
// nanoseconds, and its memory in MB.
type risen struct {
	First          int64
	Heap, Resident float64
}

// asleepChild opens an engine that serves the runs that sleep.
func asleepChild(ctx context.Context, _ orders, s store.Store, out io.Writer) error {
	first := make(chan int64, 1)
	var r risen
	w := asleepWorkflow(func() { first <- time.Now().UnixNano() })
	err := withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		select {
		case r.First = <-first:
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := footprintNow()
		r.Heap, r.Resident = growth(0, now.heap), growth(0, now.resident)
		return err
	}, w)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
