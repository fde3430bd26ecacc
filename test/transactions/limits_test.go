package transactions_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestABodyInATransactionMakesNoDurableCallsAndNoWritesBesideIt(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		other := echo()
		calls := map[string]func(ctx context.Context) error{
			"step": func(ctx context.Context) error {
				return durable.Do(ctx, "inner", func(context.Context) error { return nil })
			},
			"transaction": func(ctx context.Context) error {
				_, err := durable.Transact(ctx, "inner", func(context.Context, *sqlx.Tx) (int, error) { return 0, nil })
				return err
			},
			"start":    func(ctx context.Context) error { _, err := other.Start(ctx, "other", 1); return err },
			"signal":   func(ctx context.Context) error { return durable.Signal(ctx, "r-signal", "x", 1) },
			"cancel":   func(ctx context.Context) error { return b.last.Cancel(ctx, "r-cancel", "") },
			"progress": func(ctx context.Context) error { return durable.SaveProgress(ctx, 1) },
		}
		wf := durable.Define("w", func(ctx context.Context, call string) (int, error) {
			return durable.RetryTransact(ctx, "move", durable.Policy{Initial: 1}, func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if err := mark(tx, call); err != nil {
					return 0, err
				}
				return 1, calls[call](ctx)
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf, other}})
		for call := range calls {
			_, err := wf.Run(ctx, "r-"+call, call)
			require.ErrorIs(t, err, durable.ErrNested, call)
			require.NotErrorIs(t, err, durable.ErrUnavailable, "%s: nobody should wait for the store", call)
			require.Zero(t, b.applied(t, call), call)
		}
		_, err := b.last.Get(ctx, "other")
		require.ErrorIs(t, err, durable.ErrNotFound)
	})
}

func TestATransactionalStepCannotBeRelaxedAndNotWithoutAFunction(t *testing.T) {
	b := newBank(t, "sqlite")
	wf := durable.Define("w", func(ctx context.Context, relaxed bool) (int, error) {
		if relaxed {
			return durable.Transact(ctx, "move", func(context.Context, *sqlx.Tx) (int, error) { return 1, nil }, durable.Relaxed())
		}
		return durable.Transact[int, *sql.Tx](ctx, "move", nil)
	})
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
	for _, relaxed := range []bool{true, false} {
		_, err := wf.Run(ctx, fmt.Sprint(relaxed), relaxed)
		require.ErrorIs(t, err, durable.ErrInvalid)
	}
}

func TestACancelledBodyLeavesNothingBehindAndOneThatSucceedsIsRecorded(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		begun := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, heeds bool) (int, error) {
			return durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if err := mark(tx, fmt.Sprint("heeds ", heeds)); err != nil {
					return 0, err
				}
				if heeds {
					begun <- struct{}{}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				return 1, nil
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}, Grace: time.Millisecond})
		_, err := durable.Recover(ctx)
		require.NoError(t, err)
		h, err := wf.Start(ctx, "r", true)
		require.NoError(t, err)
		<-begun
		e := b.last
		if b.kind == "sqlite" {
			// The body has the writer, so the cancel waits for it. Close ends it, as a shutdown does.
			go func() { _ = e.Close() }()
			_, err = h.Wait(ctx)
			require.ErrorIs(t, err, durable.ErrInterrupted)
		} else {
			require.NoError(t, e.Cancel(ctx, "r", "enough"))
			_, err = h.Wait(ctx)
			require.ErrorIs(t, err, durable.ErrRunCancelled)
		}
		eventually(t, "nothing of it is left", func() bool { return b.applied(t, "heeds true") == 0 })
	})
}

