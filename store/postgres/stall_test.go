package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// S18: as long as nothing is written, the end of the context ends the wait.
func TestACommitThatWaitsForALockGivesUpWithItsContext(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		r, other := &runLog{id: "r"}, &runLog{id: "other"}
		commit(t, s, r.create("me"), other.create("me"))
		tx := raw(t, dsn).MustBegin()
		tx.MustExec("SELECT 1 FROM durable_runs WHERE id = 'r' FOR UPDATE")
		priority := int32(1)
		patched := r.step(nil)
		patched.Row = &store.RowPatch{Priority: &priority}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		errs := s.Commit(ctx, []store.Change{patched, other.step(nil)})
		took := time.Since(began)
		require.ErrorIs(t, errs[0], context.DeadlineExceeded)
		require.NotErrorIs(t, errs[0], store.ErrUnknown, "nothing was written")
		require.Less(t, took, 30*time.Second, "the lock is held until it has returned")
		require.NoError(t, tx.Rollback())
		h, events := load(t, s, "r")
		require.Len(t, events, 1)
		require.Zero(t, h.Run.Priority)
		commit(t, s, patched)
	})
}

// An append has no transaction that its context could end. It waits as long as the session's
// settings say, and is not sent again once the context has ended.
func TestAnAppendThatWaitsForALockGivesUpWithItsContext(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		r := &runLog{id: "r"}
		commit(t, s, r.create("me"))
		commit(t, s, r.step(nil))
		tx := raw(t, dsn).MustBegin()
		tx.MustExec("LOCK TABLE durable_events IN EXCLUSIVE MODE")
		step := r.step(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		before := s.Counts().Statements
		err := s.Commit(ctx, []store.Change{step})[0]
		sent := s.Counts().Statements - before
		require.NoError(t, tx.Rollback())
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrUnknown, "nothing was written")
		require.LessOrEqual(t, sent, int64(1), "it is sent once: %v", err)
		commit(t, s, step)
	})
}

// A server that stands still without a word, as a stopped process or a host
// that is lost behind a firewall, holds nobody for ever.
func TestAServerThatStandsStillIsGivenUp(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	p := proxy.New(t, proxy.Target(dsn))
	s, err := postgres.OpenOptions(p.DSN(dsn), postgres.Options{NoPresence: true}.GivesUpAfter(300*time.Millisecond))
	require.NoError(t, err)
	direct := open(t, dsn)
	r, w := &runLog{id: "r"}, &runLog{id: "w"}
	commit(t, s, r.create("me"), w.create("me"))
	still := make(chan struct{})
	release := sync.OnceFunc(func() { close(still) })
	t.Cleanup(release)
	p.SetPolicy(func(q proxy.Request) proxy.Action {
		if q.Executes {
			<-still
		}
		return proxy.Pass
	})
	step := r.step(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	require.ErrorIs(t, s.Commit(ctx, []store.Change{step})[0], store.ErrUnknown)
	_, err = s.Load(ctx, "r", store.Cursor{})
	require.Error(t, err)
	require.Less(t, time.Since(began), 10*time.Second)
	began = time.Now()
	require.NoError(t, s.Close())
	require.Less(t, time.Since(began), 10*time.Second)
	release()
	p.SetPolicy(nil)
	commit(t, direct, step)
	_, events := load(t, direct, "r")
	require.Len(t, events, 2)
}

// What takes long by its nature is not cut.
func TestLongWorkOfTheServerIsNotTakenForStandingStill(t *testing.T) {
	t.Parallel()
	dsn, _ := filled(t)
	o := postgres.Options{}.GivesUpAfter(200 * time.Millisecond).Later("SELECT pg_sleep(0.6)")
	_, err := schemaOf(t, dsn, o).Migrate(t.Context())
	require.NoError(t, err)
	s := openOptions(t, dsn, postgres.Options{}.GivesUpAfter(200*time.Millisecond).Later("SELECT pg_sleep(0.6)", "SELECT pg_sleep(0.6)"))
	tx := raw(t, dsn).MustBegin()
	tx.MustExec("LOCK TABLE durable_inbox IN ACCESS EXCLUSIVE MODE")
	time.AfterFunc(600*time.Millisecond, func() { _ = tx.Rollback() })
	require.NoError(t, s.Backup(t.Context(), "by_hand"))
	require.NoError(t, s.Maintain(t.Context()))
}
