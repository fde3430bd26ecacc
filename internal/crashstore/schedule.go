package crashstore

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// schedules returns the schedules of the backend. One that keeps none has none.
func (s *Store) schedules() (store.Schedules, error) {
	if s.IsDead() {
		return nil, store.ErrClosed
	}
	return store.CapabilitiesOf(s.Store).Schedules, nil
}

// PutSchedule counts as a write.
func (s *Store) PutSchedule(ctx context.Context, sc store.Schedule) (got store.Schedule, err error) {
	backend, err := s.schedules()
	if err == nil && backend == nil {
		err = fmt.Errorf("crashstore: %T keeps no schedules: %w", s.Store, store.ErrInvalid)
	}
	if err != nil {
		return store.Schedule{}, err
	}
	do, alive := s.step()
	if do {
		got, err = backend.PutSchedule(ctx, sc)
	}
	if !alive {
		return store.Schedule{}, store.ErrClosed
	}
	return got, err
}

// DeleteSchedule counts as a write.
func (s *Store) DeleteSchedule(ctx context.Context, name string) (existed bool, err error) {
	backend, err := s.schedules()
	if err != nil || backend == nil {
		return false, err
	}
	do, alive := s.step()
	if do {
		existed, err = backend.DeleteSchedule(ctx, name)
	}
	if !alive {
		return false, store.ErrClosed
	}
	return existed, err
}

// Schedules fails once it is dead.
func (s *Store) Schedules(ctx context.Context, names ...string) ([]store.Schedule, error) {
	backend, err := s.schedules()
	if err != nil || backend == nil {
		return nil, err
	}
	return backend.Schedules(ctx, names...)
}

// DueSchedules fails once it is dead.
func (s *Store) DueSchedules(ctx context.Context, limit int) (store.DueSchedules, error) {
	backend, err := s.schedules()
	if err != nil || backend == nil {
		return store.DueSchedules{}, err
	}
	return backend.DueSchedules(ctx, limit)
}
