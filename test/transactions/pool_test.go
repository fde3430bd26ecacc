package transactions_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

// The transactions of steps share the program's pool with the store, which needs connections to commit them.
func TestBranchesInTransactionsGetThroughOnTheSmallestPool(t *testing.T) {
	for _, name := range []string{"postgres", "pgx"} {
		t.Run(name, func(t *testing.T) {
			b := newBank(t, "postgres")
			db := sqlx.MustConnect(name, b.dsn)
			defer db.Close()
			db.SetMaxOpenConns(3)
			st, err := postgres.New(db, postgres.Options{DSN: b.dsn})
			require.NoError(t, err)
			defer st.Close()
			wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
				g := durable.NewGroup(ctx)
				for i := range n {
					g.Go(fmt.Sprint("b", i), func(ctx context.Context) error {
						for range 3 {
							if _, err := durable.Transact(ctx, "move", func(_ context.Context, tx *sqlx.Tx) (int, error) { return 1, mark(tx, "x") }); err != nil {
								return err
							}
							if err := durable.Do(ctx, "plain", func(context.Context) error { return nil }); err != nil {
								return err
							}
						}
						return nil
					})
				}
				return n, g.Wait()
			})
			e, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			defer e.Close()
			ctx, cancel := context.WithTimeout(durable.NewContext(t.Context(), e), 20*time.Second)
			defer cancel()
			_, err = wf.Run(ctx, "r", 12)
			require.NoError(t, err)
			require.Equal(t, 36, b.applied(t, "x"))
		})
	}
}
