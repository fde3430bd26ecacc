package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-dev/holdfast/durable"
)

// engineSteps make a block of ENGINE long enough that the start of its run does not
// show in the figure.
const engineSteps = 20_000

// watched is an engine under ENGINE, with or without an SDK that observes it.
type watched struct {
	name    string
	options func() (o durable.Options, stop func(context.Context) error)
	steps   func(ctx context.Context, n int) (int, error) // nil: with an int result
	bare    func(ctx context.Context, n int) error        // nil: there is an engine
	nanos   []float64
	allocs  []float64
}

// unobserved are the options of an engine without an OpenTelemetry SDK.
func unobserved() (durable.Options, func(context.Context) error) {
	return durable.Options{}, func(context.Context) error { return nil }
}

// receipt is a flat struct, as many steps return.
type receipt struct {
	ID       string
	Amount   int64
	Paid     bool
	Currency string
}

// structSteps makes n steps whose result is a receipt.
func structSteps(ctx context.Context, n int) (int, error) {
	sum := 0
	for i := range n {
		v, err := durable.Step(ctx, "step", func(context.Context) (receipt, error) {
			return receipt{ID: "H-7", Amount: int64(i), Paid: true, Currency: "EUR"}, nil
		})
		if err != nil {
			return 0, err
		}
		sum += int(v.Amount)
	}
	return sum, nil
}

// engine measures the library alone: steps on a store without I/O, with an int result
// and with a struct, and those with an int with an OpenTelemetry SDK too.
func engine(ctx context.Context, t *target, n size) ([]result, error) {
	all := []*watched{
		{name: "ENGINE", options: unobserved},
		{name: "ENGINE struct", options: unobserved, steps: structSteps},
		{name: "ENGINE traced", options: func() (durable.Options, func(context.Context) error) {
			p := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSyncer(forgetful{}))
			return durable.Options{TracerProvider: p}, p.Shutdown
		}},
		{name: "ENGINE measured", options: func() (durable.Options, func(context.Context) error) {
			p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
			return durable.Options{MeterProvider: p}, p.Shutdown
		}},
		{name: "ENGINE by hand", bare: bareInts},
		{name: "ENGINE struct by hand", bare: bareReceipts},
	}
	for round := range n.rounds {
		// They alternate within a round, so that noise of a shared machine affects all
		// equally.
		for _, w := range all {
			if err := w.measure(ctx, t, round); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	var results []result
	for _, w := range all {
		results = append(results, plainResult(w.name, "ns/step", w.nanos), plainResult(w.name+" allocations", "allocations/step", w.allocs))
	}
	return results, nil
}

// measure adds one block.
func (w *watched) measure(ctx context.Context, t *target, round int) error {
	if w.bare != nil {
		return w.measureBare(t)
	}
	s, err := t.open() // a new store, so that a round does not carry the data of earlier ones
	if err != nil {
		return err
	}
	work := newStepper()
	work.steps = w.steps
	def := durable.Define("engine", work.work)
	o, stop := w.options()
	o.Workflows = []durable.Definition{def}
	err = withOptions(ctx, s, o, func(ctx context.Context, _ *durable.Engine) error {
		run, err := def.Start(ctx, fmt.Sprintf("engine-%d", round), 0)
		if err != nil {
			return err
		}
		if _, err := work.block(ctx, run, blockSize); err != nil { // warm
			return err
		}
		if err := w.add(func() (time.Duration, error) { return work.block(ctx, run, engineSteps) }); err != nil {
			return err
		}
		close(work.blocks)
		_, err = run.Wait(ctx)
		return err
	})
	return errors.Join(err, stop(ctx), s.Close())
}

// add measures a block, which says how long it took.
func (w *watched) add(block func() (time.Duration, error)) error {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took, err := block()
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	w.nanos = append(w.nanos, float64(took)/float64(time.Nanosecond)/engineSteps)
	w.allocs = append(w.allocs, float64(after.Mallocs-before.Mallocs)/engineSteps)
	return nil
}

// forgetful is an exporter that costs nothing, so that only the library and the SDK are
// measured.
type forgetful struct{}

func (forgetful) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (forgetful) Shutdown(context.Context) error                             { return nil }
