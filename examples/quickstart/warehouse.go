package main

import (
	"context"
	"log"
	"os"
	"strings"
)

// warehouseBook is the name of the warehouse's file in the data directory.
const warehouseBook = "warehouse.txt"

// Warehouse keeps a book of what it did: one line per act, in a file, which the
// demonstration reads at the end.
type Warehouse struct{ Book string }

// Reserve puts an item aside for an order.
func (w *Warehouse) Reserve(_ context.Context, o Order) error {
	log.Printf("reserve: one %s is put aside", o.Item)
	return w.write("reserve " + o.ID)
}

// Ship sends the item and returns the parcel's number.
func (w *Warehouse) Ship(_ context.Context, o Order) (string, error) {
	log.Printf("ship: the %s is on its way", o.Item)
	return "parcel-" + strings.TrimPrefix(o.ID, "order-"), w.write("ship " + o.ID)
}

func (w *Warehouse) write(line string) error {
	f, err := os.OpenFile(w.Book, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
