package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// harness gives each case a schema of its own in one database, which is made much faster
// than a database, and emptied faster still (caseSchemas). It does not wait for the disk:
// what a case checks does not depend on it.
func harness(t *testing.T, o postgres.Options, has ...conformance.Capability) conformance.Harness {
	return harnessOf(t, "postgres", o, has...)
}

// openWith opens a store with the pool of a driver.
func openWith(driver, dsn string, o postgres.Options) (store.Store, error) {
	if driver == "pgx" {
		return openPgx(dsn, o)
	}
	return postgres.OpenOptions(dsn, o)
}

func harnessOf(t *testing.T, driver string, o postgres.Options, has ...conformance.Capability) conformance.Harness {
	schemas := newCaseSchemas(t, driver, pgtest.With(pgtest.DSN(t), "synchronous_commit", "off"))
	var n atomic.Int64
	return conformance.Harness{
		Parallel: true,
		New: func(t testing.TB) conformance.Data {
			o := o
			var db *sqlx.DB
			o.Schema, db = schemas.take(t)
			dsn := schemas.dsnOf(o.Schema)
			one := func(text string, args ...any) error {
				res, err := db.Exec(text, args...)
				if err != nil {
					return err
				}
				if n, err := res.RowsAffected(); n != 1 {
					return fmt.Errorf("%d rows changed: %w", n, err)
				}
				return nil
			}
			return conformance.Data{
				Requests: requestTable(db),
				Open:     func() (store.Store, error) { return openWith(driver, dsn, o) },
				Place:    driver + " " + o.Schema + " " + dsn,
				Corrupt: func(run string, seq int64) error {
					return one(`UPDATE durable_events SET payload = 'damaged' FROM durable_runs r WHERE r.id = $1 AND run_no = r.no AND seq = $2`, run, seq)
				},
				Copy: func() (string, func() (store.Store, error)) {
					to, back := fmt.Sprintf("copy_%d", n.Add(1)), o
					back.Schema = to + "_back"
					return to, func() (store.Store, error) {
						sc, err := postgres.OpenSchema(dsn, back)
						if err != nil {
							return nil, err
						}
						_, err = sc.Restore(t.Context(), to)
						if err := errors.Join(err, sc.Close()); err != nil {
							return nil, err
						}
						return openWith(driver, dsn, back)
					}
				},
				Future: func() error {
					return one(`INSERT INTO durable_schema (version, name, applied_at) VALUES (9999, 'future', 0)`)
				},
				Begin: func(ctx context.Context) (conformance.Tx, error) {
					tx, err := db.BeginTxx(ctx, nil)
					if err != nil {
						return conformance.Tx{}, err
					}
					return conformance.Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
				},
			}
		},
		Has: has,
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	all := conformance.Capabilities()
	report := conformance.Run(t, harness(t, postgres.Options{}, all...))
	require.Len(t, report.Present, len(all))
}

func TestConformanceOnAPoolOfPgx(t *testing.T) {
	t.Parallel()
	all := conformance.Capabilities()
	report := conformance.Run(t, harnessOf(t, "pgx", postgres.Options{}, all...))
	require.Len(t, report.Present, len(all))
}
