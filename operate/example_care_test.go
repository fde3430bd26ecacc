package operate_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func exampleGreet() *durable.Workflow[string, string] {
	return durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return durable.Step(ctx, "say", func(context.Context) (string, error) { return "hello " + name, nil })
	})
}

func exampleCare() (ctx context.Context, eng *durable.Engine, done func()) {
	greet := exampleGreet()
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: []durable.Definition{greet}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx = durable.NewContext(context.Background(), eng)
	if _, err := greet.Run(ctx, "greet-1", "Ada"); err != nil {
		panic(err)
	}
	return ctx, eng, func() { _ = eng.Close() }
}

func ExampleOperator_VerifyAll() {
	ctx, eng, done := exampleCare()
	defer done()

	for v, err := range operate.On(eng).VerifyAll(ctx, store.Filter{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(v.RunID, v.Events, "events, sound:", v.Sound())
		for _, f := range v.Findings {
			fmt.Println(" ", f)
		}
	}
	// Output: greet-1 4 events, sound: true
}

func ExampleOperator_Repair() {
	ctx, eng, done := exampleCare()
	defer done()

	plan, err := operate.On(eng).Repair(ctx, "greet-1", operate.RepairOptions{DryRun: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(plan.Did), "things to do; would run again:", plan.Again)
	// Output: 0 things to do; would run again: []
}

func ExampleOperator_Export() {
	ctx, eng, done := exampleCare()
	defer done()

	var file bytes.Buffer
	if err := operate.On(eng).Export(ctx, "greet-1", &file); err != nil {
		fmt.Println(err)
		return
	}
	other, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{exampleGreet()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close()
	got, err := operate.On(other).Import(ctx, &file, operate.ImportOptions{})
	fmt.Println(got.RunID, got.Status, got.Events, err)
	// Output: greet-1 completed 4 <nil>
}

func ExampleOperator_KeysInUse() {
	ctx, eng, done := exampleCare()
	defer done()

	keys, err := operate.On(eng).KeysInUse(ctx, store.Filter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range keys {
		fmt.Printf("key %q: %d runs, %d of them unfinished, %d payloads\n", k.KeyID, k.Runs, k.Unfinished, k.Payloads)
	}
	// Output: key "": 1 runs, 0 of them unfinished, 3 payloads
}
