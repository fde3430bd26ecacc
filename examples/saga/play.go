package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

func known(verb, service string) bool {
	return (verb == "book" || verb == "cancel") && slices.Contains(services, service)
}

// play starts the services and the agency, kills the agency in the middle of
// each of the acts, starts it again, and checks the ledger.
func play(ctx context.Context, out io.Writer, seed uint64, acts []string) error {
	dir, err := os.MkdirTemp("", "holdfast-saga-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Fprintf(out, "A trip needs a flight, a hotel and a car, and there is no car. The services fail half of the time (seed %d).\n\n", seed)
	tl := demo.NewTimeline(out, 6)
	say := func(who string) func(string) { return func(line string) { tl.Say(who, line) } }

	town, err := demo.Start(ctx, roleTown, say(roleTown), append([]string{strconv.FormatUint(seed, 10)}, acts...)...)
	if err != nil {
		return err
	}
	defer town.Stop()
	args := []string{dir}
	for range services {
		url, err := town.Line()
		if err != nil {
			return fmt.Errorf("the services did not come up: %w", err)
		}
		args = append(args, url)
	}
	for range acts {
		if err := killed(ctx, tl, town, args); err != nil {
			return err
		}
	}
	agency, err := demo.Start(ctx, roleAgency, say(roleAgency), args...)
	if err != nil {
		return err
	}
	defer agency.Stop()
	if err := agency.Wait(); err != nil {
		return fmt.Errorf("the agency did not come to an end: %w", err)
	}
	ledger, err := readLedger(ctx, args[1])
	if err != nil {
		return err
	}
	return verdict(out, ledger, len(acts))
}

// killed lets the agency run until a service has done something of which the agency
// does not know yet, and ends it then, as a power cut would.
func killed(ctx context.Context, tl *demo.Timeline, town *demo.Process, args []string) error {
	agency, err := demo.Start(ctx, roleAgency, func(line string) { tl.Say(roleAgency, line) }, args...)
	if err != nil {
		return err
	}
	defer agency.Stop()
	line, err := town.Line()
	if err != nil {
		return fmt.Errorf("the services did not see what the agency was to be killed at: %w", err)
	}
	tl.Say(roleTown, line)
	tl.Say("you", fmt.Sprintf("kill -9 %d, and start it again", agency.Pid()))
	switch lived, err := agency.Kill(); {
	case err != nil:
		return err
	case !lived:
		return errors.New("the agency ended by itself before it could be killed")
	}
	return nil
}

func readLedger(ctx context.Context, url string) (Ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, demo.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ledger", nil)
	if err != nil {
		return Ledger{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Ledger{}, fmt.Errorf("the services do not show their ledger: %w", err)
	}
	defer resp.Body.Close()
	var l Ledger
	return l, json.NewDecoder(resp.Body).Decode(&l)
}

// verdict prints the ledger and returns an error unless it is as it must be.
func verdict(out io.Writer, l Ledger, kills int) error {
	fmt.Fprintln(out, "\nThe services' own ledger, every request:")
	for _, r := range l.Requests {
		fmt.Fprintf(out, "  %-11s  %-13s  key %.8s…  %s\n", r.Trip, r.What, r.Key, r.Answer)
	}
	fmt.Fprintln(out, "and what they did:")
	for _, a := range l.Acts {
		fmt.Fprintf(out, "  %-11s  %s\n", a.Trip, a.What)
	}
	if err := check(l, kills); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nKilled %d times: nothing is left of %s, nothing was done twice, and %s is booked.\n", kills, trips[0].ID, trips[1].ID)
	return nil
}

// check compares the ledger with what must have happened.
func check(l Ledger, kills int) error {
	off, on := trips[0].ID, trips[1].ID
	want := []Act{
		{off, "book flight"}, {off, "book hotel"}, // and no car
		{off, "cancel hotel"}, {off, "cancel flight"},
		{on, "book flight"}, {on, "book hotel"}, {on, "book car"},
	}
	if !slices.Equal(l.Acts, want) {
		return fmt.Errorf("the services did %v; expected %v", l.Acts, want)
	}
	keys := map[Act]string{}
	over := map[Act]bool{}
	heldBack := 0
	for i, r := range l.Requests {
		switch key, asked := keys[r.Act]; {
		case asked && key != r.Key:
			return fmt.Errorf("request %d asks to %s for %s under another key than before", i+1, r.What, r.Trip)
		case over[r.Act]:
			return fmt.Errorf("request %d asks to %s for %s though that was answered", i+1, r.What, r.Trip)
		}
		keys[r.Act], over[r.Act] = r.Key, r.answered()
		if r.Answer == held {
			heldBack++
		}
	}
	if heldBack != kills {
		return fmt.Errorf("the agency was killed in the middle of %d requests, not %d", heldBack, kills)
	}
	return nil
}
