package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// The nights for which the digest is made up. On the second one the clock was set forward, from
// two to three: there was no 02:00, so the digest is due at 03:00, which is 01:00 UTC again.
var (
	firstNight = time.Date(2025, 3, 29, 0, 0, 0, 0, time.UTC)
	lastNight  = firstNight.AddDate(0, 0, 2)
	nights     = []string{
		"nightly-digest@2025-03-29T01:00:00Z",
		"nightly-digest@2025-03-30T01:00:00Z",
		"nightly-digest@2025-03-31T00:00:00Z",
	}
)

// digesting has the digests of some nights made up for, which the schedule has missed because
// it did not exist, and one made now.
func (s *stage) digesting(ctx context.Context) error {
	op := operate.On(s.office.eng)
	say := func(format string, args ...any) { s.tl.Say("nightly", fmt.Sprintf(format, args...)) }
	// Nobody wants a digest of today if this is played at two in the morning.
	if err := op.PauseSchedule(ctx, nightly.Name(), "its nights are played"); err != nil {
		return err
	}
	list, err := op.Schedules(ctx, nightly.Name())
	if err != nil {
		return err
	}
	say("%s is paused; it would fire at %s", list[0].Timetable, list[0].Next[0].Format(time.RFC3339))
	for _, when := range []string{"three nights are made up for", "and once more"} {
		b, err := op.BackfillSchedule(ctx, nightly.Name(), firstNight, lastNight.AddDate(0, 0, 1))
		if err != nil {
			return err
		}
		for id, err := range b.Refused {
			return fmt.Errorf("night %s: %w", id, err)
		}
		say("%s: %d digests are started, %d were there", when, b.Started, b.Existing)
	}
	if s.triggered, err = op.TriggerSchedule(ctx, nightly.Name(), "by-hand"); err != nil {
		return err
	}
	for _, id := range s.digests() {
		run, err := digest.Handle(durable.NewContext(ctx, s.office.eng), id)
		if err != nil {
			return err
		}
		sent, err := run.Wait(ctx)
		if err != nil {
			return fmt.Errorf("digest %s: %w", id, err)
		}
		say("%s has sent %d mails", id, sent)
	}
	return nil
}

// digests are the runs of the digest.
func (s *stage) digests() []string { return append(nights[:len(nights):len(nights)], s.triggered) }
