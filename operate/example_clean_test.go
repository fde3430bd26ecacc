package operate_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func ExampleOperator_Clean() {
	greet := durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, "say", func(context.Context) (string, error) { return "hello " + name, nil })
	})
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: []durable.Definition{greet}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	defer func() { _ = eng.Close() }()
	ctx := durable.NewContext(context.Background(), eng)
	if _, err := greet.Run(ctx, "greet-1", "Ada"); err != nil {
		panic(err)
	}

	c, err := operate.On(eng).Clean(ctx, operate.CleanOptions{Retention: &durable.Retention{KeepFor: 7 * 24 * time.Hour, KeepFailed: true}, DryRun: true})
	fmt.Println("a week old:", c.Runs, err)
	c, err = operate.On(eng).Clean(ctx, operate.CleanOptions{All: true, Statuses: []store.Status{store.Completed}})
	fmt.Println("completed:", c.Runs, err)
	// Output:
	// a week old: 0 <nil>
	// completed: 1 <nil>
}
