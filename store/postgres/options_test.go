package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// everything prints an error in all ways a program may, down its chain.
func everything(err error) string {
	var b strings.Builder
	var walk func(error)
	walk = func(err error) {
		if err == nil {
			return
		}
		fmt.Fprintf(&b, "%v %+v %#v\n", err, err, err.Error())
		switch e := err.(type) {
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				walk(err)
			}
		default:
			walk(errors.Unwrap(err))
		}
	}
	walk(err)
	return b.String()
}

func TestThePasswordIsInNoError(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	addr := cluster.Addr()
	host, port, _ := strings.Cut(addr, ":")
	for _, dsn := range []string{
		"postgres://postgres:hunter2%2F@" + addr + "/postgres?sslmode=disable",        // wrong password
		"postgres://postgres:hunter2@" + addr + "/absent?sslmode=disable",             // and no database
		"postgres://postgres:hunter2@127.0.0.1:1/postgres?sslmode=disable",            // nobody there
		"postgres://postgres:hunter2@" + addr + "/postgres?sslmode=nonsense",          // does not parse
		"postgres://postgres:hunter2@exa mple:5432/postgres",                          // is no URL
		"postgres://postgres:hunter2%zz@" + addr + "/postgres",                        // is no URL either
		"postgres://postgres:hunter2@" + addr + "/postgres?sslmode=disable&port=none", // a port that is none
		"postgres://postgres:hunter2/x@" + addr + "/postgres",                         // what must be escaped is not
		"postgres://postgres:x hunter2#@" + addr + "/postgres",
		"postgres://postgres:1/hunter2@" + addr + "/postgres", // and the rest reads as a port and a path
		"postgres://postgres:1?hunter2@" + addr + "/postgres",
		"postgres://postgres:1#hunter2@" + addr + "/postgres",
		"host=" + host + " port=" + port + " user=postgres password=hunter2 dbname=postgres sslmode=disable",
		"host=" + host + " port=" + port + " user=postgres password='hunter2 quoted' sslmode=",
		"host=" + host + " password=hunter2 port",
		"host=" + host + " password='hunter2",
	} {
		s, err := postgres.Open(dsn)
		require.Error(t, err, dsn)
		require.Nil(t, s)
		require.NotContains(t, everything(err), "hunter2", dsn)
	}
	// Also not in the errors of a store that lost its server.
	s := open(t, cluster.DSN())
	require.NoError(t, cluster.Stop(pgtest.Fast))
	_, err := s.List(t.Context(), store.Filter{})
	require.Error(t, err)
	require.NotContains(t, everything(err), cluster.Password())
	require.NoError(t, cluster.Restart())
}

func TestASchemaOfItsOwnIsMadeAndUsed(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	s := openOptions(t, dsn, postgres.Options{Schema: `Odd name-$1`})
	r := &runLog{id: "r"}
	commit(t, s, r.create("me"))
	commit(t, s, r.step([]byte("x")))
	var n int
	require.NoError(t, db.Get(&n, `SELECT count(*) FROM "Odd name-$1".durable_events`))
	require.Equal(t, 2, n)
	require.NoError(t, db.Get(&n, `SELECT count(*) FROM pg_class WHERE relname LIKE 'durable_%' AND relnamespace = 'public'::regnamespace`))
	require.Zero(t, n)
	// Beside it, another in the search path's schema, which knows nothing of it.
	other := open(t, dsn)
	_, err := other.Load(t.Context(), "r", store.Cursor{})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, db.Get(&n, `SELECT count(*) FROM public.durable_runs`))
}

func TestASearchPathThatChangesLeadsNowhereElse(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		db := raw(t, dsn)
		db.MustExec(`DO $$ BEGIN EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET search_path = elsewhere', current_database()); END $$`)
		db.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		r := &runLog{id: "r"}
		commit(t, s, r.create("me"))
		load(t, s, "r")
	})
}

