package durabletest_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Without a fault it is the store that it wraps, with its abilities.
func TestAFaultStoreWithoutFaultsKeepsTheContract(t *testing.T) {
	conformance.Run(t, conformance.Harness{
		Parallel: true,
		New: func(t testing.TB) conformance.Data {
			data := memory.Open()
			return conformance.Data{Open: func() (store.Store, error) { return durabletest.Faults(data.Handle()), nil }}
		},
		Has: []conformance.Capability{conformance.Notifier, conformance.Meter, conformance.Clocked, conformance.Schedules, conformance.Queues, conformance.Loader},
	})
}

// booking has two steps with an effect each, the second of which is retried.
func booking(did map[string]int) *durable.Workflow[int, string] {
	effect := func(ctx context.Context) (string, error) {
		did[durable.IdempotencyKey(ctx)]++
		return durable.Attempt(ctx).Key, nil
	}
	return durable.Define("booking", func(ctx context.Context, _ int) (string, error) {
		a, err := durable.Step(ctx, "reserve", effect)
		if err != nil {
			return "", err
		}
		if err := durable.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		b, err := durable.Retry(ctx, "charge", durable.Policy{MaxAttempts: 3}, effect)
		return a + b, err
	})
}

func TestARunSurvivesEachFaultAtEachCallOfItsStore(t *testing.T) {
	for _, do := range []durabletest.Harm{durabletest.LostBefore, durabletest.LostAfter, durabletest.Refused, durabletest.Slow, durabletest.SlowAnswer, durabletest.Cut} {
		for _, on := range []string{"commit", "claim", "beat", "load"} {
			t.Run(fmt.Sprint(do, " ", on), func(t *testing.T) {
				met, first := 0, 1
				if on == "beat" {
					first = 2 // without the first one there is no engine: Open says so
				}
				for nth := first; nth <= 12; nth++ {
					synctest.Test(t, func(t *testing.T) {
						did := map[string]int{}
						wf := booking(did)
						data := memory.Open()
						bad := durabletest.Faults(data.Handle(), durabletest.Fault{Do: do, For: 2 * time.Second, On: on, Nth: nth})
						eng := engineOn(t, bad, nil, wf)
						ctx := durable.NewContext(t.Context(), eng)
						_, err := eng.Recover(ctx)
						for ; err != nil; _, err = eng.Recover(ctx) {
							time.Sleep(time.Second)
						}
						run, err := wf.Start(ctx, "r", 0)
						for ; err != nil; run, err = wf.Start(ctx, "r", 0) {
							time.Sleep(time.Second)
						}
						out, err := run.Wait(ctx)
						for ; err != nil; out, err = run.Wait(ctx) {
							time.Sleep(time.Second)
						}
						require.Equal(t, "reservecharge", out)
						require.Len(t, did, 2)
						durabletest.HistoryOf(t, engineOn(t, data.Handle(), nil), "r").WantsOnly(durabletest.Did("reserve"), durabletest.Did("sleep"), durabletest.Did("charge"))
						met += len(bad.Happened())
					})
				}
				require.Greater(t, met, 0)
			})
		}
	}
}

// A process that is cut off for longer than its lease loses its run to another one.
func TestAProcessThatIsCutOffLosesItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := memory.Open()
		did := map[string]int{}
		wf := booking(did)
		lonely := durabletest.Faults(data.Handle())
		a := engineOn(t, lonely, nil, wf)
		run, err := wf.Start(durable.NewContext(t.Context(), a), "r", 0)
		require.NoError(t, err)
		lonely.Cut()
		b := engineOn(t, data.Handle(), nil, wf)
		_, err = b.Recover(t.Context())
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		row, err := b.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, store.Completed, row.Status)
		lonely.Heal()
		out, err := run.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, "reservecharge", out)
		require.Len(t, did, 2)
	})
}

func TestASeedChoosesTheSameFaultsAgain(t *testing.T) {
	night := func(seed uint64) (happened []string) {
		synctest.Test(t, func(t *testing.T) {
			s := durabletest.Faults(memory.Open(), durabletest.Fault{Do: durabletest.LostAfter, On: "commit", Chance: 0.3, Seed: seed})
			wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
				for range 30 {
					if err := durable.Do(ctx, "s", func(context.Context) error { return nil }); err != nil {
						return 0, err
					}
				}
				return 0, nil
			})
			eng := engineOn(t, s, nil, wf)
			h, err := wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
			for err != nil {
				h, err = wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
			}
			_, err = h.Wait(t.Context())
			require.NoError(t, err)
			happened = s.Happened()
		})
		return happened
	}
	first := night(1)
	require.Greater(t, len(first), 4)
	require.Less(t, len(first), 25)
	require.Equal(t, first, night(1))
	require.NotEqual(t, first, night(2))
	require.True(t, strings.HasPrefix(first[0], "lost after: commit "), first[0])
}

