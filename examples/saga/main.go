// Saga books a trip at three services (flight, hotel, car) that fail often, and
// undoes what was booked when no car is available. The program is killed with
// SIGKILL in the middle of a booking and in the middle of undoing it, and is
// started again. In the end the services' own ledger shows that nothing is left
// of the first trip, and that nothing was cancelled twice; the second trip is
// booked.
//
//	go run ./examples/saga
//	go run ./examples/saga -kill "book flight,book car,cancel car"
//
// Read trip.go first: it is the workflow. The other files are the world around
// it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/examples/internal/demo"
)

const (
	roleAgency = "agency"
	roleTown   = "town"
)

func main() {
	log.SetFlags(0)
	slog.SetLogLoggerLevel(slog.LevelError) // the timeline is talkative enough
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx = demo.UntilParentEnds(ctx)
	var err error
	switch demo.Role() {
	case roleAgency:
		err = app(ctx, os.Args[1], os.Args[2:])
	case roleTown:
		var seed uint64
		if seed, err = strconv.ParseUint(os.Args[1], 10, 64); err == nil {
			err = serveTown(ctx, seed, os.Args[2:])
		}
	default:
		err = command(ctx, os.Args[1:])
	}
	if err != nil {
		log.Printf("saga: %v", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("saga", flag.ContinueOnError)
	seed := flags.Uint64("seed", rand.Uint64(), "of the services' bad luck")
	kill := flags.String("kill", "book hotel,cancel hotel,cancel flight", "the `acts` in the middle of which to kill the agency")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	var acts []string
	for act := range strings.SplitSeq(*kill, ",") {
		verb, service, _ := strings.Cut(strings.TrimSpace(act), " ")
		if !known(verb, service) {
			return fmt.Errorf("-kill %q: %q is no act; say \"book\" or \"cancel\" and one of %q", *kill, act, services)
		}
		if slices.Contains(acts, verb+" "+service) {
			return fmt.Errorf("-kill %q: %q is there twice", *kill, act)
		}
		acts = append(acts, verb+" "+service)
	}
	if err := play(ctx, os.Stdout, *seed, acts); err != nil {
		return fmt.Errorf("seed %d: %w", *seed, err)
	}
	return nil
}
