package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
)

// Trip is the input of a booking. Its ID is also the reference under which the
// services keep what is booked for it.
type Trip struct {
	ID       string
	Traveler string
	To       string
}

// Itinerary is what was booked: the confirmation of each service, by its name.
type Itinerary map[string]string

// Agency books trips at three services.
type Agency struct{ Flights, Hotels, Cars *Service }

// Book is the workflow. Whatever is sold out, and wherever the process dies, in the end
// either everything is booked or nothing.
func (a *Agency) Book(ctx context.Context, t Trip) (Itinerary, error) {
	it := Itinerary{}
	for _, s := range []*Service{a.Flights, a.Hotels, a.Cars} {
		confirmation, err := reserve(ctx, s, t)
		if err != nil {
			return nil, err // the compensations registered so far run now
		}
		it[s.Name] = confirmation
	}
	return it, nil
}

// reserve registers how to undo the booking before it makes it. The other way round, a
// crash or a lost answer could leave a booking that is never undone.
func reserve(ctx context.Context, s *Service, t Trip) (string, error) {
	err := durable.Compensate(ctx, "cancel "+s.Name, func(ctx context.Context) error {
		return s.Cancel(ctx, t.ID, durable.IdempotencyKey(ctx))
	})
	if err != nil {
		return "", err
	}
	retry := durable.Policy{MaxAttempts: 8, Initial: 50 * time.Millisecond}
	return durable.Retry(ctx, "book "+s.Name, retry, func(ctx context.Context) (string, error) {
		return s.Book(ctx, t, durable.IdempotencyKey(ctx))
	})
}
