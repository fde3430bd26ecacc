package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

func ExampleGo() {
	wf := durable.Define("quote", func(ctx context.Context, _ int) (int, error) {
		ask := func(shop string, price int) *durable.Future[int] {
			return durable.Go(ctx, shop, func(ctx context.Context) (int, error) { // this ctx, not the outer one
				return durable.Step(ctx, "ask", func(context.Context) (int, error) { return price, nil })
			})
		}
		a, b := ask("north", 12), ask("south", 10)
		north, err := a.Wait(ctx)
		if err != nil {
			return 0, err
		}
		south, err := b.Wait(ctx)
		return min(north, south), err
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "quote-1", 0))
	// Output: 10 <nil>
}

func ExampleFuture_Wait() {
	wf := durable.Define("both", func(ctx context.Context, _ int) (string, error) {
		slow := durable.Go(ctx, "slow", func(ctx context.Context) (string, error) {
			return "slow", durable.Sleep(ctx, 2*time.Millisecond)
		})
		broken := durable.Go(ctx, "broken", func(context.Context) (string, error) { return "", errors.New("out of paper") })
		if _, err := broken.Wait(ctx); err != nil {
			fmt.Println("the branch failed:", err)
		}
		return slow.Wait(ctx) // every branch is waited for
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "both-1", 0))
	// Output:
	// the branch failed: out of paper
	// slow <nil>
}

// Whichever comes first, an answer or the time, is recorded: a replay takes the same way.
func ExampleFirst() {
	wf := durable.Define("support", func(ctx context.Context, _ int) (string, error) {
		answer := durable.Go(ctx, "answer", func(ctx context.Context) (string, error) {
			return durable.Await[string](ctx, "reply")
		})
		late := durable.Go(ctx, "late", func(ctx context.Context) (string, error) {
			return "escalated", durable.Sleep(ctx, time.Millisecond)
		})
		_, outcome, err := durable.First(ctx, "whichever", answer, late)
		return outcome, err
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "support-1", 0))
	// Output: escalated <nil>
}

// With KeepGoing the items that fail are in the error, as dead letters, and the others are done.
func ExampleMap() {
	wf := durable.Define("thumbnails", func(ctx context.Context, files []string) ([]string, error) {
		out, err := durable.Map(ctx, "files", files, durable.MapOptions{Concurrency: 2, KeepGoing: true},
			func(ctx context.Context, file string) (string, error) {
				return durable.Step(ctx, "shrink", func(context.Context) (string, error) {
					if file == "b.txt" {
						return "", durable.Permanent(errors.New("not a picture"))
					}
					return "small " + file, nil
				})
			})
		var dead *durable.MapError
		if errors.As(err, &dead) {
			for _, item := range dead.Failed {
				fmt.Println(item.Key, "failed:", files[item.Index])
			}
			return slices.DeleteFunc(out, func(s string) bool { return s == "" }), nil
		}
		return out, err
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "thumbnails-1", []string{"a.png", "b.txt", "c.png"}))
	// Output:
	// files[1] failed: b.txt
	// [small a.png small c.png] <nil>
}

func ExampleMapSeq() {
	wf := durable.Define("sum", func(ctx context.Context, n int) (int, error) {
		lines := func(yield func(int) bool) { // a source that need not fit into memory
			for i := range n {
				if !yield(i) {
					return
				}
			}
		}
		return durable.MapSeq(ctx, "lines", lines, durable.MapOptions{}, func(_ context.Context, i int) (int, error) {
			return i * i, nil
		}, 0, func(sum, square int) int { return sum + square })
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "sum-1", 5))
	// Output: 30 <nil>
}

func ExampleGroup() {
	wf := durable.Define("warm up", func(ctx context.Context, _ int) (string, error) {
		g := durable.NewGroup(ctx)
		for _, cache := range []string{"users", "prices"} {
			g.Go(cache, func(ctx context.Context) error {
				return durable.Do(ctx, "fill", func(context.Context) error { return nil })
			})
		}
		return "warm", g.Wait()
	})
	ctx, done := exampleEngine(wf)
	defer done()
	fmt.Println(wf.Run(ctx, "warm-1", 0))
	// Output: warm <nil>
}

// Each compensation is registered before the effect that it undoes: an attempt whose outcome
// is unknown needs undoing, too.
func ExampleCompensate() {
	wf := durable.Define("trip", func(ctx context.Context, _ int) (string, error) {
		for _, part := range []string{"flight", "hotel"} {
			if err := durable.Compensate(ctx, "cancel "+part, func(context.Context) error {
				fmt.Println("cancelled:", part)
				return nil
			}); err != nil {
				return "", err
			}
			if err := durable.Do(ctx, "book "+part, func(context.Context) error { return nil }); err != nil {
				return "", err
			}
		}
		return "", durable.Do(ctx, "book car", func(context.Context) error {
			return durable.Permanent(errors.New("no car left"))
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	_, err := wf.Run(ctx, "trip-1", 0)
	fmt.Println(errors.Is(err, durable.ErrRunFailed))
	// Output:
	// cancelled: hotel
	// cancelled: flight
	// true
}
