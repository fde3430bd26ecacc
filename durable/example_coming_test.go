package durable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// fulfil is the order of docs/guides/coming-from.md.
func fulfil(ctx context.Context, order string) (string, error) {
	policy := durable.Policy{MaxAttempts: 5}
	payment, err := durable.Retry(ctx, "charge", policy, func(ctx context.Context) (string, error) {
		return takeMoney(ctx, order, durable.IdempotencyKey(ctx))
	})
	if err != nil {
		return "", err
	}
	ok, err := durable.Await[bool](ctx, "approved", durable.Timeout(48*time.Hour))
	if err != nil {
		return "", err
	}
	if !ok {
		return "", durable.Permanent(errors.New("not approved"))
	}
	return durable.Step(ctx, "ship", func(ctx context.Context) (string, error) {
		return sendParcel(ctx, order, payment)
	})
}

func takeMoney(_ context.Context, order, _ string) (string, error) { return "payment of " + order, nil }

func sendParcel(_ context.Context, order, payment string) (string, error) {
	return order + " shipped after the " + payment, nil
}

// The program around a workflow: charged, approved by a signal, shipped.
func ExampleAwait_approval() {
	ctx := context.Background()
	fulfilment := durable.Define("fulfil", fulfil)
	eng, err := durable.Open(ctx, memory.Open(), durable.Options{Workflows: []durable.Definition{fulfilment}})
	if err != nil {
		panic(err)
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		panic(err)
	}
	run, err := fulfilment.Start(ctx, "order-7", "a lamp")
	if err != nil {
		panic(err)
	}
	if err := durable.Signal(ctx, "order-7", "approved", true); err != nil {
		panic(err)
	}
	fmt.Println(run.Wait(ctx))
	// Output: a lamp shipped after the payment of a lamp <nil>
}
