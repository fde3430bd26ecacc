package durable_test

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
)

// Whether the bank has charged order-42 is asked by the key that its step sent.
func ExampleIdempotencyKeyOf() {
	charged := map[string]int{} // what the bank keeps
	wf := durable.Define("order", func(ctx context.Context, cents int) (int, error) {
		return durable.Step(ctx, "charge", func(ctx context.Context) (int, error) {
			charged[durable.IdempotencyKey(ctx)] = cents
			return cents, nil
		})
	})
	ctx, done := exampleEngine(wf)
	defer done()
	_, _ = wf.Run(ctx, "order-42", 500)
	fmt.Println(charged[durable.IdempotencyKeyOf("order-42", 0, "charge")])
	// Output: 500
}
