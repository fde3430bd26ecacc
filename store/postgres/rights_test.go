package postgres_test

import (
	"net/url"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// Restore needs the right to create schemas, so it is often an administrator who calls it.
func TestWhatAnAdministratorRestoresStillBelongsToTheProgram(t *testing.T) {
	admin := pgtest.DSN(t)
	db, err := sqlx.Open("postgres", admin)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for _, statement := range []string{
		`DROP ROLE IF EXISTS "the program"`, `CREATE ROLE "the program" LOGIN PASSWORD 'secret'`, `CREATE SCHEMA "its own" AUTHORIZATION "the program"`,
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := db.Exec(`DROP OWNED BY "the program" CASCADE; DROP ROLE "the program"`)
		require.NoError(t, err)
	})
	u, err := url.Parse(admin)
	require.NoError(t, err)
	u.User = url.UserPassword("the program", "secret")
	o := postgres.Options{Schema: "its own"}
	open := func() *postgres.Store {
		st, err := postgres.OpenOptions(u.String(), o)
		require.NoError(t, err)
		return st
	}
	st := open()
	commit(t, st, (&runLog{id: "r"}).create(""))
	require.NoError(t, st.Close())

	byAdmin, err := postgres.OpenOptions(admin, o)
	require.NoError(t, err)
	require.NoError(t, byAdmin.Backup(t.Context(), "a_copy"))
	require.NoError(t, byAdmin.Close())
	sc, err := postgres.OpenSchema(admin, o)
	require.NoError(t, err)
	_, err = sc.Restore(t.Context(), "a_copy")
	require.NoError(t, err)
	require.NoError(t, sc.Close())

	st = open()
	defer func() { require.NoError(t, st.Close()) }()
	_, err = st.Load(t.Context(), "r", store.Cursor{})
	require.NoError(t, err)
	commit(t, st, (&runLog{id: "r2"}).create(""))
	var foreign []string
	require.NoError(t, db.Select(&foreign, `SELECT relname FROM pg_class WHERE relnamespace = '"its own"'::regnamespace AND relowner <> '"the program"'::regrole`))
	require.Empty(t, foreign)
}
