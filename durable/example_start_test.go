package durable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func ExampleHeader() {
	greet := durable.Define("greet", func(ctx context.Context, name string) (string, error) {
		return fmt.Sprintf("hello %s of %s", name, durable.Headers(ctx)["tenant"]), nil
	})
	ctx, done := exampleEngine(greet)
	defer done()

	fmt.Println(greet.Run(ctx, "greet-1", "Ada", durable.Header("tenant", "acme")))
	// Output: hello Ada of acme <nil>
}

func ExampleDeadline() {
	quote := durable.Define("quote", func(ctx context.Context, item string) (int, error) {
		return durable.Await[int](ctx, "price") // nobody answers
	})
	ctx, done := exampleEngine(quote)
	defer done()

	_, err := quote.Run(ctx, "quote-1", "book", durable.Deadline(10*time.Millisecond))
	fmt.Println(errors.Is(err, durable.ErrDeadline))
	// Output: true
}

func ExampleExclusive() {
	edit := durable.Define("edit", func(ctx context.Context, branch string) (bool, error) {
		return durable.Await[bool](ctx, "done")
	})
	ctx, done := exampleEngine(edit)
	defer done()

	if _, err := edit.Start(ctx, "edit-1", "main", durable.Exclusive("worktree:/src")); err != nil {
		fmt.Println(err)
		return
	}
	_, err := edit.Start(ctx, "edit-2", "fix", durable.Exclusive("worktree:/src"))
	var occupied *store.OccupiedError
	if errors.As(err, &occupied) {
		fmt.Println(occupied.Key, "is held by", occupied.Holder)
	}
	// Output: worktree:/src is held by edit-1
}

func ExampleWithSignal() {
	basket := durable.Define("basket", func(ctx context.Context, customer string) (string, error) {
		first, err := durable.Await[string](ctx, "item")
		if err != nil {
			return "", err
		}
		second, err := durable.Await[string](ctx, "item")
		return fmt.Sprint(customer, ": ", first, ", ", second), err
	})
	ctx, done := exampleEngine(basket)
	defer done()

	// Whoever comes first starts the run; both need not know.
	var last *durable.Run[string]
	for _, item := range []string{"book", "lamp"} {
		run, err := basket.Start(ctx, "basket-ada", "Ada", durable.WithSignal("item", item, durable.SignalID(item)))
		if err != nil {
			fmt.Println(err)
			return
		}
		last = run
	}
	fmt.Println(last.Wait(ctx))
	// Output: Ada: book, lamp <nil>
}

func ExampleWorkflow_StartAll() {
	resize := durable.Define("resize", func(_ context.Context, width int) (int, error) { return width / 2, nil })
	ctx, done := exampleEngine(resize)
	defer done()

	images := func(yield func(string, int) bool) {
		for i := range 1000 {
			if !yield(fmt.Sprintf("image-%d", i), 100+i) {
				return
			}
		}
	}
	bulk, err := resize.StartAll(ctx, images)
	fmt.Println(bulk.Started, bulk.Existing, len(bulk.Refused), err)
	bulk, err = resize.StartAll(ctx, images) // again: nothing is started twice
	fmt.Println(bulk.Started, bulk.Existing, len(bulk.Refused), err)
	// Output:
	// 1000 0 0 <nil>
	// 0 1000 0 <nil>
}
