package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A standby is looked at as the primary is.
func TestAStandbyIsLookedAt(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	replica := primary.StartReplica(t, nil)
	s := open(t, primary.DSN())
	r := &runLog{id: "r"}
	commit(t, s, r.create(""))
	commit(t, s, r.step([]byte("1")))
	_, err := s.Beat(t.Context(), store.Executor{ID: "me", Lease: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q", Max: 1}))

	var looking *postgres.Store
	require.Eventually(t, func() bool { // what is replicated comes later
		looking, err = postgres.OpenOptions(replica.DSN(), postgres.Options{ReadOnly: true})
		if err != nil {
			require.ErrorIs(t, err, store.ErrSchema)
			return false
		}
		q, err := looking.Queue(t.Context(), "q")
		if err != nil || q.Revision == 0 {
			require.NoError(t, looking.Close())
			return false
		}
		return true
	}, time.Minute, 10*time.Millisecond)
	defer func() { require.NoError(t, looking.Close()) }()
	isLookedAt(t, looking)
	all, err := looking.Executors(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.True(t, all[0].Live, "its locks are on the primary; its lease holds")

	sc, err := postgres.OpenSchema(replica.DSN(), postgres.Options{})
	require.NoError(t, err)
	defer sc.Close()
	require.ErrorIs(t, sc.TakesWrites(t.Context()), store.ErrReadOnly)
	require.ErrorIs(t, sc.Backup(t.Context(), "copied"), store.ErrReadOnly)
}

// A server that would take writes gets none from a store that was opened to be looked at.
func TestAStoreOpenedReadOnlyWritesNothing(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := open(t, dsn)
		r := &runLog{id: "r"}
		commit(t, s, r.create(""))
		commit(t, s, r.step([]byte("1")))
		before, err := s.Beat(t.Context(), store.Executor{ID: "me", Lease: time.Minute})
		require.NoError(t, err)
		looking := d.openOptions(t, dsn, postgres.Options{ReadOnly: true})
		isLookedAt(t, looking)
		tx := raw(t, dsn).MustBegin()
		require.ErrorIs(t, looking.CommitIn(t.Context(), tx, (&runLog{id: "other"}).create("")), store.ErrReadOnly)
		require.NoError(t, tx.Rollback())
		own, err := looking.BeginTx(t.Context())
		require.NoError(t, err)
		require.Error(t, own.Commit((&runLog{id: "other"}).create("")))
		require.NoError(t, own.Rollback())
		_, events := load(t, s, "r")
		require.Len(t, events, 2)
		n, err := s.Count(t.Context(), store.Filter{}, "")
		require.NoError(t, err)
		require.EqualValues(t, 1, n[""])
		executors, err := s.Executors(t.Context())
		require.NoError(t, err)
		require.Len(t, executors, 1)
		require.Equal(t, before.Now, executors[0].BeatAt)
	})
}

// The schema of a store that is looked at is neither made nor changed.
func TestAStoreOpenedReadOnlyKeepsItsSchema(t *testing.T) {
	dsn := pgtest.DSN(t)
	for _, o := range []postgres.Options{{ReadOnly: true}, {ReadOnly: true, Schema: "elsewhere"}} {
		_, err := postgres.OpenOptions(dsn, o)
		require.ErrorIs(t, err, store.ErrSchema)
		sc, err := postgres.OpenSchema(dsn, o)
		require.NoError(t, err)
		_, err = sc.Migrate(t.Context())
		require.ErrorIs(t, err, store.ErrReadOnly)
		require.NoError(t, sc.TakesWrites(t.Context()), "the server does")
		require.NoError(t, sc.Close())
	}
	var n int
	require.NoError(t, raw(t, dsn).Get(&n, "SELECT count(*) FROM pg_class WHERE relname LIKE 'durable%'"))
	require.Zero(t, n)
	require.NoError(t, raw(t, dsn).Get(&n, "SELECT count(*) FROM pg_namespace WHERE nspname = 'elsewhere'"))
	require.Zero(t, n)
}

// isLookedAt checks that a store reads run r with two events, and writes nothing; and says so at once.
func isLookedAt(t *testing.T, looking *postgres.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, events := load(t, looking, "r")
	require.Len(t, events, 2)
	page, err := looking.List(ctx, store.Filter{WithLast: true})
	require.NoError(t, err)
	require.Len(t, page.Runs, 1)
	for _, read := range []func() error{
		func() error { _, err := looking.Count(ctx, store.Filter{Orphaned: true}, store.ByStatus); return err },
		func() error { _, err := looking.Queues(ctx); return err },
		func() error { _, err := looking.Schedules(ctx); return err },
		func() error { _, err := looking.DueSchedules(ctx, 1); return err },
		func() error { _, err := looking.RunKinds(ctx); return err },
		func() error { _, _, err := looking.Ahead(ctx, "r"); return err },
	} {
		require.NoError(t, read())
	}
	e := store.Executor{ID: "me", Lease: time.Minute, Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}}}
	for what, write := range map[string]func() error{
		"Commit": func() error { return looking.Commit(ctx, []store.Change{(&runLog{id: "other"}).create("")})[0] },
		"Commits": func() error {
			return looking.Commit(ctx, []store.Change{(&runLog{id: "other"}).create(""), (&runLog{id: "third"}).create("")})[1]
		},
		"Claim": func() error {
			_, err := looking.Claim(ctx, store.Claim{Executor: e.ID, Serves: e.Serves, Max: 1, At: 1})
			return err
		},
		"Beat": func() error { _, err := looking.Beat(ctx, e); return err },
		"Delete": func() error {
			_, err := looking.Delete(ctx, store.Deletion{RunIDs: []string{"r"}, Force: true})
			return err
		},
		"PutQueue":     func() error { return looking.PutQueue(ctx, store.Queue{Name: "other"}) },
		"DropRequests": func() error { _, err := looking.DropRequests(ctx, 1, 1); return err },
		"Maintain":     func() error { return looking.Maintain(ctx) },
		"Backup":       func() error { return looking.Backup(ctx, "copied") },
	} {
		began := time.Now()
		require.ErrorIs(t, write(), store.ErrReadOnly, what)
		require.Less(t, time.Since(began), 4*time.Second, "%s is not tried again", what)
	}
}
