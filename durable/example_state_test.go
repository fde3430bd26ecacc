package durable_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
)

type invoice struct {
	Customer string
	Cents    int
}

func load(context.Context, string) (invoice, error) { return invoice{"ada", 1250}, nil }

func send(_ context.Context, inv invoice) error {
	fmt.Printf("%s owes %d\n", inv.Customer, inv.Cents)
	return nil
}

// The wrong way: what the first step has set is not there after a restart.
var current invoice

func billWrong(ctx context.Context, id string) (string, error) {
	err := durable.Do(ctx, "load", func(ctx context.Context) (err error) {
		current, err = load(ctx, id) // not run again: after a restart current is empty
		return err
	})
	if err != nil {
		return "", err
	}
	if _, err := durable.Await[string](ctx, "approved"); err != nil {
		return "", err
	}
	return "sent", durable.Do(ctx, "send", func(ctx context.Context) error { return send(ctx, current) })
}

// The right way: it is the result of the step, which is recorded.
func billRight(ctx context.Context, id string) (string, error) {
	inv, err := durable.Step(ctx, "load", func(ctx context.Context) (invoice, error) {
		return load(ctx, id)
	})
	if err != nil {
		return "", err
	}
	if _, err := durable.Await[string](ctx, "approved"); err != nil {
		return "", err
	}
	return "sent", durable.Do(ctx, "send", func(ctx context.Context) error { return send(ctx, inv) })
}

// On the way from one to the other: runs that have recorded the old step keep it,
// and all others take the new one.
func billMigrated(ctx context.Context, id string) (string, error) {
	var inv invoice
	var err error
	if durable.Patched(ctx, "invoice-as-result") {
		inv, err = durable.Step(ctx, "load-invoice", func(ctx context.Context) (invoice, error) { return load(ctx, id) })
	} else {
		err = durable.Do(ctx, "load", func(context.Context) error { return nil }) // recorded: not run
	}
	if err != nil {
		return "", err
	}
	if _, err := durable.Await[string](ctx, "approved"); err != nil {
		return "", err
	}
	return "sent", durable.Do(ctx, "send", func(ctx context.Context) error {
		if inv == (invoice{}) { // the old way recorded none: read it here
			var err error
			if inv, err = load(ctx, id); err != nil {
				return err
			}
		}
		return send(ctx, inv)
	})
}

// What must survive a restart is returned by a step.
func Example_state() {
	_, _ = billWrong, billMigrated
	wf := durable.Define("bill", billRight)
	ctx, done := exampleEngine(wf)
	defer done()
	run, err := wf.Start(ctx, "bill-1", "2026-11", durable.WithSignal("approved", "yes"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(run.Wait(ctx))
	// Output:
	// ada owes 1250
	// sent <nil>
}
