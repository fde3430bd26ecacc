package postgres_test

import (
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// requestTable is the table of requests as a program has it that knows SQL and nothing
// of this module.
func requestTable(db *sqlx.DB) *conformance.RequestTable {
	// null is what a program leaves out.
	null := func(v any) any {
		if v == "" || v == int32(0) || v == int64(0) {
			return nil
		}
		return v
	}
	return &conformance.RequestTable{
		Insert: func(rows ...store.Request) (nos []int64, err error) {
			tx, err := db.Begin()
			if err != nil {
				return nil, err
			}
			defer tx.Rollback()
			for _, r := range rows {
				var no int64
				err := tx.QueryRow(`INSERT INTO durable_requests
					(kind, run_id, workflow, version, queue, partition, dedup, priority, wake_at, attributes, headers, input, name, signal_id, reason)
					VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING no`,
					string(r.Kind), null(r.RunID), null(r.Workflow), null(r.Version), null(r.Queue), null(r.Partition), null(r.Dedup), null(r.Priority),
					null(int64(r.WakeAt)), null(r.Attributes), null(r.Headers), null(r.Input), null(r.Name), null(r.ID), null(r.Reason)).Scan(&no)
				if err != nil {
					return nil, err
				}
				nos = append(nos, no)
			}
			return nos, tx.Commit()
		},
		Answer: func(no int64) (a conformance.RequestAnswer, ok bool, err error) {
			err = db.QueryRow(`SELECT done_at IS NOT NULL, coalesce(run_id, ''), coalesce(code, ''), coalesce(error, '')
				FROM durable_requests WHERE no = $1`, no).Scan(&a.Done, &a.RunID, &a.Code, &a.Error)
			if errors.Is(err, sql.ErrNoRows) {
				return a, false, nil
			}
			return a, err == nil, err
		},
	}
}
