package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

// Tool is something the agent can do for the model.
type Tool struct {
	// Use does it. Two uses with the same key count as one.
	Use func(ctx context.Context, args map[string]string, key string) (string, error)
	// Question is what a person is asked before it is used; nil if none is asked.
	Question func(args map[string]string) string
}

// Shop is what the tools work on: a file of orders, and a ledger of refunds.
type Shop struct{ Dir string }

// refundsName is the name of the ledger.
const refundsName = "refunds.txt"

// orders of the shop, by number.
var orders = map[string]string{
	"7": "lost in the mail, price 40 EUR",
	"8": "on its way, it arrives tomorrow",
	"9": "lost in the mail, price 900 EUR",
}

// Tools returns what an agent can do in the shop.
func (s *Shop) Tools() map[string]Tool {
	return map[string]Tool{
		"find order": {Use: s.find},
		"refund": {Use: s.refund, Question: func(args map[string]string) string {
			return fmt.Sprintf("May I refund %s for order %s?", args["amount"], args["order"])
		}},
	}
}

func (s *Shop) find(_ context.Context, args map[string]string, _ string) (string, error) {
	log.Printf("find order %s", args["order"])
	found, ok := orders[args["order"]]
	if !ok {
		return "", durable.Permanent(fmt.Errorf("there is no order %q", args["order"]))
	}
	return found, nil
}

// refund pays money back. The ledger keeps the idempotency keys, like a bank: what was
// paid under a key is not paid again.
func (s *Shop) refund(ctx context.Context, args map[string]string, key string) (string, error) {
	log.Printf("refund %s for order %s", args["amount"], args["order"])
	path := filepath.Join(s.Dir, refundsName)
	paid, err := booked(path, key)
	if err != nil {
		return "", err
	}
	if !paid {
		ledger, err := demo.OpenBook(path)
		if err != nil {
			return "", err
		}
		if err := errors.Join(ledger.Write(key, args["order"], args["amount"]), ledger.Close()); err != nil {
			return "", err
		}
	}
	// The money is on its way now, but this process does not know it until the bank
	// says so.
	for s.bankIsSlow() {
		select {
		case <-time.After(thinking):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return args["amount"], nil
}

// slowName is a file; while it is there the bank does not answer.
const slowName = "the bank is slow"

func (s *Shop) bankIsSlow() bool {
	_, err := os.Stat(filepath.Join(s.Dir, slowName))
	return err == nil
}

// booked reports whether a line of the ledger has this key.
func booked(path, key string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), key+" ") {
			return true, nil
		}
	}
	return false, lines.Err()
}
