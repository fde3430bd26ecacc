package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/durable"
)

// ErrNoFunds: the account does not have the money.
var ErrNoFunds = errors.New("not enough money")

// Order is a transfer that somebody has ordered.
type Order struct {
	ID       string
	From, To int
	Amount   int
}

// Move is the workflow: the money leaves one account, is in transit, and arrives at the
// other. Each of the two steps is a transaction. When it commits, the money has moved and
// the step is recorded; there is no moment at which only one of the two is true.
//
// Look for what is not here: no idempotency key, no "was it applied already?", no
// compensation for a crash in between.
func (b *Bank) Move(ctx context.Context, o Order) (balance int, err error) {
	_, err = durable.Transact(ctx, "withdraw", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
		if err := b.book.Write("withdraw", o.ID); err != nil { // for the show: when to kill
			return 0, err
		}
		left, err := b.add(ctx, tx, o, o.From, -o.Amount)
		if err == nil && left < 0 {
			err = fmt.Errorf("account %d: %w", o.From, ErrNoFunds) // and nothing of this has happened
		}
		if err == nil {
			_, err = b.add(ctx, tx, o, transit, o.Amount)
		}
		return left, err
	})
	if err != nil {
		return 0, err
	}
	// Another process, or another day.
	return durable.Transact(ctx, "deposit", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
		if err := b.book.Write("deposit", o.ID); err != nil {
			return 0, err
		}
		if _, err := b.add(ctx, tx, o, transit, -o.Amount); err != nil {
			return 0, err
		}
		return b.add(ctx, tx, o, o.To, o.Amount)
	})
}