// The commit that records one step, and the COMMIT of a transaction, whose effect happens once.
func TestAFaultMeetsTheCommitOfAStep(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"))
	require.NoError(t, err)
	s := durabletest.Faults(db,
		durabletest.Fault{Do: durabletest.LostAfter, Step: "quote", Nth: 1},
		durabletest.Fault{Do: durabletest.LostBefore, On: "commit in transaction", Step: "pay", Nth: 1},
		durabletest.Fault{Do: durabletest.Refused, On: "transaction", Nth: 2},
		durabletest.Fault{Do: durabletest.LostAfter, On: "commit in transaction", Step: "pay", Nth: 2})
	bodies := 0
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		if err := durable.Do(ctx, "quote", func(context.Context) error { bodies++; return nil }); err != nil {
			return 0, err
		}
		return durable.Transact(ctx, "pay", func(ctx context.Context, tx *sql.Tx) (n int, err error) {
			if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS paid (n INTEGER)`); err != nil {
				return 0, err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO paid VALUES (1)`); err != nil {
				return 0, err
			}
			return n, tx.QueryRowContext(ctx, `SELECT count(*) FROM paid`).Scan(&n)
		})
	})
	eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer func() { require.NoError(t, eng.Close()) }()
	out, err := runOf(t, eng, wf, "r", 0)
	require.NoError(t, err)
	require.Equal(t, 1, out)
	require.Equal(t, 1, bodies)
	require.Equal(t, []string{
		"lost after: commit step_completed quote of r",
		"lost before: commit in transaction step_completed pay of r",
		"refused: transaction",
		"lost after: commit in transaction step_completed pay of r",
	}, s.Happened())
}

// A name that a key has in another spelling.
func TestAFaultMeetsAStepWhateverItsName(t *testing.T) {
	const name = "charge/eur #1 [50%]"
	durabletest.VirtualTime(t, durable.Options{}, func(t *testing.T, _ *durable.Engine) {
		s := durabletest.Faults(memory.Open(), durabletest.Fault{Do: durabletest.LostAfter, Step: name, Nth: 1})
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Do(ctx, name, func(context.Context) error { return nil })
		})
		_, err := runOf(t, engineOn(t, s, nil, wf), wf, "r", 0)
		require.NoError(t, err)
		require.Len(t, s.Happened(), 1)
	})
	n := 0
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		_, err := durable.Step(ctx, name, func(context.Context) (int, error) { n++; return n, nil })
		return 0, err
	})
	require.NoError(t, durabletest.Examine(t, wf, 0, durabletest.Varies(name), durabletest.Reset(func() { n = 0 }), durabletest.SameProcess()))
}

// It would pass for a night without faults.
func TestAFaultThatCannotHappenIsRefused(t *testing.T) {
	for _, f := range []durabletest.Fault{
		{On: "commit"}, {Do: "lost"}, {Do: durabletest.Refused, On: "comit"}, {Do: durabletest.Refused, On: "load", Step: "s"},
	} {
		require.Panics(t, func() { durabletest.Faults(memory.Open(), f) }, "%+v", f)
	}
}

// What is read after a lost COMMIT may be on the primary alone, where replication is synchronous: the
// store is asked whether it is safe, as it is for every other change whose answer was lost.
func TestATransactionThatIsFoundIsAcknowledgedByTheStore(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"))
	require.NoError(t, err)
	s := durabletest.Faults(db,
		durabletest.Fault{Do: durabletest.LostAfter, On: "commit in transaction", Step: "pay", Nth: 1},
		durabletest.Fault{Do: durabletest.Slow, On: "commit", Step: "pay"}) // to see them
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Transact(ctx, "pay", func(context.Context, *sql.Tx) (int, error) { return 1, nil })
	})
	eng := engineOn(t, s, nil, wf)
	out, err := runOf(t, eng, wf, "r", 0)
	require.NoError(t, err)
	require.Equal(t, 1, out)
	require.Equal(t, []string{
		"lost after: commit in transaction step_completed pay of r",
		"slow: commit step_started pay of r",
		"slow: commit step_completed pay of r",
	}, s.Happened())
}

// What the database says of a commit is no outcome of the step: the function would take it for one.
func TestAFunctionIsToldThatItsRunStopsAndNotWhatBecameOfATransaction(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"))
	require.NoError(t, err)
	s := durabletest.Faults(db, durabletest.Fault{Do: durabletest.Refused, On: "commit in transaction", Step: "pay"})
	begun, told := make(chan struct{}), make(chan error, 1)
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		v, err := durable.Transact(ctx, "pay", func(ctx context.Context, _ *sql.Tx) (int, error) {
			close(begun)
			<-ctx.Done()
			return 1, nil
		})
		told <- err
		return v, err
	})
	eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: []durable.Definition{wf}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = wf.Start(durable.NewContext(t.Context(), eng), "r", 0)
	require.NoError(t, err)
	<-begun
	require.NoError(t, eng.Close())
	require.ErrorIs(t, <-told, durable.ErrShutdown)
}

// The store answers the beginning of a transaction when the lease is over. Nobody has the transaction then,
// and in SQLite it would keep everybody from writing.
func TestATransactionWhoseBeginningIsAnsweredTooLateIsRolledBack(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "app.db"))
	require.NoError(t, err)
	s := durabletest.Faults(db, durabletest.Fault{Do: durabletest.SlowAnswer, On: "transaction", Nth: 1, For: 2 * durable.MinLease})
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return durable.Transact(ctx, "pay", func(ctx context.Context, _ *sql.Tx) (int, error) {
			return durable.Attempt(ctx).Number, nil
		})
	})
	eng, err := durable.Open(t.Context(), s, durable.Options{Workflows: []durable.Definition{wf}, Lease: durable.MinLease, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	out, err := runOf(t, eng, wf, "r", 0)
	require.NoError(t, err)
	require.Equal(t, 1, out, "the attempt that did not begin does not count")
}