// An owner that was replaced while its body ran is fenced, and its writes are undone.
func TestTheTransactionOfAnOwnerThatWasReplacedIsRolledBack(t *testing.T) {
	b := newBank(t, "postgres") // on SQLite nobody can be replaced while a transaction is open
	var bodies atomic.Int32
	begun, goOn := make(chan struct{}), make(chan struct{})
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Transact(ctx, "move", func(_ context.Context, tx *sqlx.Tx) (int, error) {
			n := int(bodies.Add(1))
			if n == 1 {
				close(begun)
				<-goOn
			}
			return n, move(tx, fmt.Sprint("body ", n), 0, 1, 5)
		})
	})
	// The first engine cannot beat any more once its body has begun.
	deaf := &deafStore{Store: b.open(t)}
	first, err := durable.Open(t.Context(), deafTransactor{deaf, store.CapabilitiesOf(deaf.Store).Transactor}, durable.Options{Workflows: []durable.Definition{wf}, Lease: durable.MinLease})
	require.NoError(t, err)
	defer func() { _ = deaf.Store.Close() }()
	_, err = wf.Start(durable.NewContext(t.Context(), first), "r", 0)
	require.NoError(t, err)
	<-begun
	deaf.deaf.Store(true)
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}, Lease: durable.MinLease})
	h, err := wf.Handle(ctx, "r")
	require.NoError(t, err)
	eventually(t, "another engine has made the step", func() bool {
		_, err := durable.Recover(ctx)
		require.NoError(t, err)
		return bodies.Load() > 1
	})
	n, err := h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	close(goOn)
	require.NoError(t, first.Close())
	require.Zero(t, b.applied(t, "body 1"))
	require.Equal(t, 1, b.applied(t, "body 2"))
	require.Equal(t, accounts*deposit, b.sum(t))
}

// deafStore takes no heartbeat once it is deaf.
type deafStore struct {
	store.Store
	deaf atomic.Bool
}

func (s *deafStore) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if s.deaf.Load() && !x.Leaving {
		return store.Pulse{}, errors.New("no answer")
	}
	return s.Store.Beat(ctx, x)
}

type deafTransactor struct {
	*deafStore
	store.Transactor
}

// An interrupted statement makes SQLite roll the whole transaction back without a
// word, and the next one would be durable on its own.
func TestAStatementThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return durable.Transact(ctx, "move", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if err := mark(tx, "first"); err != nil {
					return 0, err
				}
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				defer cancel()
				long := `SELECT pg_sleep(30)`
				if b.kind == "sqlite" {
					long = `INSERT INTO applied (what) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'many' FROM n`
				}
				switch _, err := tx.ExecContext(short, long); {
				case err == nil:
					return 0, errors.New("it was not interrupted")
				case b.kind == "postgres":
					return 0, err
				}
				_ = mark(tx, "after") // what a careless body does
				return 1, nil
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		_, err := wf.Run(ctx, "r", 0)
		require.Error(t, err)
		for _, what := range []string{"first", "many", "after"} {
			require.Zero(t, b.applied(t, what), what)
		}
	})
}

