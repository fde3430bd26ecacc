package postgres_test

import (
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// The outcomes of transactional steps go through a prepared statement, which a session may
// lose, and which is prepared anew from time to time.
func TestManyTransactionsOnOneConnectionLeaveOneStatementPrepared(t *testing.T) {
	dsn := pgtest.With(pgtest.DSN(t), "synchronous_commit", "off")
	s := open(t, dsn)
	r := &runLog{id: "r"}
	commit(t, s, r.create("e"))
	transact := func(sql string) (tx store.Tx, err error) {
		was := *r
		tx, err = s.BeginTx(t.Context())
		require.NoError(t, err)
		_, err = tx.Handle().(*sqlx.Tx).Exec("CREATE TEMPORARY TABLE IF NOT EXISTS written (n integer); INSERT INTO written VALUES (1); " + sql)
		require.NoError(t, err)
		if err = tx.Commit(r.step(nil)); err != nil {
			*r = was
		}
		return tx, err
	}
	for range 450 {
		_, err := transact("")
		require.NoError(t, err)
	}
	tx, err := transact("DEALLOCATE ALL")
	require.Error(t, err)
	require.True(t, tx.Again(err), "%v: nothing is wrong with the body", err)
	for range 2 {
		_, err = transact("")
		require.NoError(t, err)
	}
	other := *r
	other.epoch--
	tx, err = s.BeginTx(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, tx.Commit(other.step(nil)), store.ErrFenced)
	tx, err = s.BeginTx(t.Context())
	require.NoError(t, err)
	var names, level []string
	require.NoError(t, tx.Handle().(*sqlx.Tx).Select(&names, "SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%durable_events%'"))
	require.Len(t, names, 1)
	require.NoError(t, tx.Handle().(*sqlx.Tx).Select(&level, "SHOW transaction_isolation"))
	require.Equal(t, []string{"read committed"}, level)
	require.NoError(t, tx.Rollback())
	require.EqualValues(t, 453, r.seq)
}

// What the program asks for as the default of its connections is not what a step gets.
func TestATransactionOfAStepIsReadCommittedWhateverTheDefault(t *testing.T) {
	s := open(t, pgtest.With(pgtest.DSN(t), "default_transaction_isolation", "serializable"))
	tx, err := s.BeginTx(t.Context())
	require.NoError(t, err)
	var level string
	require.NoError(t, tx.Handle().(*sqlx.Tx).Get(&level, "SHOW transaction_isolation"))
	require.Equal(t, "read committed", level)
	require.NoError(t, tx.Rollback())
}

// A body may have set its transaction read-only: the server takes writes all the same.
func TestATransactionThatItsBodyHasSetReadOnlyIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.DSN(t))
	r := &runLog{id: "r"}
	require.NoError(t, s.Commit(t.Context(), []store.Change{r.create("")})[0])
	tx, err := s.BeginTx(t.Context())
	require.NoError(t, err)
	_, err = tx.Handle().(*sqlx.Tx).Exec(`SET TRANSACTION READ ONLY`)
	require.NoError(t, err)
	err = tx.Commit(r.step(nil))
	require.ErrorContains(t, err, "the transaction may only read")
	require.NotContains(t, err.Error(), "the server takes no writes")
}
