package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

func harness(o postgres.Options, has ...conformance.Capability) conformance.Harness {
	return conformance.Harness{
		New: func(t testing.TB) conformance.Data {
			dsn := pgtest.DSN(t)
			db := raw(t, dsn)
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
				Open: func() (store.Store, error) { return postgres.OpenOptions(dsn, o) },
				Corrupt: func(run string, seq int64) error {
					return one(`UPDATE durable_events SET payload = 'damaged' FROM durable_runs r WHERE r.id = $1 AND run_no = r.no AND seq = $2`, run, seq)
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
	all := conformance.Capabilities()
	report := conformance.Run(t, harness(postgres.Options{}, all...))
	require.Len(t, report.Present, len(all))
}
