package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A program starts runs in its own transactions, as many at a time as its pool has connections. None
// of them may wait for another connection, since all wait for one then.
func TestTransactionsThatHaveTheWholePoolAreCommittedIn(t *testing.T) {
	db, err := sqlx.Open("postgres", pgtest.DSN(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(6)
	s, err := postgres.New(db, postgres.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	commit(t, s, (&runLog{id: "first"}).create("")) // the store has connections of its own

	var txs []*sqlx.Tx
	for db.Stats().InUse < 6 {
		txs = append(txs, db.MustBegin())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	errs := make([]error, len(txs))
	var all sync.WaitGroup
	for i, tx := range txs {
		all.Go(func() { errs[i] = s.CommitIn(ctx, tx, (&runLog{id: fmt.Sprint("r", i)}).create("")) })
	}
	all.Wait()
	for i, tx := range txs {
		require.NoError(t, errs[i])
		require.NoError(t, tx.Commit())
	}
	require.Greater(t, len(txs), 2)
}
