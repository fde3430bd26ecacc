package transactions_test

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// The signal locks the run's own row until the transaction ends, and what the run has in
// flight may wait for that row.
func TestAStepMaySignalItsOwnRunInItsTransaction(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			g := durable.NewGroup(ctx)
			g.Go("hears", func(ctx context.Context) error {
				for range n {
					if _, err := durable.Await[int](ctx, "news"); err != nil {
						return err
					}
				}
				return nil
			})
			g.Go("tells", func(ctx context.Context) error {
				for i := range n {
					if _, err := durable.Transact(ctx, "tell", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
						return i, durable.Signal(ctx, durable.RunID(ctx), "news", i, durable.InTx(tx))
					}); err != nil {
						return err
					}
					if err := durable.Sleep(ctx, 1); err != nil { // then all of the run waits, and its row changes
						return err
					}
				}
				return nil
			})
			return n, g.Wait()
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		n, err := wf.Run(ctx, "r", 5)
		require.NoError(t, err)
		require.Equal(t, 5, n)
	})
}

func TestTheForeignKeysOfTheProgramsDatabaseHoldInTransactionalSteps(t *testing.T) {
	b := newBank(t, "sqlite")
	db := sqlx.MustConnect("sqlite3", "file:"+b.dsn+"?_foreign_keys=1")
	defer db.Close()
	db.MustExec(`CREATE TABLE cards (account INTEGER NOT NULL REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED)`)
	st, err := sqlite.New(db, sqlite.Options{})
	require.NoError(t, err)
	defer st.Close()
	wf := durable.Define("w", func(ctx context.Context, account int) (int, error) {
		return durable.Transact(ctx, "card", func(_ context.Context, tx *sqlx.Tx) (int, error) {
			_, err := tx.Exec(`INSERT INTO cards (account) VALUES (?)`, account)
			return account, err
		})
	})
	e, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}})
	require.NoError(t, err)
	defer e.Close()
	ctx := durable.NewContext(t.Context(), e)
	_, err = wf.Run(ctx, "good", 1)
	require.NoError(t, err)
	_, err = wf.Run(ctx, "bad", 77)
	require.ErrorContains(t, err, "FOREIGN KEY", "found when it commits")
	var n int
	require.NoError(t, b.db.Get(&n, `SELECT count(*) FROM cards`))
	require.Equal(t, 1, n)
}
