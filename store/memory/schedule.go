package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// PutSchedule implements store.Schedules.
func (s *Store) PutSchedule(ctx context.Context, sc store.Schedule) (store.Schedule, error) {
	if err := sc.Check(s.data.limits); err != nil {
		return store.Schedule{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Schedule{}, err
	}
	d := s.data
	defer d.mu.Unlock()
	s.counts.Statements++
	have := d.schedules[sc.Name]
	next, err := sc.Next(have, d.now())
	if err != nil {
		return store.Schedule{}, err
	}
	if have == nil || next.Revision != have.Revision {
		s.counts.Commits++
		d.unschedule(have)
		kept := copySchedule(&next)
		d.schedules[sc.Name] = &kept
		if kept.Due != 0 {
			at, _ := slices.BinarySearchFunc(d.dueInOrder, &kept, compareDue)
			d.dueInOrder = slices.Insert(d.dueInOrder, at, &kept)
		}
	}
	return copySchedule(&next), nil
}

// unschedule takes a stored schedule out of the order of those with a Due.
func (d *data) unschedule(have *store.Schedule) {
	if have == nil || have.Due == 0 {
		return
	}
	if at, ok := slices.BinarySearchFunc(d.dueInOrder, have, compareDue); ok {
		d.dueInOrder = slices.Delete(d.dueInOrder, at, at+1)
	}
}

func compareDue(a, b *store.Schedule) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Name, b.Name))
}

func copySchedule(sc *store.Schedule) store.Schedule {
	c := *sc
	c.Data = bytes.Clone(c.Data)
	return c
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, name string) (bool, error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	d := s.data
	defer d.mu.Unlock()
	s.counts.Statements++
	have := d.schedules[name]
	if have == nil {
		return false, nil
	}
	s.counts.Commits++
	d.unschedule(have)
	delete(d.schedules, name)
	return true, nil
}

// Schedules implements store.Schedules.
func (s *Store) Schedules(ctx context.Context, names ...string) ([]store.Schedule, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	d := s.data
	defer d.mu.Unlock()
	var list []store.Schedule
	for name, sc := range d.schedules {
		if len(names) == 0 || slices.Contains(names, name) {
			list = append(list, copySchedule(sc))
		}
	}
	slices.SortFunc(list, func(a, b store.Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, limit int) (store.DueSchedules, error) {
	if err := s.read(ctx); err != nil {
		return store.DueSchedules{}, err
	}
	d := s.data
	defer d.mu.Unlock()
	due := store.DueSchedules{Now: d.now()}
	for _, sc := range d.dueInOrder {
		if sc.Due > due.Now || len(due.Due) >= limit {
			due.Next = sc.Due
			break
		}
		due.Due = append(due.Due, copySchedule(sc))
	}
	return due, nil
}
