package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Order is the input of a checkout, Receipt its result. Both are kept in the
// store as JSON.
type Order struct {
	ID    string
	Item  string
	Total int // in cents
}

type Receipt struct {
	Order   string
	Payment string
	Parcel  string
}

// Shop is what a checkout needs from the outside world, injected as in any Go program.
type Shop struct {
	Bank      *Bank
	Warehouse *Warehouse
}

// Checkout is the workflow: a plain function. Whatever touches the world is
// wrapped in Step or Retry, and once done is not done again.
func (s *Shop) Checkout(ctx context.Context, o Order) (Receipt, error) {
	err := durable.Do(ctx, "reserve", func(ctx context.Context) error {
		return s.Warehouse.Reserve(ctx, o)
	})
	if err != nil {
		return Receipt{}, err
	}

	retry := durable.Policy{MaxAttempts: 5, Initial: 200 * time.Millisecond}
	payment, err := durable.Retry(ctx, "charge", retry, func(ctx context.Context) (Payment, error) {
		return s.Bank.Charge(ctx, o.Total, durable.IdempotencyKey(ctx))
	})
	if err != nil {
		return Receipt{}, err
	}

	return durable.Step(ctx, "ship", func(ctx context.Context) (Receipt, error) {
		parcel, err := s.Warehouse.Ship(ctx, o)
		return Receipt{Order: o.ID, Payment: payment.ID, Parcel: parcel}, err
	})
}
