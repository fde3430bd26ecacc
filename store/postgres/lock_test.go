package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// One transaction that somebody left open, with a change of one run in it, must
// not hold up the other runs of a batch.
func TestALockOnOneRunHoldsUpNoOtherRunOfItsBatch(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		priority := int32(3)
		plain := func(r *runLog) store.Change { return r.step(nil) }
		for name, stuck := range map[string]struct {
			holds, wants func(r *runLog) store.Change
		}{
			"a place in the log": {plain, plain},
			"a row": {func(r *runLog) store.Change {
				return store.Change{Send: []store.Message{{To: r.id, Kind: store.KindSignal, ID: "m"}}}
			}, func(r *runLog) store.Change {
				c := r.step(nil)
				c.Row = &store.RowPatch{Priority: &priority}
				return c
			}},
		} {
			t.Run(name, func(t *testing.T) {
				dsn := pgtest.DSN(t)
				s := d.open(t, dsn)
				const n = 60
				runs, batch := make([]*runLog, n), make([]store.Change, n)
				for i := range runs {
					runs[i] = &runLog{id: fmt.Sprint("r", i)}
					batch[i] = runs[i].create("me")
				}
				commit(t, s, batch...)
				tx := raw(t, dsn).MustBegin()
				theirs, ours := *runs[41], *runs[41]
				require.NoError(t, s.CommitIn(t.Context(), tx, stuck.holds(&theirs)))
				batch[41] = stuck.wants(&ours)
				best := time.Hour // once it is known which run is held up
				for round := range 5 {
					for i := range runs {
						if i != 41 {
							batch[i] = runs[i].step(nil)
						}
					}
					began := time.Now()
					errs := s.Commit(t.Context(), batch)
					took := time.Since(began)
					t.Logf("round %d took %v", round, took)
					for i, err := range errs {
						if i != 41 {
							require.NoError(t, err, i)
						}
					}
					require.Error(t, errs[41])
					require.NotErrorIs(t, errs[41], store.ErrUnknown, "nothing was written")
					require.Less(t, took, n/2*lockTimeout, "not each of them waits for the lock")
					if round > 0 {
						best = min(best, took)
					}
				}
				require.Less(t, best, time.Second)
				// Alone, it waits for the lock, and is carried out once that is free.
				time.AfterFunc(200*time.Millisecond, func() { _ = tx.Rollback() })
				commit(t, s, batch[41])
			})
		}
	})
}

// A Claim gives out what it has, however long somebody is at another run.
func TestALockOnOneRunHoldsUpNoClaimOfOthers(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		beat(t, s, executor("me", time.Minute))
		var ids []string
		for i := range 4 {
			r := &runLog{id: fmt.Sprint("r", i)}
			commit(t, s, r.create(""))
			ids = append(ids, r.id)
		}
		tx := raw(t, dsn).MustBegin()
		tx.MustExec("SELECT 1 FROM durable_runs WHERE id IN ('r0', 'r1') FOR UPDATE")
		for _, c := range []store.Claim{
			{Executor: "me", Serves: serves, Max: 10},
			{Executor: "me", Serves: serves, Max: 10},
			{Executor: "me", Serves: serves, Max: 10, IDs: ids},
		} {
			began := time.Now()
			runs, err := s.Claim(t.Context(), c)
			took := time.Since(began)
			t.Logf("%d runs, %v, took %v", len(runs), err, took)
			require.Less(t, took, 30*time.Second, "the locks are held until it has returned")
			if c.IDs != nil {
				require.Error(t, err, "they may be had yet")
			}
			for _, r := range runs {
				require.NotContains(t, []string{"r0", "r1"}, r.ID)
			}
		}
		time.AfterFunc(100*time.Millisecond, func() { _ = tx.Rollback() })
		runs, err := s.Claim(context.WithoutCancel(t.Context()), store.Claim{Executor: "me", Serves: serves, Max: 10, IDs: ids})
		require.NoError(t, err)
		require.Len(t, runs, 2, "it waits for a lock that is held for a moment")
	})
}

// An append of the former owner that does not end holds up the claim of its run, and not
// those of the others in the same batch.
func TestAnAppendThatDoesNotEndHoldsUpTheClaimOfItsRunAlone(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	beat(t, s, executor("me", time.Minute))
	var ids []string
	runs := make([]*runLog, 6)
	for i := range runs {
		runs[i] = &runLog{id: fmt.Sprint("r", i)}
		commit(t, s, runs[i].create("gone"))
		ids = append(ids, runs[i].id)
	}
	tx := raw(t, dsn).MustBegin()
	defer tx.Rollback()
	require.NoError(t, s.CommitIn(t.Context(), tx, runs[2].step(nil)))
	began := time.Now()
	got, err := s.Claim(t.Context(), store.Claim{Executor: "me", Serves: serves, Max: 10, IDs: ids})
	t.Logf("%d runs, %v, took %v", len(got), err, time.Since(began))
	require.NoError(t, err)
	require.Len(t, got, 5)
	for _, r := range got {
		require.NotEqual(t, "r2", r.ID)
	}
	require.NoError(t, tx.Commit())
	got, err = s.Claim(t.Context(), store.Claim{Executor: "me", Serves: serves, Max: 10, IDs: ids})
	require.NoError(t, err)
	require.Len(t, got, 1)
	_, events := load(t, s, "r2")
	require.Len(t, events, 3, "what was appended, and the claim after it")
}
