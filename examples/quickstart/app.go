package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// app is the shop's program, as its author would write it. It does not know
// whether it starts for the first time or after a crash: both boots run these
// lines.
func app(ctx context.Context, dir, bankURL string) error {
	shop := &Shop{
		Bank:      &Bank{URL: bankURL},
		Warehouse: &Warehouse{Book: filepath.Join(dir, warehouseBook)},
	}
	checkout := durable.Define("checkout", shop.Checkout)

	st, err := sqlite.Open(filepath.Join(dir, "shop.db"))
	if err != nil {
		return err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{checkout}})
	if err != nil {
		return err
	}
	defer eng.Close()
	durable.SetDefault(eng)

	report, err := durable.Recover(ctx)
	if err != nil {
		return err
	}
	log.Printf("process %d is up; durable.Recover found %s", os.Getpid(), found(report))

	// Starting is idempotent by id: after a crash this returns the existing run.
	run, err := checkout.Start(ctx, orderID, Order{ID: orderID, Item: "teapot", Total: 4200})
	if err != nil {
		return err
	}
	receipt, err := run.Wait(ctx)
	if err != nil {
		return err
	}
	log.Printf("%s is complete: payment %s, parcel %s", receipt.Order, receipt.Payment, receipt.Parcel)
	return nil
}

func found(r durable.Report) string {
	if n := len(r.Resumed); n > 0 {
		return fmt.Sprintf("an order to go on with: %s", r.Resumed[0])
	}
	return "nothing to recover"
}
