package sqlstore

import (
	"math"

	"github.com/holdfast-dev/holdfast/store"
)

// ScheduleRow is a row of durable_schedules.
type ScheduleRow struct {
	Name      string `db:"name"`
	Revision  int64  `db:"revision"`
	Due       int64  `db:"due"`
	Data      []byte `db:"data"`
	UpdatedAt int64  `db:"updated_at"`
}

// Schedule converts the row.
func (r *ScheduleRow) Schedule() store.Schedule {
	return store.Schedule{Name: r.Name, Revision: r.Revision, Due: store.Time(r.Due), Data: r.Data, UpdatedAt: store.Time(r.UpdatedAt)}
}

// DueLimit returns how many schedules that are due are asked for, such that a statement can ask
// for one more.
func DueLimit(limit int) int { return min(max(limit, 0), math.MaxInt-1) }

// DueSchedules makes the answer of rows in the order of Due and name: one more than
// limit of those that are due and, if that many are not, the first that is not.
func DueSchedules(now store.Time, limit int, rows []ScheduleRow) store.DueSchedules {
	due := store.DueSchedules{Now: now}
	for i := range rows {
		if len(due.Due) == limit || store.Time(rows[i].Due) > now {
			due.Next = store.Time(rows[i].Due)
			break
		}
		due.Due = append(due.Due, rows[i].Schedule())
	}
	return due
}
