package postgres

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Schedules = (*Store)(nil)

// PutSchedule implements store.Schedules. It reads, decides, and writes where what it
// has read is still true, each as a statement of its own: what another process does
// in between makes the write void, and it begins again.
func (s *Store) PutSchedule(ctx context.Context, sc store.Schedule) (next store.Schedule, err error) {
	if err := sc.Check(s.limits); err != nil {
		return next, err
	}
	if err := s.enter(ctx); err != nil {
		return next, err
	}
	defer s.calls.Done()
	err = s.again(ctx, func(w *wire) error {
		for w.ctx = ctx; ; {
			have, now, err := w.schedule(sc.Name)
			if err != nil {
				return err
			}
			if next, err = sc.Next(have, now); err != nil {
				return err
			}
			if have != nil && next.Revision == have.Revision {
				return w.replicated() // carried out before
			}
			if ok, err := s.writeSchedule(w, have, &next); ok || err != nil {
				return err
			}
		}
	})
	if err != nil {
		return store.Schedule{}, described("store schedule "+sc.Name, err)
	}
	return next, nil
}

// writeSchedule reports whether what was read, have, was still stored when next was
// written.
func (s *Store) writeSchedule(w *wire, have, next *store.Schedule) (ok bool, err error) {
	var n int64
	data := next.Data
	if data == nil {
		data = []byte{}
	}
	if have == nil {
		// In a transaction, an insert that the server begins late, after a deletion, is never committed.
		if err := w.begin(); err != nil {
			return false, err
		}
		if n, err = w.exec("schedule_insert", next.Name, next.Revision, int64(next.Due), data, int64(next.UpdatedAt)); err != nil {
			return false, err
		}
		return n > 0, w.commit() // which counts
	} else {
		n, err = w.exec("schedule_update", next.Name, next.Revision, int64(next.Due), data, int64(next.UpdatedAt), have.Revision)
	}
	if n > 0 {
		s.counts.commits.Add(1)
	}
	return n > 0, err
}

// schedule returns the stored schedule, nil if there is none, and the time.
func (w *wire) schedule(name string) (have *store.Schedule, now store.Time, err error) {
	err = w.query("schedule", func(v []driverValue) error {
		if now = store.Time(v[0].(int64)); v[1] == nil {
			return nil
		}
		row, err := scanSchedule(v[1:])
		sc := row.Schedule()
		have = &sc
		return err
	}, name)
	return have, now, err
}

func scanSchedule(v []driverValue) (sqlstore.ScheduleRow, error) {
	sc := scanner{v: v}
	row := sqlstore.ScheduleRow{Name: sc.text(), Revision: sc.int(), Due: sc.int(), Data: sc.bytes(), UpdatedAt: sc.int()}
	return row, sc.err
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, name string) (existed bool, err error) {
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.calls.Done()
	if !holdable(name) {
		return false, nil // no schedule has it
	}
	err = s.again(ctx, func(w *wire) error {
		for w.ctx = ctx; ; {
			have, _, err := w.schedule(name)
			switch {
			case err != nil:
				return err
			case have == nil:
				return w.replicated()
			}
			n, err := w.exec("schedule_delete", name, have.Revision)
			if n > 0 {
				s.counts.commits.Add(1)
			}
			existed = existed || n > 0 || unanswered(err)
			if n > 0 || err != nil {
				return err
			}
		}
	})
	return existed && err == nil, described("delete schedule "+name, err)
}

// Schedules implements store.Schedules.
func (s *Store) Schedules(ctx context.Context, wanted ...string) (list []store.Schedule, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	name, args := "schedules", []driverValue(nil)
	if len(wanted) > 0 {
		name, args = "schedules_named", []driverValue{names(wanted...)}
	}
	err = s.again(ctx, func(w *wire) error {
		w.ctx, list = ctx, nil
		return w.query(name, func(v []driverValue) error {
			row, err := scanSchedule(v)
			list = append(list, row.Schedule())
			return err
		}, args...)
	})
	return list, described("list schedules", err)
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, limit int) (due store.DueSchedules, err error) {
	if err := s.enter(ctx); err != nil {
		return due, err
	}
	defer s.calls.Done()
	limit = sqlstore.DueLimit(limit)
	err = s.again(ctx, func(w *wire) error {
		w.ctx = ctx
		var now store.Time
		var rows []sqlstore.ScheduleRow
		err := w.query("schedules_due", func(v []driverValue) error {
			if now = store.Time(v[0].(int64)); v[1] == nil {
				return nil
			}
			row, err := scanSchedule(v[1:])
			rows = append(rows, row)
			return err
		}, int64(limit)+1)
		due = sqlstore.DueSchedules(now, limit, rows)
		return err
	})
	if err != nil {
		return store.DueSchedules{}, described(fmt.Sprintf("look for %d schedules that are due", limit), err)
	}
	return due, nil
}
