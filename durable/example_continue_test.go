package durable_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// page is where a long list has been read to.
type page struct{ From, Sum int }

// A job that reads a long list keeps its history short: each page is a
// generation of its own.
func ExampleContinue() {
	total := durable.Define("total", func(ctx context.Context, p page) (int, error) {
		part, err := durable.Step(ctx, "read", func(context.Context) (int, error) {
			return p.From + 1, nil
		})
		if err != nil {
			return 0, err
		}
		next := page{From: p.From + 1, Sum: p.Sum + part}
		if next.From == 3 {
			return next.Sum, nil
		}
		return 0, durable.Continue(ctx, next)
	})
	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{total}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)

	sum, err := total.Run(ctx, "total", page{})
	fmt.Println(sum, err)
	generations, err := operate.On(eng).Generations(ctx, "total")
	fmt.Println(len(generations), "generations", err)
	// Output:
	// 6 <nil>
	// 3 generations <nil>
}

func ExampleEngine_Pause() {
	greet := durable.Define("greet", func(ctx context.Context, _ int) (string, error) {
		name, err := durable.Await[string](ctx, "name")
		return "hello " + name, err
	})
	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{greet}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		panic(err)
	}

	run, err := greet.Start(ctx, "greet-1", 0)
	if err != nil {
		panic(err)
	}
	fmt.Println(eng.Pause(ctx, run.ID(), "the other side is down"))
	fmt.Println(eng.Signal(ctx, run.ID(), "name", "Ada")) // kept until it goes on
	fmt.Println(eng.Unpause(ctx, run.ID()))
	fmt.Println(run.Wait(ctx))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// hello Ada <nil>
}
