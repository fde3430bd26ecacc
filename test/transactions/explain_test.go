package transactions_test

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestABodyThatReturnsTheErrorOfItsOwnCommitIsToldNotToCommit(t *testing.T) {
	b := newBank(t, "sqlite") // PostgreSQL's driver returns no error
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Transact(ctx, "move", func(_ context.Context, tx *sql.Tx) (int, error) {
			return 1, tx.Commit()
		})
	})
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
	_, err := wf.Run(ctx, "r", 0)
	require.ErrorContains(t, err, "which it must leave to the library")
}

// The other connection waits for the transaction, and the transaction for the body, five seconds
// each time with the usual timeout: without a line of the log the run stands still in silence.
func TestABodyThatWritesThroughAnotherConnectionIsLoggedTheFirstTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.db")
	synctest.Test(t, func(t *testing.T) {
		st, err := sqlite.OpenOptions(file, sqlite.Options{Synchronous: sqlite.Off, Watch: -1})
		require.NoError(t, err)
		defer st.Close()
		other, err := sqlx.Open("sqlite3", file+"?_busy_timeout=1")
		require.NoError(t, err)
		defer other.Close()
		times := 0
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Transact(ctx, "move", func(ctx context.Context, _ *sqlx.Tx) (int, error) {
				if times++; times == 2 {
					return 1, nil
				}
				time.Sleep(5 * time.Second)
				_, err := other.Exec(`CREATE TABLE mine (x integer)`)
				return 0, err
			})
		})
		var log buffer
		e, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer e.Close()
		_, err = wf.Run(durable.NewContext(t.Context(), e), "r", 0)
		require.NoError(t, err)
		require.Contains(t, log.String(), "meets conflicts")
		require.Contains(t, log.String(), "writes through tx alone")
	})
}
