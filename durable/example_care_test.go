package durable_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
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
	eng, err := durable.Open(context.Background(), memory.Open(), durable.Options{Workflows: []durable.Definition{greet}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	ctx = durable.NewContext(context.Background(), eng)
	if _, err := greet.Run(ctx, "greet-1", "Ada"); err != nil {
		panic(err)
	}
	return ctx, eng, func() { _ = eng.Close() }
}

func ExampleEngine_VerifyAll() {
	ctx, eng, done := exampleCare()
	defer done()

	for v, err := range eng.VerifyAll(ctx, store.Filter{}) {
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

func ExampleEngine_Repair() {
	ctx, eng, done := exampleCare()
	defer done()

	plan, err := eng.Repair(ctx, "greet-1", durable.RepairOptions{DryRun: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(plan.Did), "things to do; would run again:", plan.Again)
	// Output: 0 things to do; would run again: []
}

func ExampleEngine_Export() {
	ctx, eng, done := exampleCare()
	defer done()

	var file bytes.Buffer
	if err := eng.Export(ctx, "greet-1", &file); err != nil {
		fmt.Println(err)
		return
	}
	other, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{exampleGreet()}, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close()
	got, err := other.Import(ctx, &file, durable.ImportOptions{})
	fmt.Println(got.RunID, got.Status, got.Events, err)
	// Output: greet-1 completed 4 <nil>
}

func ExampleEngine_Clean() {
	ctx, eng, done := exampleCare()
	defer done()

	c, err := eng.Clean(ctx, durable.CleanOptions{Retention: &durable.Retention{KeepFor: 7 * 24 * time.Hour, KeepFailed: true}, DryRun: true})
	fmt.Println("a week old:", c.Runs, err)
	c, err = eng.Clean(ctx, durable.CleanOptions{All: true, Statuses: []store.Status{store.Completed}})
	fmt.Println("completed:", c.Runs, err)
	// Output:
	// a week old: 0 <nil>
	// completed: 1 <nil>
}

func ExampleEngine_KeysInUse() {
	ctx, eng, done := exampleCare()
	defer done()

	keys, err := eng.KeysInUse(ctx, store.Filter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range keys {
		fmt.Printf("key %q: %d runs, %d of them unfinished, %d payloads\n", k.KeyID, k.Runs, k.Unfinished, k.Payloads)
	}
	// Output: key "": 1 runs, 0 of them unfinished, 3 payloads
}
