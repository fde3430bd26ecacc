package durabletest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
)

type warehouse struct{ reserved map[string]int }

func (w *warehouse) order(ctx context.Context, item string) (string, error) {
	left, err := durable.Step(ctx, "reserve", func(ctx context.Context) (int, error) {
		w.reserved[durable.IdempotencyKey(ctx)] = 1 // once, however often it runs
		return 10 - len(w.reserved), nil
	})
	return fmt.Sprintf("%s reserved, %d left", item, left), err
}

func ExampleSurvives() {
	_ = func(t *testing.T) { // in a test:
		w := &warehouse{}
		durabletest.Survives(t, durable.Define("order", w.order), "book",
			durabletest.Reset(func() { w.reserved = map[string]int{} }))
	}
}

func ExampleSimulate() {
	_ = func(t *testing.T) { // in a test:
		w := &warehouse{}
		durabletest.Simulate(t,
			durabletest.Of(durable.Define("order", w.order), "book",
				durabletest.Reset(func() { w.reserved = map[string]int{} }),
				durabletest.World(func() any { return w.reserved }),
				durabletest.Sample(10)))
	}
}

func ExampleReplays() {
	w := &warehouse{}
	_ = func(t *testing.T) { // in a test:
		// Written by: durable checkpoints export order-42 --output testdata/runs/order-42.run
		durabletest.Replays(t, "testdata/runs/*.run",
			[]durable.Definition{durable.Define("order", w.order)})
	}
}

func TestTheExampleSurvives(t *testing.T) {
	w := &warehouse{}
	durabletest.Survives(t, durable.Define("order", w.order), "book",
		durabletest.Reset(func() { w.reserved = map[string]int{} }))
}
