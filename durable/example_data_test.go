package durable_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// What a customer was in the first release, in the second, and is now.
type (
	customerV1 struct{ Name string } // "Ada Lovelace"
	customerV2 struct{ First, Last string }
	Customer   struct {
		Given, Family string
		Tier          string
	}
)

// Two changes, one release after the other: each says only what became of the
// version before it.
func ExampleFrom() {
	ctx, st := context.Background(), memory.Open()

	// The first release. It has registered its type from the beginning.
	greet := durable.Define("greet", func(ctx context.Context, c customerV1) (string, error) {
		_, err := durable.Await[bool](ctx, "go")
		return "", err
	})
	eng, err := durable.Open(ctx, st.Handle(), durable.Options{
		Workflows: []durable.Definition{greet}, Logger: quiet,
		Types: []durable.TypeDef{durable.Type[customerV1]("customer", 1)},
	})
	if err != nil {
		panic(err)
	}
	if _, err := greet.Start(durable.NewContext(ctx, eng), "r", customerV1{"Ada Lovelace"}); err != nil {
		panic(err)
	}
	if err := eng.Close(); err != nil {
		panic(err)
	}

	// This one.
	customer := durable.Type[Customer]("customer", 3,
		durable.From(1, func(c customerV1) (customerV2, error) {
			first, last, _ := strings.Cut(c.Name, " ")
			return customerV2{first, last}, nil
		}),
		durable.From(2, func(c customerV2) (Customer, error) {
			return Customer{Given: c.First, Family: c.Last, Tier: "standard"}, nil
		}))
	now := durable.Define("greet", func(ctx context.Context, c Customer) (string, error) {
		_, err := durable.Await[bool](ctx, "go")
		return c.Given + ", " + c.Tier, err
	})
	eng, err = durable.Open(ctx, st.Handle(), durable.Options{
		Workflows: []durable.Definition{now}, Types: []durable.TypeDef{customer}, Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		panic(err)
	}
	if err := durable.Signal(ctx, "r", "go", true); err != nil {
		panic(err)
	}
	run, err := now.Handle(ctx, "r")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output: Ada, standard <nil>
}

// A program that cannot read what is recorded stops the run; one that can goes on
// with it.
func ExampleUndecodableError() {
	ctx, st := context.Background(), memory.Open()
	define := func(fn func(ctx context.Context) error) *durable.Workflow[int, string] {
		return durable.Define("price", func(ctx context.Context, _ int) (string, error) { return "priced", fn(ctx) })
	}
	approve := func(ctx context.Context) error {
		_, err := durable.Await[bool](ctx, "go")
		return err
	}
	// The program before: a price is a number.
	before := define(func(ctx context.Context) error {
		if _, err := durable.Step(ctx, "quote", func(context.Context) (int, error) { return 100, nil }); err != nil {
			return err
		}
		return approve(ctx)
	})
	// The program after: it is a text, and nobody has said how to read a number.
	after := define(func(ctx context.Context) error {
		if _, err := durable.Step(ctx, "quote", func(context.Context) (string, error) { return "100 EUR", nil }); err != nil {
			return err
		}
		return approve(ctx)
	})

	eng, err := durable.Open(ctx, st.Handle(), durable.Options{Workflows: []durable.Definition{before}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	on := durable.NewContext(ctx, eng)
	if _, err := before.Start(on, "r", 1); err != nil {
		panic(err)
	}
	awaitEvent(on, eng, "r", store.WaitRequested)
	if err := eng.Close(); err != nil {
		panic(err)
	}

	eng, err = durable.Open(ctx, st.Handle(), durable.Options{Workflows: []durable.Definition{after}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	on = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(on); err != nil {
		panic(err)
	}
	if err := durable.Signal(on, "r", "go", true); err != nil {
		panic(err)
	}
	awaitEvent(on, eng, "r", store.WorkflowInterrupted)
	info, err := eng.Get(on, "r")
	fmt.Println(info.Code, err)
	if err := eng.Close(); err != nil {
		panic(err)
	}

	eng, err = durable.Open(ctx, st.Handle(), durable.Options{Workflows: []durable.Definition{before}, Logger: quiet})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	on = durable.NewContext(ctx, eng)
	if _, err := operate.On(eng).Resume(on, "r", operate.ResumeOptions{}); err != nil {
		panic(err)
	}
	run, err := before.Handle(on, "r")
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(on))
	// Output:
	// undecodable <nil>
	// priced <nil>
}

// awaitEvent waits until a run has recorded something.
func awaitEvent(ctx context.Context, eng *durable.Engine, id string, typ store.Type) {
	for ev, err := range eng.Watch(ctx, id, 0) {
		if err != nil {
			panic(err)
		}
		if ev.Type == typ {
			return
		}
	}
}
