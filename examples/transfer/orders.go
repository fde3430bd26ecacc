package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-dev/holdfast/durable"
)

// orderOf makes up an order; a few are for more than anybody has.
func orderOf(n int) Order {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	o := Order{ID: fmt.Sprintf("transfer-%04d", n), From: 1 + rng.IntN(accounts), Amount: 1 + rng.IntN(40)}
	o.To = 1 + (o.From+rng.IntN(accounts-1))%accounts
	if n%25 == 0 {
		o.Amount = 2 * accounts * deposit
	}
	return o
}

// order enters an order in the bank's own table and starts its transfer, in one
// transaction: there is no order without a run, and no run without its order. It does
// nothing if there is the order already.
func (b *Bank) order(ctx context.Context, transfer *durable.Workflow[Order, int], o Order) error {
	tx, err := b.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	res, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO orders (id) VALUES (?) ON CONFLICT (id) DO NOTHING`), o.ID)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n == 0 || err != nil {
		return err
	}
	if _, err := transfer.Start(ctx, o.ID, o, durable.InTx(tx)); err != nil {
		return err
	}
	return tx.Commit()
}
