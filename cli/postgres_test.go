package cli_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func TestOnPostgreSQLARunIsInterruptedOperatedAndResumed(t *testing.T) {
	dsn := pgtest.DSN(t)
	d := newDesk(t, "SHOP_DB="+dsn, "DURABLE_STORE=")
	interrupted(d)
	op := d.with("DURABLE_STORE=" + dsn)
	require.Regexp(t, `(?m)^order-42\tcheckout\tinterrupted\t2/4\tcharge\t3/5\t.*\tresumable$`, op.ok("durable sessions ls").out)
	require.Contains(t, op.ok("durable sessions show order-42").out, "bank: timeout")
	lacks := op.sh("durable resume order-42")
	require.Equal(t, 4, lacks.code)
	require.Equal(t, "Nobody alive runs checkout; this program lacks its code.\nRun: env -u DURABLE_STORE shop durable run checkout --resume order-42\n", lacks.err)

	s := d.terminal("shop durable run checkout --resume order-42")
	s.until("? Ship order-42?")
	require.Equal(t, 4, op.sh("durable resume order-42").code)
	require.Equal(t, "Approved order-42: Ship order-42?\n", op.ok("durable approve order-42").out)
	require.Zero(t, s.end())
	require.Zero(t, op.sh("durable checkpoints validate").code)
	doctor := op.ok("durable doctor")
	require.Contains(t, doctor.out, "ok\tstore\tpostgres")
	require.Contains(t, op.ok("durable schema backup copy_of_it").out, "Backed up to copy_of_it.")
	require.Equal(t, 1, strings.Count(strings.Join(d.journal(), "\n"), "reserve"))
}

// A database without a store, or with one in another schema, stays as it is.
func TestNamingADatabaseOfPostgreSQLCreatesNoStoreInIt(t *testing.T) {
	dsn := pgtest.DSN(t)
	st, err := postgres.OpenOptions(dsn, postgres.Options{Schema: "elsewhere"})
	require.NoError(t, err)
	require.NoError(t, st.Close())
	db, err := sqlx.Open("postgres", dsn)
	require.NoError(t, err)
	defer db.Close()
	d := newDesk(t, "DURABLE_STORE="+dsn)
	for _, command := range newer {
		a := d.sh("durable " + command)
		require.Equal(t, 5, a.code, "%s: %s%s", command, a.out, a.err)
		require.Contains(t, a.err, "no program has made a store in the schema that it leads to", command)
		require.Contains(t, a.err, "?search_path=", command)
	}
	require.NotZero(t, d.sh("durable doctor").code)
	var schemas []string
	require.NoError(t, db.Select(&schemas, `SELECT DISTINCT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname LIKE 'durable%'`))
	require.Equal(t, []string{"elsewhere"}, schemas)

	there := newDesk(t, "DURABLE_STORE="+pgtest.With(dsn, "search_path", "elsewhere"))
	require.Equal(t, "No queues.\n", there.sh("durable queues ls").err)
	require.Contains(t, there.ok("durable schema status").out, "as this program needs it")
}
