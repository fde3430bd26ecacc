package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// fires say how many schedules there are in SCHEDULE.
type fires struct {
	Few, Many int
	Pairs     int
}

// schedules compares a look for due schedules, and one fire, in a store with very many
// schedules of which one is due, with those in a store with few.
func scheduling(ctx context.Context, t *target, n size) ([]result, error) {
	few, err := newTimetable(ctx, t, n.fires.Few)
	if err != nil {
		return nil, err
	}
	defer few.Close()
	many, err := newTimetable(ctx, t, n.fires.Many)
	if err != nil {
		return nil, err
	}
	defer many.Close()
	var looks []pair
	for range n.fires.Pairs {
		var p pair
		for _, side := range []struct {
			s    store.Store
			took *float64
		}{{few, &p.floor}, {many, &p.ours}} {
			began := time.Now()
			if err := fire(ctx, side.s); err != nil {
				return nil, err
			}
			*side.took = micros(time.Since(began))
		}
		looks = append(looks, p)
	}
	return []result{pairedResult("SCHEDULE", "us/fire", false, looks)}, nil
}

// fire finds the one schedule that is due, and moves it on to a time that has come, too.
func fire(ctx context.Context, s store.Store) error {
	kept := store.CapabilitiesOf(s).Schedules
	due, err := kept.DueSchedules(ctx, 100)
	if err != nil {
		return err
	}
	if len(due.Due) != 1 {
		return fmt.Errorf("%d schedules are due, and not 1", len(due.Due))
	}
	next := due.Due[0]
	next.Due++
	_, err = kept.PutSchedule(ctx, next)
	return err
}

// newTimetable opens a new store with n schedules, one of them due.
func newTimetable(ctx context.Context, t *target, n int) (store.Store, error) {
	address, err := t.create(ctx)
	if err != nil {
		return nil, err
	}
	s, err := connect(t.name, t.mode, address)
	if err != nil {
		return nil, err
	}
	kept, now := store.CapabilitiesOf(s).Schedules, time.Now()
	for i := range n {
		at := now.Add(time.Hour + time.Duration(i)*time.Second)
		if i == n/2 {
			at = now.Add(-time.Hour)
		}
		if _, err := kept.PutSchedule(ctx, store.Schedule{Name: fmt.Sprintf("schedule-%05d", i), Due: store.TimeOf(at), Data: []byte(`{}`)}); err != nil {
			_ = s.Close()
			return nil, err
		}
	}
	return s, t.settle(ctx, address)
}
