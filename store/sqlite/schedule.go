//go:build cgo

package sqlite

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Schedules = (*Store)(nil)

// PutSchedule implements store.Schedules.
func (s *Store) PutSchedule(ctx context.Context, sc store.Schedule) (next store.Schedule, err error) {
	if err := sc.Check(s.limits); err != nil {
		return next, err
	}
	err = s.write(ctx, "store schedule "+sc.Name, func(t *tx) error {
		have, err := t.schedule(sc.Name)
		if err != nil {
			return err
		}
		if next, err = sc.Next(have, t.now); err != nil {
			return err
		}
		q := t.s.q.scheduleInsert
		if have != nil {
			if next.Revision == have.Revision {
				return nil // carried out before
			}
			q = t.s.q.scheduleUpdate
		}
		data := next.Data
		if data == nil {
			data = []byte{}
		}
		_, _, err = t.exec(q, next.Name, next.Revision, int64(next.Due), data, int64(next.UpdatedAt))
		return err
	})
	if err != nil {
		return store.Schedule{}, err
	}
	return next, nil
}

// schedule returns the stored schedule, nil if there is none.
func (t *tx) schedule(name string) (have *store.Schedule, err error) {
	err = t.query(t.s.q.schedule, func(c *cells) error {
		r := sqlstore.ScheduleRow{Name: c.text(), Revision: c.int(), Due: c.int(), Data: c.bytes(), UpdatedAt: c.int()}
		sc := r.Schedule()
		have = &sc
		return nil
	}, name)
	return have, err
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, name string) (existed bool, err error) {
	err = s.write(ctx, "delete schedule "+name, func(t *tx) error {
		n, _, err := t.exec(t.s.q.scheduleDelete, name)
		existed = n > 0
		return err
	})
	return existed && err == nil, err
}

// Schedules implements store.Schedules.
func (s *Store) Schedules(ctx context.Context, names ...string) (list []store.Schedule, err error) {
	q, args := s.q.schedules, []any(nil)
	if len(names) > 0 {
		q, args = s.q.schedulesNamed, []any{jsonArray(names)}
	}
	err = s.read(ctx, "list schedules", func(tx *sqlx.Tx) error {
		var rows []sqlstore.ScheduleRow
		if err := s.selectAll(ctx, tx, &rows, q, args...); err != nil {
			return err
		}
		list = nil
		for i := range rows {
			list = append(list, rows[i].Schedule())
		}
		return nil
	})
	return list, err
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, limit int) (due store.DueSchedules, err error) {
	limit = sqlstore.DueLimit(limit)
	err = s.read(ctx, "look for schedules that are due", func(tx *sqlx.Tx) error {
		now := store.TimeOf(s.opts.Clock())
		var rows []sqlstore.ScheduleRow
		if err := s.selectAll(ctx, tx, &rows, s.q.schedulesDue, int64(now), limit+1); err != nil {
			return err
		}
		due = sqlstore.DueSchedules(now, limit, rows)
		return nil
	})
	return due, err
}
