//go:build linux && cgo

package statements_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/statements/sqlitefault"
	"github.com/holdfast-dev/holdfast/test/tried"
)

func sqliteFailures() (all []failure) {
	add := func(name string, code int, how sqlitefault.Way) {
		all = append(all, failure{name, func(at int) { sqlitefault.Arm(at, code, how) }, sqlitefault.Disarm})
	}
	const ioWrite, ioSync, busySnapshot, moved = 778, 1034, 517, 1032
	add("BUSY", int(sqlite3.ErrBusy), sqlitefault.Refused)
	add("BUSY_SNAPSHOT", busySnapshot, sqlitefault.Refused)
	add("LOCKED", int(sqlite3.ErrLocked), sqlitefault.Refused)
	add("FULL", int(sqlite3.ErrFull), sqlitefault.Refused)
	add("FULL, rolled back", int(sqlite3.ErrFull), sqlitefault.RolledBack)
	add("IOERR", ioWrite, sqlitefault.Refused)
	add("IOERR, rolled back", ioWrite, sqlitefault.RolledBack)
	add("IOERR, committed", ioSync, sqlitefault.Committed)
	add("READONLY", int(sqlite3.ErrReadonly), sqlitefault.Refused)
	add("READONLY_DBMOVED", moved, sqlitefault.Refused)
	add("CORRUPT", int(sqlite3.ErrCorrupt), sqlitefault.Refused)
	add("NOMEM", int(sqlite3.ErrNomem), sqlitefault.Refused)
	add("NOMEM, rolled back", int(sqlite3.ErrNomem), sqlitefault.RolledBack)
	add("NOMEM, committed", int(sqlite3.ErrNomem), sqlitefault.Committed)
	add("INTERRUPT", int(sqlite3.ErrInterrupt), sqlitefault.Refused)
	add("INTERRUPT, rolled back", int(sqlite3.ErrInterrupt), sqlitefault.RolledBack)
	add("CANTOPEN", int(sqlite3.ErrCantOpen), sqlitefault.Refused)
	return all
}

// The same for SQLite, on a file.
func TestAnErrorOfAnyClassAtAnyCallOfSQLite(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	failures := sqliteFailures()
	trials, fired := begin(t, st).all(t, failures)
	tried.Say(t, "statements", "store=sqlite classes=%d trials=%d failed=%d lost=0 doubled=0", len(failures), trials, fired)
}

// A transaction whose ROLLBACK has failed is still open. Its connection serves nobody else.
func TestAConnectionToSQLiteWhoseRollbackHasFailedIsClosed(t *testing.T) {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "runs.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	for name, call := range map[string]func() error{
		"a read": func() error {
			_, err := st.Count(t.Context(), store.Filter{}, "")
			return err
		},
		"a step": func() error {
			tx, err := st.BeginTx(t.Context())
			if err != nil {
				return err
			}
			return tx.Rollback()
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, call())
			rollbacks := 0
			for at := 1; ; at++ {
				sqlitefault.Arm(at, int(sqlite3.ErrNomem), sqlitefault.Refused)
				_ = call() // the failure is ours
				hit := sqlitefault.Disarm()
				if hit == "" {
					break
				}
				if strings.Contains(hit, "ROLLBACK") {
					rollbacks++
				}
				require.NoError(t, call(), hit)
			}
			require.NotZero(t, rollbacks)
		})
	}
}