func TestASchemaNameThatCouldBeSQLIsRefused(t *testing.T) {
	for _, name := range []string{`a"b`, "a'b", `a\b`, strings.Repeat("x", 64), "a\x00"} {
		_, err := postgres.OpenOptions(pgtest.DSN(t), postgres.Options{Schema: name})
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
}

func TestNewUsesAPoolAndLeavesItOpen(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	db.SetMaxOpenConns(3)
	s, err := postgres.New(db, postgres.Options{})
	require.NoError(t, err)
	r := &runLog{id: "r"}
	commit(t, s, r.create("me"))
	load(t, s, "r")
	require.Empty(t, s.PresenceKind(), "there is no connection for the lock")
	require.NoError(t, s.Close())
	var level string
	for range 3 {
		require.NoError(t, db.Get(&level, "SHOW lock_timeout"))
		require.Equal(t, "0", level, "no connection goes back with our settings")
	}
	db.SetMaxOpenConns(2)
	_, err = postgres.New(db, postgres.Options{})
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = postgres.New(nil, postgres.Options{})
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestNewWithADSNListens(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, err := postgres.New(raw(t, dsn), postgres.Options{DSN: dsn})
	require.NoError(t, err)
	require.Equal(t, "session lock", s.PresenceKind())
	require.NoError(t, s.Close())
}

func TestTwoMigratorsAtOnceMakeOneSchema(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "serializable"} {
		dsn := pgtest.With(pgtest.DSN(t), "default_transaction_isolation", level)
		const n = 6
		stores, errs := make([]*postgres.Store, n), make([]error, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { stores[i], errs[i] = postgres.OpenOptions(dsn, postgres.Options{Schema: "together"}) })
		}
		all.Wait()
		for i := range n {
			require.NoError(t, errs[i])
			r := &runLog{id: fmt.Sprint("r", i)}
			commit(t, stores[i], r.create("me"))
			require.NoError(t, stores[i].Close())
		}
		var versions []int
		require.NoError(t, raw(t, dsn).Select(&versions, "SELECT version FROM together.durable_schema"))
		require.Len(t, versions, now)
	}
}

func TestANewerSchemaIsRefusedAndLeftAlone(t *testing.T) {
	dsn := pgtest.DSN(t)
	require.NoError(t, open(t, dsn).Close())
	raw(t, dsn).MustExec("INSERT INTO durable_schema VALUES (7, 'from the future', 0)")
	_, err := postgres.Open(dsn)
	require.ErrorIs(t, err, store.ErrSchema)
	future, ok := errors.AsType[*store.SchemaError](err)
	require.True(t, ok)
	require.Equal(t, store.SchemaError{Have: 7, Know: now}, *future)
}

func TestTextsThatAColumnCannotHoldAreRefusedAndOthersGoOn(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		s := d.open(t, pgtest.DSN(t))
		bad, good := &runLog{id: "bad"}, &runLog{id: "good"}
		commit(t, s, bad.create("me"), good.create("me"))
		c := bad.step(nil)
		c.Events[0].Data = []byte("{\"a\":\"\x00\"}")
		errs := s.Commit(t.Context(), []store.Change{c, good.step(nil)})
		require.ErrorIs(t, errs[0], store.ErrInvalid)
		require.NoError(t, errs[1])
		// A reason is what some error said; it is mended, since its run must end.
		bad.seq, bad.sum = 1, 0
		_, events := load(t, s, "bad")
		bad.sum = events[0].Sum
		done := bad.complete()
		reason := "no \x00 such \xff file"
		done.Row.Reason = &reason
		commit(t, s, done)
		h, _ := load(t, s, "bad")
		require.Equal(t, "no \uFFFD such \uFFFD file", h.Run.Reason)
	})
}

func TestPayloadsAreReadableInPsql(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		r := &runLog{id: "r"}
		commit(t, s, r.create("me"))
		commit(t, s, r.step([]byte("hf1 json int@1\n{\"n\":1}\x00\xff")))
		var payload string
		require.NoError(t, raw(t, dsn).Get(&payload, "SELECT payload FROM durable_history WHERE run = 'r' AND seq = 2"))
		require.Equal(t, "hf1 json int@1\n{\"n\":1}\\000\\377", payload)
	})
}
