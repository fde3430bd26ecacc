package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

func TestTheEffectAndTheOutcomeOfATransactionalStepCommitTogether(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		var bodies atomic.Int32
		wf := durable.Define("w", func(ctx context.Context, amount int) (int, error) {
			if _, err := durable.Step(ctx, "before", func(context.Context) (int, error) { return 1, nil }, durable.Relaxed()); err != nil {
				return 0, err
			}
			left, err := durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				bodies.Add(1)
				if err := move(tx, "sqlx", 0, 1, amount); err != nil {
					return 0, err
				}
				var left int
				return left, tx.GetContext(ctx, &left, `SELECT balance FROM accounts WHERE id = 0`)
			})
			if err != nil {
				return 0, err
			}
			_, err = durable.Transact(ctx, "plain", func(ctx context.Context, tx *sql.Tx) (bool, error) {
				_, err := tx.ExecContext(ctx, `INSERT INTO applied (what) VALUES ('sql')`)
				return true, err
			})
			return left, err
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		left, err := wf.Run(ctx, "r", 30)
		require.NoError(t, err)
		require.Equal(t, deposit-30, left)
		require.Equal(t, accounts*deposit, b.sum(t))
		require.Equal(t, 1, b.applied(t, "sqlx"))
		require.Equal(t, 1, b.applied(t, "sql"))
		require.EqualValues(t, 1, bodies.Load())
	})
}

func TestAFailedTransactionalStepLeavesNothingBehind(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		declined := errors.New("declined")
		fail := map[string]func(){
			"error": func() {}, "panic": func() { panic("no") }, "goexit": func() { runtime.Goexit() },
		}
		wf := durable.Define("w", func(ctx context.Context, how string) (int, error) {
			return durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if err := move(tx, how, 0, 1, 10); err != nil {
					return 0, err
				}
				fail[how]()
				return 0, declined
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}, Errors: []durable.ErrorKind{durable.Sentinel("declined", declined)}})
		for how := range fail {
			_, err := wf.Run(ctx, how, how)
			require.Error(t, err)
			if how == "error" {
				require.ErrorIs(t, err, declined)
			}
			require.Zero(t, b.applied(t, how), how)
		}
		require.Equal(t, accounts*deposit, b.sum(t))
	})
}

func TestEachAttemptOfATransactionalStepHasATransactionOfItsOwn(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.RetryTransact(ctx, "move", durable.Policy{Initial: 1}, func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				a := durable.Attempt(ctx)
				if len(a.Failures) != a.Number-1 {
					return 0, durable.Permanent(errors.New("a failure is missing"))
				}
				if err := move(tx, "retried", 0, 1, 10); err != nil {
					return 0, err
				}
				if a.Number < 3 {
					return 0, errors.New("not yet")
				}
				return a.Number, nil
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		n, err := wf.Run(ctx, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, 1, b.applied(t, "retried"))
	})
}

func TestBranchesOfARunMayRunTransactionalStepsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			items := make([]int, n)
			for i := range items {
				items[i] = i
			}
			out, err := durable.Map(ctx, "items", items, durable.MapOptions{Concurrency: 8}, func(ctx context.Context, i int) (int, error) {
				if err := durable.Do(ctx, "before", func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
				if _, err := durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
					return i, move(tx, "item", i%accounts, (i+1)%accounts, 1)
				}); err != nil {
					return 0, err
				}
				return i, durable.Do(ctx, "after", func(context.Context) error { return nil })
			})
			return len(out), err
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		n, err := wf.Run(ctx, "r", 40)
		require.NoError(t, err)
		require.Equal(t, 40, n)
		require.Equal(t, 40, b.applied(t, "item"))
		require.Equal(t, accounts*deposit, b.sum(t))
	})
}

func TestAStoreWithoutTransactionsSaysSo(t *testing.T) {
	st := memory.Open()
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Transact(ctx, "move", func(context.Context, *sqlx.Tx) (int, error) { return 1, nil })
	})
	e, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}})
	require.NoError(t, err)
	defer e.Close()
	ctx := durable.NewContext(t.Context(), e)
	_, err = wf.Run(ctx, "r", 0)
	require.ErrorIs(t, err, durable.ErrNoTransactions)
	b := newBank(t, "sqlite")
	tx, err := b.db.Beginx()
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = wf.Start(ctx, "s", 0, durable.InTx(tx))
	require.ErrorIs(t, err, durable.ErrNoTransactions)
	require.ErrorIs(t, durable.Signal(ctx, "r", "x", 1, durable.InTx(tx)), durable.ErrNoTransactions)
	require.Nil(t, store.CapabilitiesOf(st).Transactor)
}

// What the run has done before is in the log while the transaction is open, and its row has to go
// with it.
func TestTheRowOfARunAgreesWithItsLogWhileATransactionIsOpen(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		var found operate.Verification
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			if err := durable.Sleep(ctx, 20*time.Millisecond); err != nil {
				return 0, err
			}
			return durable.Transact(ctx, "move", func(_ context.Context, tx *sqlx.Tx) (n int, err error) {
				found, err = operate.On(b.last).Verify(t.Context(), "r")
				return 1, err
			})
		})
		_, err := wf.Run(b.engine(t, durable.Options{Workflows: []durable.Definition{wf}}), "r", 0)
		require.NoError(t, err)
		require.Empty(t, found.Findings)
	})
}
