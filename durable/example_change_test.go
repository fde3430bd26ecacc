package durable_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// did is a step's body that tells what it did.
func did(what string) func(context.Context) error {
	return func(context.Context) error { fmt.Println(what); return nil }
}

// A check was inserted before an order is shipped. Orders that were shipped
// without it go on without it; all others get it.
func ExamplePatched() {
	ship := durable.Define("ship", func(ctx context.Context, id string) (string, error) {
		if err := durable.Do(ctx, "charge", did("charge "+id)); err != nil {
			return "", err
		}
		if durable.Patched(ctx, "fraud-check") {
			if err := durable.Do(ctx, "check", did("check "+id)); err != nil {
				return "", err
			}
		}
		return "shipped", durable.Do(ctx, "pack", did("pack "+id))
	})
	runIn(ship, "42")
	// Output:
	// charge 42
	// check 42
	// pack 42
	// shipped <nil>
}

// The code before the check is gone: the change is deprecated until no run has
// its marker, and then the call is removed.
func ExampleDeprecatePatch() {
	ship := durable.Define("ship", func(ctx context.Context, id string) (string, error) {
		if err := durable.Do(ctx, "charge", did("charge "+id)); err != nil {
			return "", err
		}
		durable.DeprecatePatch(ctx, "fraud-check")
		if err := durable.Do(ctx, "check", did("check "+id)); err != nil {
			return "", err
		}
		return "shipped", durable.Do(ctx, "pack", did("pack "+id))
	})
	runIn(ship, "43")
	// Output:
	// charge 43
	// check 43
	// pack 43
	// shipped <nil>
}

// Two versions side by side: runs stay with the one they were started with.
func ExampleVersion() {
	ctx := context.Background()
	say := func(ctx context.Context, _ string) (string, error) {
		return "version " + durable.RunVersion(ctx), nil
	}
	v1 := durable.Define("greet", say)
	v2 := durable.Define("greet", say, durable.Version("2"))
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{
		Workflows: []durable.Definition{v1, v2}, Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	fmt.Println(v1.Run(ctx, "earlier", ""))
	fmt.Println(v2.Run(ctx, "later", ""))
	// Output:
	// version 1 <nil>
	// version 2 <nil>
}

// This workflow may be edited freely while runs are in flight, at the price that
// the order of calls protects nothing any more.
func ExampleMatchByName() {
	report := durable.Define("report", func(ctx context.Context, id string) (string, error) {
		return "sent", durable.Do(ctx, "send", did("send "+id))
	}, durable.MatchByName())
	runIn(report, "44")
	// Output:
	// send 44
	// sent <nil>
}

// runIn runs a workflow once, on a store of its own.
func runIn(w *durable.Workflow[string, string], id string) {
	ctx := context.Background()
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{w}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	fmt.Println(w.Run(durable.NewContext(ctx, eng), "order-"+id, id))
}