func TestABodyThatCommitsItselfFailsAndOnSQLiteHasDoneNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b *bank) {
		wf := durable.Define("w", func(ctx context.Context, how string) (int, error) {
			return durable.Transact(ctx, "move", func(_ context.Context, tx *sqlx.Tx) (int, error) {
				if err := mark(tx, how); err != nil {
					return 0, err
				}
				if how == "commit" {
					_ = tx.Commit()
				} else {
					_ = tx.Rollback()
				}
				return 1, nil
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		for _, how := range []string{"commit", "rollback"} {
			_, err := wf.Run(ctx, how, how)
			require.ErrorContains(t, err, "which it must leave to the library", how)
		}
		require.Zero(t, b.applied(t, "rollback"))
		if b.kind == "sqlite" {
			require.Zero(t, b.applied(t, "commit"))
		}
		h, err := operate.On(b.last).Verify(ctx, "commit")
		require.NoError(t, err)
		require.Empty(t, h.Findings)
	})
}

// The driver knows nothing of a COMMIT or ROLLBACK that is sent as a statement. On SQLite a commit hook
// refuses the first, and what the body has rolled back itself is rolled back.
func TestABodyThatEndsItsTransactionBySQLFails(t *testing.T) {
	test := func(t *testing.T, b *bank) {
		wf := durable.Define("w", func(ctx context.Context, how string) (int, error) {
			return durable.Transact(ctx, "move", func(_ context.Context, tx *sqlx.Tx) (int, error) {
				if err := mark(tx, how); err != nil {
					return 0, err
				}
				_, _ = tx.Exec(how)
				return 1, nil
			})
		})
		ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
		for _, how := range []string{"COMMIT", "ROLLBACK", "END"} {
			_, err := wf.Run(ctx, how, how)
			require.ErrorContains(t, err, "which it must leave to the library", how)
		}
		require.Zero(t, b.applied(t, "ROLLBACK"))
		if b.kind == "sqlite" {
			require.Zero(t, b.applied(t, "COMMIT")+b.applied(t, "END"))
		}
		only := durable.Define("only", func(ctx context.Context, what string) (int, error) {
			return durable.Transact(ctx, "read", func(_ context.Context, tx *sqlx.Tx) (n int, err error) {
				return n, tx.Get(&n, `SELECT count(*) FROM accounts`)
			})
		})
		n, err := only.Run(b.engine(t, durable.Options{Workflows: []durable.Definition{only}}), "reads", "")
		require.NoError(t, err, "one that has only read has not")
		require.Equal(t, accounts, n)
	}
	onEach(t, test)
	t.Run("pgx", func(t *testing.T) {
		b := newBank(t, "postgres")
		b.pgx = true
		test(t, b)
	})
}

// After a failover the pool may have a connection to the server that was the primary. It takes no writes, and
// that is not the fault of the body.
func TestATransactionOnAServerThatTakesNoWritesIsMadeAgainOnAnotherConnection(t *testing.T) {
	for _, kind := range []struct{ pgx, writes bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		t.Run(fmt.Sprintf("pgx %t, the body writes %t", kind.pgx, kind.writes), func(t *testing.T) {
			b := newBank(t, "postgres")
			b.pgx = kind.pgx
			const open = 8 // as many as there are at a time
			var together sync.WaitGroup
			together.Add(open)
			var arrived [open]sync.Once // a body that is made again has
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				g := durable.NewGroup(ctx)
				for i := range open {
					g.Go(fmt.Sprint(i), func(ctx context.Context) error {
						_, err := durable.Transact(ctx, "age", func(_ context.Context, tx *sqlx.Tx) (int, error) {
							arrived[i].Do(together.Done)
							together.Wait()
							_, err := tx.Exec(`SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY`) // of those to come
							return 0, err
						})
						return err
					})
				}
				if err := g.Wait(); err != nil {
					return 0, err
				}
				return durable.Transact(ctx, "move", func(_ context.Context, tx *sqlx.Tx) (int, error) {
					if !kind.writes {
						return 1, nil // its checkpoint is refused
					}
					return 1, mark(tx, "x")
				})
			})
			ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
			_, err := wf.Run(ctx, "r", 0)
			require.NoError(t, err)
			if kind.writes {
				require.Equal(t, 1, b.applied(t, "x"))
			}
		})
	}
}

// pgx keeps statements prepared. After a migration the server refuses those whose columns have changed, once.
func TestAMigrationBetweenTwoTransactionsFailsNoStep(t *testing.T) {
	b := newBank(t, "postgres")
	b.pgx = true
	b.db.MustExec(`CREATE TABLE items (id integer)`)
	b.db.MustExec(`INSERT INTO items VALUES (1)`)
	wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
		for i := range n {
			_, err := durable.Transact(ctx, "look", func(ctx context.Context, tx *sqlx.Tx) (int, error) {
				if err := mark(tx, "x"); err != nil {
					return 0, err
				}
				rows, err := tx.QueryxContext(ctx, `SELECT * FROM items WHERE id = $1`, 1)
				if err != nil {
					return 0, err
				}
				defer rows.Close()
				for rows.Next() {
					if _, err := rows.SliceScan(); err != nil {
						return 0, err
					}
				}
				return 1, rows.Err()
			})
			if err != nil {
				return 0, err
			}
			b.db.MustExec(fmt.Sprintf(`ALTER TABLE items ADD COLUMN c%d integer`, i))
		}
		return n, nil
	})
	ctx := b.engine(t, durable.Options{Workflows: []durable.Definition{wf}})
	_, err := wf.Run(ctx, "r", 4)
	require.NoError(t, err)
	require.Equal(t, 4, b.applied(t, "x"))
}
