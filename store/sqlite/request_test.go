//go:build cgo

package sqlite_test

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
)

// requestTable is the table of requests as a program has it that knows SQL and nothing
// of this module.
func requestTable(path, prefix string) *conformance.RequestTable {
	shell := func(f func(db *sql.DB) error) error {
		db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=20000&_txlock=immediate")
		if err != nil {
			return err
		}
		return errors.Join(f(db), db.Close())
	}
	// null is what a program leaves out.
	null := func(v any) any {
		if v == "" || v == int32(0) || v == int64(0) {
			return nil
		}
		return v
	}
	return &conformance.RequestTable{
		Insert: func(rows ...store.Request) (nos []int64, err error) {
			err = shell(func(db *sql.DB) error {
				tx, err := db.Begin()
				if err != nil {
					return err
				}
				defer tx.Rollback()
				for _, r := range rows {
					res, err := tx.Exec(strings.ReplaceAll(`INSERT INTO durable_requests
						(kind, run_id, workflow, version, queue, partition, dedup, priority, wake_at, attributes, headers, input, name, signal_id, reason)
						VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, "durable_", prefix),
						string(r.Kind), null(r.RunID), null(r.Workflow), null(r.Version), null(r.Queue), null(r.Partition), null(r.Dedup), null(r.Priority),
						null(int64(r.WakeAt)), null(r.Attributes), null(r.Headers), null(r.Input), null(r.Name), null(r.ID), null(r.Reason))
					if err != nil {
						return err
					}
					no, err := res.LastInsertId()
					if err != nil {
						return err
					}
					nos = append(nos, no)
				}
				return tx.Commit()
			})
			return nos, err
		},
		Answer: func(no int64) (a conformance.RequestAnswer, ok bool, err error) {
			err = shell(func(db *sql.DB) error {
				return db.QueryRow(strings.ReplaceAll(`SELECT done_at IS NOT NULL, coalesce(run_id, ''), coalesce(code, ''), coalesce(error, '')
					FROM durable_requests WHERE no = ?`, "durable_", prefix), no).Scan(&a.Done, &a.RunID, &a.Code, &a.Error)
			})
			if errors.Is(err, sql.ErrNoRows) {
				return a, false, nil
			}
			return a, err == nil, err
		},
	}
}
