package transactions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// transfers starts n runs, each of which moves money a few times, in branches too, and
// waits for their ends. Every move has a name of its own.
func transfers(t *testing.T, ctx context.Context, wf *durable.Workflow[int, int], n int) {
	for i := range n {
		_, err := wf.Start(ctx, fmt.Sprintf("t%d", i), i)
		require.NoError(t, err)
	}
	for i := range n {
		h, err := wf.Handle(ctx, fmt.Sprintf("t%d", i))
		require.NoError(t, err)
		_, err = h.Wait(ctx)
		require.NoError(t, err)
	}
}

// killing is told of the places in a body at which its process may die.
var killing = func(place string) {}

const movesOfATransfer = 5

// transfer moves money once, then in three branches at once, each beside plain and
// relaxed steps, and then once more.
func transfer() *durable.Workflow[int, int] {
	one := func(ctx context.Context, name string, i int) error {
		_, err := durable.Transact(ctx, name, func(ctx context.Context, tx *sqlx.Tx) (int, error) {
			err := move(tx, durable.IdempotencyKey(ctx), i%accounts, (i+1)%accounts, 1+i%7)
			killing("in the body, after its writes")
			return i, err
		})
		return err
	}
	return durable.Define("transfer", func(ctx context.Context, i int) (int, error) {
		if err := one(ctx, "first", i); err != nil {
			return 0, err
		}
		branches := durable.NewGroup(ctx)
		for b := range 3 {
			branches.Go(fmt.Sprint("b", b), func(ctx context.Context) error {
				if err := durable.Do(ctx, "before", func(context.Context) error { return nil }, durable.Relaxed()); err != nil {
					return err
				}
				if err := one(ctx, "move", i+b); err != nil {
					return err
				}
				return durable.Do(ctx, "after", func(context.Context) error { return nil })
			})
		}
		if err := branches.Wait(); err != nil {
			return 0, err
		}
		return i, one(ctx, "last", i+2)
	})
}

// requireOnce checks that n transfers were applied once each, and that no money is lost.
func (b *bank) requireOnce(t testing.TB, n int) {
	require.Equal(t, accounts*deposit, b.sum(t), "the sum")
	var moves, names int
	require.NoError(t, b.db.Get(&moves, `SELECT count(*) FROM applied`))
	require.NoError(t, b.db.Get(&names, `SELECT count(DISTINCT what) FROM applied`))
	require.Equal(t, n*movesOfATransfer, moves, "moves")
	require.Equal(t, moves, names, "each move is made once")
}

// A commit is cut before it reaches the server, after the server has carried it out, and
// while the server may still be at it. Only what the library commits for a step counts.
func TestATransferHappensOnceThoughTheConnectionIsCutAtItsCommit(t *testing.T) {
	for _, driver := range []string{"lib/pq", "pgx"} {
		t.Run(driver, func(t *testing.T) { testCuts(t, driver) })
	}
}

func testCuts(t *testing.T, driver string) {
	b := newBank(t, "postgres")
	b.pgx = driver == "pgx"
	p := proxy.New(t, proxy.Target(b.dsn))
	direct := b.dsn
	b.dsn = p.DSN(direct)
	defer func() { b.dsn = direct }()
	wf := transfer()
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
	var n, cuts atomic.Int64
	p.SetPolicy(func(r proxy.Request) proxy.Action {
		if !slices.ContainsFunc(r.SQL, func(sql string) bool { return strings.EqualFold(sql, "COMMIT") }) {
			return proxy.Pass
		}
		switch n.Add(1) % 6 {
		case 1:
			cuts.Add(1)
			return proxy.CutReply
		case 3:
			cuts.Add(1)
			return proxy.CutBlind
		case 5:
			cuts.Add(1)
			return proxy.CutBefore
		}
		return proxy.Pass
	})
	const runs = 30
	transfers(t, ctx, wf, runs)
	p.SetPolicy(nil)
	b.requireOnce(t, runs)
	require.Greater(t, cuts.Load(), int64(50), "it was cut")
	t.Logf("%d commits, %d cut", n.Load(), cuts.Load())
}

// A conflict with another transaction is not the body's fault.
func TestAConflictIsNoFailedAttempt(t *testing.T) {
	b := newBank(t, "postgres")
	var mu sync.Mutex
	tries := map[int]int{}
	wf := durable.Define("w", func(ctx context.Context, i int) (int, error) {
		return durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
			mu.Lock()
			tries[i]++
			mu.Unlock()
			if n := durable.Attempt(ctx).Number; n != 1 {
				return 0, durable.Permanent(fmt.Errorf("attempt %d", n))
			}
			if _, err := tx.Exec(`SET TRANSACTION ISOLATION LEVEL SERIALIZABLE`); err != nil {
				return 0, err
			}
			var balance int
			if err := tx.Get(&balance, `SELECT balance FROM accounts WHERE id = 0`); err != nil {
				return 0, err
			}
			if _, err := tx.Exec(`SELECT pg_sleep(0.002)`); err != nil { // so that they overlap
				return 0, err
			}
			if _, err := tx.Exec(`UPDATE accounts SET balance = $1 WHERE id = 0`, balance-1); err != nil {
				return 0, err
			}
			_, err := tx.Exec(`UPDATE accounts SET balance = balance + 1 WHERE id = 1`)
			return balance, err
		})
	})
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
	const runs = 30
	transfers(t, ctx, wf, runs)
	require.Equal(t, accounts*deposit, b.sum(t))
	var balance int
	require.NoError(t, b.db.Get(&balance, `SELECT balance FROM accounts WHERE id = 0`))
	require.Equal(t, deposit-runs, balance, "no update is lost")
	all := 0
	for _, n := range tries {
		all += n
	}
	require.Greater(t, all, runs, "there were conflicts")
}

// Two transactions that lock rows in opposite orders: the server ends one of them.
func TestADeadlockIsNoFailedAttempt(t *testing.T) {
	b := newBank(t, "postgres")
	var first sync.WaitGroup
	first.Add(2)
	var met [2]atomic.Bool
	dead := durable.Define("dead", func(ctx context.Context, i int) (int, error) {
		return durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
			if _, err := tx.Exec(`UPDATE accounts SET balance = balance - 1 WHERE id = $1`, 2+i); err != nil {
				return 0, err
			}
			if met[i].CompareAndSwap(false, true) {
				first.Done()
				first.Wait()
			}
			_, err := tx.Exec(`UPDATE accounts SET balance = balance + 1 WHERE id = $1`, 3-i)
			var e *pq.Error
			if errors.As(err, &e) && e.Code != "40P01" {
				return 0, durable.Permanent(err)
			}
			return 0, err
		})
	})
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{dead}})
	transfers(t, ctx, dead, 2)
	require.Equal(t, accounts*deposit, b.sum(t))
}
