//go:build cgo

package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// harness makes stores on files, with a clock that is moved.
func harness(o sqlite.Options) conformance.Harness {
	return conformance.Harness{
		New: func(t testing.TB) conformance.Data {
			path := filepath.Join(t.TempDir(), "app.db")
			var skew atomic.Int64
			o := o
			o.Clock = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
			prefix := o.Prefix
			if prefix == "" {
				prefix = "durable_"
			}
			shell := func(text string, args ...any) error {
				db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000")
				if err != nil {
					return err
				}
				defer db.Close()
				res, err := db.Exec(text, args...)
				if err != nil {
					return err
				}
				if n, _ := res.RowsAffected(); n != 1 {
					return fmt.Errorf("%d rows changed", n)
				}
				return nil
			}
			return conformance.Data{
				Requests: requestTable(path, prefix),
				Open:     func() (store.Store, error) { return sqlite.OpenOptions(path, o) },
				Place:    path,
				Advance:  func(d time.Duration) { skew.Add(int64(d)) },
				Corrupt: func(run string, seq int64) error {
					return shell(`UPDATE `+prefix+`events SET payload = CAST('damaged' AS BLOB)
						WHERE place = (SELECT no << 28 | ? FROM `+prefix+`runs WHERE id = ?)`, seq, run)
				},
				Begin: func(ctx context.Context) (conformance.Tx, error) {
					db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=5000&_txlock=immediate&_synchronous=FULL")
					if err != nil {
						return conformance.Tx{}, err
					}
					t.Cleanup(func() { _ = db.Close() })
					tx, err := db.BeginTx(ctx, nil)
					if err != nil {
						return conformance.Tx{}, err
					}
					return conformance.Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
				},
				Copy: func() (string, func() (store.Store, error)) {
					to := filepath.Join(t.TempDir(), "copy.db")
					return to, func() (store.Store, error) { return sqlite.OpenOptions(to, o) }
				},
				Future: func() error {
					return shell(`INSERT INTO ` + prefix + `schema (version, name, applied_at) VALUES (9999, 'future', 0)`)
				},
			}
		},
		Has: conformance.Capabilities(),
	}
}

func TestConformance(t *testing.T) {
	// OFF: what a case checks does not depend on it, and the disk is slow.
	report := conformance.Run(t, harness(sqlite.Options{Synchronous: sqlite.Off}))
	require.Len(t, report.Present, len(conformance.Capabilities()))
	require.Empty(t, report.NotChecked)
}
