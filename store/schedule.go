package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
)

// Schedule is a record that becomes due at a time, under a name of its own. The
// store knows when; what is to be done then is the engine's, in Data.
type Schedule struct {
	// Name is 1 to MaxName bytes of UTF-8 without control characters.
	Name string
	// Revision distinguishes the states of a schedule; 0: it does not exist. It
	// grows with each PutSchedule that changes something.
	Revision int64
	// Due is when the schedule is to be looked at; 0: never.
	Due Time
	// Data is kept as it is given, at most Limits.Payload bytes.
	Data []byte
	// UpdatedAt is when this revision was stored, by the store's clock. It is the
	// store's: PutSchedule ignores it.
	UpdatedAt Time
}

// Schedules is a store that keeps schedules. Its methods may be called
// concurrently, by many processes, and return promptly when their context ends.
type Schedules interface {
	// PutSchedule creates a schedule (Revision 0), or replaces the one that has
	// this Revision, and returns it as it is stored, with its new Revision.
	//
	// S36 PutSchedule is a compare-and-set: if the stored schedule has another
	// Revision, or does not exist where one is expected, or exists where none is,
	// it changes nothing and returns ErrRevision. One that was carried out
	// before (what is stored has Due and Data of s, and is either what s creates
	// or the next revision after it) succeeds again and changes nothing, so it is
	// safe to send it again when an answer was lost. What it returned is durable.
	// A Revision is not used again under the same name, also not when the
	// schedule was deleted and created again.
	PutSchedule(ctx context.Context, s Schedule) (Schedule, error)

	// DeleteSchedule removes a schedule and reports whether there was one.
	DeleteSchedule(ctx context.Context, name string) (bool, error)

	// Schedules returns the schedules of these names, or all of them without
	// names, ordered by the bytes of their names. It skips names of which there is
	// none.
	Schedules(ctx context.Context, names ...string) ([]Schedule, error)

	// DueSchedules returns the schedules that are due, at most limit of them, in
	// the order of Due and, for the same Due, of the bytes of their names.
	//
	// S37 A schedule is due when its Due is set and not after the time of the
	// store's clock. How many schedules there are that are not due does not
	// matter to the cost.
	DueSchedules(ctx context.Context, limit int) (DueSchedules, error)
}

// DueSchedules is what is due at one moment.
type DueSchedules struct {
	// Now is the moment, by the store's clock.
	Now Time
	Due []Schedule
	// Next is the earliest Due among the schedules that are not in Due, whether it
	// has come or not; 0: there is none.
	Next Time
}

// Check returns an error that matches ErrInvalid or ErrTooLarge unless s can be
// stored under these limits. For use by stores.
func (s *Schedule) Check(l Limits) error {
	if err := CheckName("schedule name", s.Name); err != nil {
		return err
	}
	switch {
	case s.Revision < 0 || s.Due < 0:
		return fmt.Errorf("store: schedule %q with revision %d, due at %d: %w", s.Name, s.Revision, s.Due, ErrInvalid)
	case len(s.Data) > l.Payload:
		return fmt.Errorf("store: schedule %q is %d bytes; the limit is %d: %w", s.Name, len(s.Data), l.Payload, ErrTooLarge)
	}
	return nil
}

// FirstRevision returns a Revision for a schedule that is created. It is drawn
// at random, so that no one who knew a schedule that was deleted can take the new
// one for it. For use by stores.
func FirstRevision() int64 { return 1 + rand.Int64N(1<<52) } // room to grow within what JSON and float64 keep exactly

// Next decides what PutSchedule(s) does where have is stored, nil if nothing is: it
// returns the schedule to store, or have itself if s was carried out before, or
// ErrRevision. For use by stores.
func (s *Schedule) Next(have *Schedule, now Time) (Schedule, error) {
	switch {
	case have == nil && s.Revision == 0:
		next := *s
		next.Revision, next.UpdatedAt = FirstRevision(), now
		return next, nil
	case have != nil && s.Revision == have.Revision:
		next := *s
		next.Revision, next.UpdatedAt = have.Revision+1, max(now, have.UpdatedAt)
		return next, nil
	case have != nil && (s.Revision == 0 || s.Revision+1 == have.Revision) && s.Due == have.Due && bytes.Equal(s.Data, have.Data):
		return *have, nil
	}
	return Schedule{}, fmt.Errorf("schedule %q: %w", s.Name, ErrRevision)
}
