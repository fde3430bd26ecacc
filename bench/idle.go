package main

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// rest is what an engine with nothing to do has cost.
type rest struct {
	Statements float64 // a second
	CPU        float64 // ms a second
}

// idle measures what an engine with nothing to do costs the database, and the machine. It does so
// in a process of its own: what other cases have left behind would count.
func idle(ctx context.Context, t *target, n size) ([]result, error) {
	var r rest
	if err := alone(ctx, t, orders{Role: "idle", Idle: time.Duration(n.idle) * time.Second, Window: time.Duration(n.idleCPU) * time.Second}, &r); err != nil {
		return nil, err
	}
	return []result{
		plainResult("IDLE", "statements/s", []float64{r.Statements}),
		plainResult("IDLE CPU", "ms/s", []float64{r.CPU}),
	}, nil
}

// idleChild is the process of IDLE. The CPU time is measured first, and is part of the time in
// which statements are counted.
func idleChild(ctx context.Context, o orders, s store.Store, out io.Writer) error {
	w := durable.Define("idle", func(context.Context, int) (int, error) { return 0, nil })
	var r rest
	err := withEngine(ctx, s, func(ctx context.Context, _ *durable.Engine) error {
		// One run starts and ends, so that the engine is idle rather than unused.
		if _, err := w.Run(ctx, "idle", 0); err != nil {
			return err
		}
		if err := settled(ctx, s); err != nil {
			return err
		}
		// The heartbeat after a run looks at what has changed, and is part of the run.
		if err := pause(ctx, min(o.Idle, durable.DefaultLease/3+time.Second)); err != nil {
			return err
		}
		began, sent, cpu := time.Now(), counts(s).Statements, cpuTime()
		if err := pause(ctx, o.Window); err != nil {
			return err
		}
		r.CPU = float64((cpuTime() - cpu).Microseconds()) / 1000 / time.Since(began).Seconds()
		if err := pause(ctx, o.Idle-time.Since(began)); err != nil {
			return err
		}
		r.Statements = float64(counts(s).Statements-sent) / time.Since(began).Seconds()
		return nil
	}, w)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}
