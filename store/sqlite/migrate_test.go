//go:build cgo

package sqlite_test

import (
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// migrator knows the first n steps of a small schema.
func migrator(t testing.TB, steps ...string) *sqlstore.Migrator {
	t.Helper()
	names := []string{"m/0001_a.sql", "m/0002_b.sql", "m/0003_c.sql"}
	fsys := fstest.MapFS{}
	for i, sql := range steps {
		fsys[names[i]] = &fstest.MapFile{Data: []byte(sql)}
	}
	ms, err := sqlstore.ReadMigrations(fsys, "m", nil)
	require.NoError(t, err)
	return &sqlstore.Migrator{
		Migrations: ms,
		Exists:     `SELECT count(*) FROM sqlite_master WHERE name = 'v'`,
		Create:     `CREATE TABLE v (version INTEGER PRIMARY KEY, name TEXT, at INTEGER)`,
		Version:    `SELECT coalesce(max(version), 0) FROM v`,
		Record:     `INSERT INTO v VALUES (?1, ?2, ?3)`,
		Now:        func() store.Time { return created },
	}
}

const (
	stepA = `CREATE TABLE a (x); INSERT INTO a VALUES (1)`
	stepB = `INSERT INTO a VALUES (2); CREATE TABLE b (x)`
)

func TestAnOlderSchemaIsBroughtUpStepByStep(t *testing.T) {
	db := sqlx.NewDb(connect(t, file(t), "_txlock=immediate&_busy_timeout=5000"), "sqlite3")
	done, err := migrator(t, stepA).Run(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, []int{done.From, done.To})
	done, err = migrator(t, stepA, stepB).Run(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, []int{done.From, done.To})
	require.Equal(t, "1,2", value[string](t, db.DB, `SELECT group_concat(x) FROM a`))
	done, err = migrator(t, stepA, stepB).Run(t.Context(), db)
	require.NoError(t, err)
	require.Equal(t, []int{2, 2}, []int{done.From, done.To})
	_, err = migrator(t, stepA).Run(t.Context(), db)
	require.ErrorIs(t, err, store.ErrSchema, "the older program")
}

func TestAStepThatFailsLeavesTheSchemaAsItWas(t *testing.T) {
	db := sqlx.NewDb(connect(t, file(t), "_txlock=immediate"), "sqlite3")
	_, err := migrator(t, stepA).Run(t.Context(), db)
	require.NoError(t, err)
	_, err = migrator(t, stepA, stepB, `INSERT INTO none VALUES (1)`).Run(t.Context(), db)
	require.ErrorContains(t, err, "0003_c")
	require.Equal(t, 1, value[int](t, db.DB, `SELECT max(version) FROM v`))
	require.Equal(t, 1, value[int](t, db.DB, `SELECT count(*) FROM a`))
}

func TestStepsAreAppliedOnceHoweverManyMigrate(t *testing.T) {
	path := file(t)
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		db := sqlx.NewDb(connect(t, path, "_txlock=immediate&_busy_timeout=10000"), "sqlite3")
		m := migrator(t, stepA, stepB)
		all.Go(func() { _, errs[i] = m.Run(t.Context(), db) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 2, value[int](t, connect(t, path, ""), `SELECT count(*) FROM a`))
}
