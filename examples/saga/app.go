package main

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// The services, in the order in which they are booked.
var services = []string{"flight", "hotel", "car"}

// trips are the requested trips. There is no car for the first.
var trips = []Trip{
	{ID: "trip-lisbon", Traveler: "ada", To: "Lisbon"},
	{ID: "trip-oslo", Traveler: "ada", To: "Oslo"},
}

// app is the agency's program. It does not know how often it was killed before: every
// process runs these lines.
func app(ctx context.Context, dir string, urls []string) error {
	agency := &Agency{
		Flights: &Service{Name: services[0], URL: urls[0]},
		Hotels:  &Service{Name: services[1], URL: urls[1]},
		Cars:    &Service{Name: services[2], URL: urls[2]},
	}
	booking := durable.Define("book-trip", agency.Book)

	st, err := sqlite.Open(filepath.Join(dir, "agency.db"))
	if err != nil {
		return err
	}
	defer st.Close()
	eng, err := durable.Open(ctx, st, durable.Options{
		Workflows: []durable.Definition{booking},
		Errors:    []durable.ErrorKind{durable.Sentinel("sold out", ErrSoldOut)},
	})
	if err != nil {
		return err
	}
	defer eng.Close()
	durable.SetDefault(eng)
	log.Printf("process %d is up", os.Getpid())
	report, err := durable.Recover(ctx)
	if err != nil {
		return err
	}
	for _, id := range report.Resumed {
		log.Printf("durable.Recover goes on with %s", id)
	}

	for _, t := range trips {
		// Starting is idempotent by id: after a crash this returns the existing run.
		switch it, err := booking.Run(ctx, t.ID, t); {
		case errors.Is(err, ErrSoldOut):
			log.Printf("%s is off, and all that was booked for it is cancelled: %v", t.ID, err)
		case err != nil:
			return err
		default:
			log.Printf("%s is booked: %s, %s, %s", t.ID, it[services[0]], it[services[1]], it[services[2]])
		}
	}
	return nil
}
