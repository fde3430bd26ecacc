package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// worker is the bank's program: it takes the orders, executes the transfers, and ends when
// all are done. It does not know how often it was killed before: every process runs these lines.
func worker(ctx context.Context, args []string) error {
	kind, dsn, book := args[0], args[1], args[2]
	transfers, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	bank, err := openBank(kind, dsn)
	if err != nil {
		return err
	}
	defer bank.db.Close()
	if bank.book, err = demo.OpenBook(book); err != nil {
		return err
	}
	defer bank.book.Close()
	return bank.work(ctx, transfers, func(ctx context.Context, order func() error) error { return order() })
}

// work takes orders and waits until all of them were carried out. Each order is passed to
// try, which may do it again.
func (b *Bank) work(ctx context.Context, transfers int, try func(context.Context, func() error) error) error {
	transfer := b.workflow()
	st, err := openStore(b.kind, b.dsn)
	if err != nil {
		return err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{transfer},
		Errors:    []durable.ErrorKind{durable.Sentinel("no funds", ErrNoFunds)},
		// Who dies this often is not the fault of a transfer.
		QuarantineAfter: 1 << 20,
	})
	if err != nil {
		return err
	}
	defer eng.Close()
	ctx = durable.NewContext(ctx, eng)
	if _, err := durable.Recover(ctx); err != nil {
		return err
	}
	for n := range transfers {
		if err := try(ctx, func() error { return b.order(ctx, transfer, orderOf(n)) }); err != nil {
			return fmt.Errorf("order %d: %w", n, err)
		}
	}
	for n := range transfers {
		run, err := transfer.Handle(ctx, orderOf(n).ID)
		if err != nil {
			return err
		}
		if _, err := run.Wait(ctx); err != nil && !errors.Is(err, ErrNoFunds) {
			return err
		}
	}
	return nil
}
