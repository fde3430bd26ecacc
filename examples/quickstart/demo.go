package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// patience is how long any one act of the demonstration may take.
const patience = 30 * time.Second

// demo directs: it starts the bank and the shop, kills the shop while the bank
// keeps it waiting, starts it again, and checks the books.
func demo(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "holdfast-quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tl := newTimeline(out)
	fmt.Fprint(out, "A shop takes an order of 42.00. Its bank is having a bad day.\n\n")

	bank, err := start(ctx, tl, roleBank)
	if err != nil {
		return err
	}
	defer bank.stop()
	url, err := bank.line(patience)
	if err != nil {
		return fmt.Errorf("the bank did not come up: %w", err)
	}

	if err := killInThirdAttempt(ctx, tl, bank, dir, url); err != nil {
		return err
	}
	shop, err := start(ctx, tl, roleShop, dir, url)
	if err != nil {
		return err
	}
	defer shop.stop()
	if err := shop.wait(patience); err != nil {
		return fmt.Errorf("the shop did not finish the order after its restart: %w", err)
	}

	ledger, err := readLedger(ctx, url)
	if err != nil {
		return err
	}
	book, err := os.ReadFile(filepath.Join(dir, warehouseBook))
	if err != nil {
		return err
	}
	return verdict(out, ledger, string(book))
}

// killInThirdAttempt lets the shop run until the bank holds its third request,
// then ends it as a power cut would: no handler runs, nothing is flushed.
func killInThirdAttempt(ctx context.Context, tl *timeline, bank *process, dir, url string) error {
	shop, err := start(ctx, tl, roleShop, dir, url)
	if err != nil {
		return err
	}
	defer shop.stop()
	line, err := bank.line(patience) // it prints one line, when it hangs
	if err != nil {
		return fmt.Errorf("the bank did not see a third attempt: %w", err)
	}
	tl.say(roleBank, line)
	tl.say("you", fmt.Sprintf("kill -9 %d", shop.cmd.Process.Pid))
	if err := shop.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := shop.wait(patience); err == nil {
		return errors.New("the shop ended by itself before it could be killed")
	}
	tl.say("you", "start the shop again")
	return nil
}

func readLedger(ctx context.Context, url string) (Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ledger", nil)
	if err != nil {
		return Ledger{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Ledger{}, fmt.Errorf("the bank does not show its ledger: %w", err)
	}
	defer resp.Body.Close()
	var l Ledger
	return l, json.NewDecoder(bufio.NewReader(resp.Body)).Decode(&l)
}

// verdict prints the books and returns an error unless they show one of
// everything.
func verdict(out io.Writer, l Ledger, warehouse string) error {
	fmt.Fprintln(out, "\nThe bank's own ledger:")
	for i, r := range l.Requests {
		fmt.Fprintf(out, "  request %d   attempt %d, %d earlier failures known   %s\n", i+1, r.Attempt, r.KnownFailures, r.Answer)
	}
	for _, c := range l.Charges {
		fmt.Fprintf(out, "  charge      %d.%02d under key %.12s…\n", c.Cents/100, c.Cents%100, c.Key)
	}
	fmt.Fprintf(out, "The warehouse's own book:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(warehouse), "\n", "\n  "))
	if err := check(l, warehouse); err != nil {
		return err
	}
	fmt.Fprint(out, "\nKilled in the middle of a payment: nothing lost, nothing done twice.\n")
	return nil
}

// check compares the books with what must have happened.
func check(l Ledger, warehouse string) error {
	want := []Request{
		{Attempt: 1, KnownFailures: 0, Answer: refused},
		{Attempt: 2, KnownFailures: 1, Answer: refused},
		{Attempt: 3, KnownFailures: 2, Answer: lost},     // killed while it waited
		{Attempt: 3, KnownFailures: 2, Answer: repeated}, // after the restart
	}
	if len(l.Requests) != len(want) {
		return fmt.Errorf("the bank got %d requests, not %d", len(l.Requests), len(want))
	}
	for i, got := range l.Requests {
		want[i].Key = l.Requests[0].Key
		if got != want[i] {
			return fmt.Errorf("request %d was %+v; expected %+v", i+1, got, want[i])
		}
	}
	perKey := map[string]int{}
	for _, c := range l.Charges {
		perKey[c.Key]++
		if perKey[c.Key] > 1 {
			return fmt.Errorf("the bank charged key %s twice", c.Key)
		}
	}
	if len(l.Charges) != 1 {
		return fmt.Errorf("the bank made %d charges, not one", len(l.Charges))
	}
	if want := "reserve " + orderID + "\nship " + orderID + "\n"; warehouse != want {
		return fmt.Errorf("the warehouse's book reads %q; expected %q", warehouse, want)
	}
	return nil
}
