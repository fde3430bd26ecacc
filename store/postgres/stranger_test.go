package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

var (
	callInSQL     = regexp.MustCompile(`([a-z_]\w*\.)?\b([a-z_][a-z0-9_]*)\(`)
	operatorInSQL = regexp.MustCompile(`[-+*/<>=~!@#%^&|]+|\bLIKE\b`)
	valueInSQL    = regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'`)
)

// grammar are words before a parenthesis that are not looked for in any schema.
var grammar = []string{"extract", "coalesce", "nullif", "greatest", "least", "unnest", "in", "from", "as", "and", "or", "not", "exists", "over", "values", "using", "lateral"}

// callsAndOperators returns the functions and the operators of all our statements.
func callsAndOperators(t *testing.T) (calls, operators []string) {
	t.Helper()
	c, o := map[string]bool{}, map[string]bool{}
	for _, st := range statements(t, ".") {
		sql := valueInSQL.ReplaceAllString(st.SQL, "")
		for _, m := range callInSQL.FindAllStringSubmatch(sql, -1) {
			if m[1] == "pg_catalog." {
				c[m[2]] = true
			}
		}
		for _, op := range operatorInSQL.FindAllString(sql, -1) {
			if op == "LIKE" {
				op = "~~"
			}
			o[op] = true
		}
	}
	delete(o, "=>")
	return slices.Sorted(maps.Keys(c)), slices.Sorted(maps.Keys(o))
}

// Where names are looked for is not always ours to say: connections may be the
// user's, or a pooler's. So each function has its schema before it.
func TestEveryFunctionInAStatementIsTheServers(t *testing.T) {
	for name, st := range statements(t, ".") {
		sql := valueInSQL.ReplaceAllString(st.SQL, "''")
		for _, m := range callInSQL.FindAllStringSubmatchIndex(sql, -1) {
			call := sql[m[4]:m[5]]
			switch {
			case m[2] >= 0:
				require.Equal(t, "pg_catalog.", sql[m[2]:m[3]], "%s: %s(", name, call)
			case call == "unnest":
				// Of several arguments: the server takes its own without a look, and only
				// if no schema is given.
				require.Contains(t, firstArguments(sql[m[1]:]), ",", "%s: write pg_catalog.unnest", name)
			default:
				require.Contains(t, grammar, call, "%s: write pg_catalog.%s, so that no function of another role can take its place", name, call)
			}
		}
	}
}

// firstArguments returns what stands before the parenthesis that closes, without
// what stands in brackets within.
func firstArguments(sql string) string {
	var b strings.Builder
	depth := 1
	for _, r := range sql {
		switch r {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
		if depth == 0 {
			break
		}
		if depth == 1 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

var typesInSQL = []string{
	"text", "bigint", "integer", "smallint", "boolean", "numeric", "double precision", "name", `"char"`, "oid", "bytea",
	"timestamptz", "interval", "text[]", "bigint[]", "integer[]", "boolean[]", "bytea[]",
}

// plant makes, as another role, functions and operators of the names that our
// statements use, in the schema that everybody's search path has. They say that they
// were called, and fail.
func plant(t *testing.T, db *sqlx.DB) (called func() int) {
	t.Helper()
	conn, err := db.Connx(t.Context())
	require.NoError(t, err)
	defer func() {
		_, err := conn.ExecContext(context.Background(), "RESET ROLE")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}()
	exec := func(sql string, args ...any) {
		_, err := conn.ExecContext(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	role := pq.QuoteIdentifier(fmt.Sprintf("durable_test_stranger_%d", time.Now().UnixNano()))
	exec("CREATE ROLE " + role)
	t.Cleanup(func() {
		db.MustExec("DROP OWNED BY " + role)
		db.MustExec("DROP ROLE " + role)
	})
	exec("GRANT USAGE, CREATE ON SCHEMA public TO " + role) // as it was granted to everybody before PostgreSQL 15
	exec("SET ROLE " + role)
	exec("CREATE SEQUENCE public.called")
	exec("GRANT ALL ON SEQUENCE public.called TO public")
	calls, operators := callsAndOperators(t)
	require.Subset(t, calls, []string{"unnest", "json_agg", "clock_timestamp", "count", "md5"})
	require.Subset(t, operators, []string{"=", "<>", "<", ">", "<=", "+", "-", "*", "~~"})
	calls = append(calls, "setval", "pg_try_advisory_lock", "encode", "to_timestamp", "version", "current_schema")
	const trap = `LANGUAGE plpgsql VOLATILE AS $f$ BEGIN PERFORM pg_catalog.nextval('public.called'); RAISE EXCEPTION 'a planted function was called'; END $f$`
	exec(`CREATE FUNCTION pg_temp.plant(calls text[], operators text[], types text[]) RETURNS void LANGUAGE plpgsql AS $p$
		DECLARE f text; o text; a text; b text; result text;
		BEGIN
		  FOREACH f IN ARRAY calls LOOP
		    FOREACH a IN ARRAY types LOOP
		      EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION public.%I(%s) RETURNS %s %s', f, a, a, $t$` + trap + `$t$);
		      FOREACH b IN ARRAY types[1:6] LOOP
		        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION public.%I(%s, %s) RETURNS %s %s', f, a, b, a, $t$` + trap + `$t$);
		      END LOOP;
		    END LOOP;
		    EXECUTE pg_catalog.format('CREATE FUNCTION public.%I() RETURNS text %s', f, $t$` + trap + `$t$);
		    EXECUTE pg_catalog.format('CREATE FUNCTION public.%I(text, text, boolean) RETURNS text %s', f, $t$` + trap + `$t$);
		    EXECUTE pg_catalog.format('CREATE FUNCTION public.%I(text, integer, text, bigint) RETURNS text %s', f, $t$` + trap + `$t$);
		  END LOOP;
		  FOREACH a IN ARRAY types LOOP
		    FOREACH b IN ARRAY types LOOP
		      FOREACH result IN ARRAY ARRAY['boolean', a] LOOP
		        EXECUTE pg_catalog.format('CREATE OR REPLACE FUNCTION public.%I(%s, %s) RETURNS %s %s', 'planted_' || pg_catalog.md5(result), a, b, result, $t$` + trap + `$t$);
		      END LOOP;
		      FOREACH o IN ARRAY operators LOOP
		        result := CASE WHEN o IN ('+', '-', '*', '/', '||') THEN a ELSE 'boolean' END;
		        EXECUTE pg_catalog.format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%I)', o, a, b, 'planted_' || pg_catalog.md5(result));
		      END LOOP;
		    END LOOP;
		  END LOOP;
		END $p$`)
	exec("SELECT pg_temp.plant($1, $2, $3)", pq.Array(calls), pq.Array(operators), pq.Array(typesInSQL))
	return func() int {
		var n int
		require.NoError(t, db.Get(&n, "SELECT CASE WHEN is_called THEN last_value ELSE 0 END::int FROM public.called"))
		return n
	}
}

// A role that may create in a schema of the search path could make a function that
// fits an argument better than the server's own; who calls it runs it with his own
// rights.
func TestNothingOfAnotherRoleRunsWithOurRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	called := plant(t, db)
	ways := map[string]func(t *testing.T, schema string) *postgres.Store{
		"connections of ours": func(t *testing.T, schema string) *postgres.Store {
			return openOptions(t, dsn, postgres.Options{Schema: schema})
		},
		"connections of the user": func(t *testing.T, schema string) *postgres.Store {
			s, err := postgres.New(raw(t, dsn), postgres.Options{Schema: schema, DSN: dsn})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
		"as through a pooler": func(t *testing.T, schema string) *postgres.Store {
			return openOptions(t, dsn, postgres.Options{Schema: schema, Pooled: true})
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := way(t, name)
			listen(t, s)
			require.NoError(t, s.Maintain(ctx))
			beat(t, s, executor("me", time.Minute))
			waits := &runLog{id: "waits"}
			made := waits.create("")
			made.Create.Queue, made.Create.Dedup, made.Create.Attributes = "q", "d", map[string]string{"a": "b"}
			commit(t, s, made)
			runs, err := s.Claim(ctx, store.Claim{Executor: "me", Serves: serves, Max: 5, Queues: []store.QueueRoom{{Queue: "q", Max: 3}}})
			require.NoError(t, err)
			require.Len(t, runs, 1)
			r := &runLog{id: "r"}
			commit(t, s, r.create("me"))
			commit(t, s, r.step([]byte("1")))
			commit(t, s, r.step([]byte("2")), (&runLog{id: "beside"}).create(""))
			tx, err := db.Begin()
			require.NoError(t, err)
			require.NoError(t, s.CommitIn(ctx, tx, (&runLog{id: "in"}).create("")))
			require.NoError(t, s.CommitIn(ctx, tx, r.step([]byte("3"))))
			require.NoError(t, tx.Commit())
			commit(t, s, r.complete())
			runs, err = s.Claim(ctx, store.Claim{Executor: "me", Serves: serves, Max: 1, IDs: []string{"in"}})
			require.NoError(t, err)
			require.Len(t, runs, 1)
			beat(t, s, executor("me", time.Minute))
			_, events := load(t, s, "r")
			require.Len(t, events, 5)
			_, err = s.Executors(ctx)
			require.NoError(t, err)
			page, err := s.List(ctx, store.Filter{Attributes: map[string]string{"a": "b"}, WithLast: true, Unarchived: true, Workflows: []string{"w", "x"}, IDPrefix: "w"})
			require.NoError(t, err)
			require.Len(t, page.Runs, 1)
			_, err = s.List(ctx, store.Filter{Orphaned: true, CreatedFrom: 1})
			require.NoError(t, err)
			n, err := s.Count(ctx, store.Filter{}, store.ByStatus)
			require.NoError(t, err)
			require.Len(t, n, 3)
			gone, err := s.Delete(ctx, store.Deletion{RunIDs: []string{"r"}})
			require.NoError(t, err)
			require.EqualValues(t, 1, gone)
			leaving := executor("me", time.Minute)
			leaving.Leaving = true
			beat(t, s, leaving)
			require.NoError(t, s.Backup(ctx, "copy of "+name))
			var rows []struct{ Run string }
			require.NoError(t, db.Unsafe().Select(&rows, "SELECT * FROM "+pq.QuoteIdentifier(name)+".durable_history"), "the view was made of the server's functions")
			require.NoError(t, s.Close())
			schema, err := postgres.OpenSchema(dsn, postgres.Options{Schema: name})
			require.NoError(t, err)
			_, err = schema.Plan(ctx)
			require.NoError(t, err)
			_, err = schema.Restore(ctx, "copy of "+name)
			require.NoError(t, err)
			require.NoError(t, schema.Close())
			require.Zero(t, called(), "a function of another role ran with the rights of this one")
		})
	}
}

// Any role of a database may send notices, as many as it likes.
func TestAFloodOfNoticesIsHeardTogether(t *testing.T) {
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	db := raw(t, dsn)
	hears := listen(t, a)
	r := &runLog{id: "first"}
	began := time.Now()
	commit(t, b, r.create(""))
	hears.hears(t, "first")
	t.Logf("a notice took %v", time.Since(began))

	var channel string
	require.NoError(t, db.Get(&channel, "SELECT substring(query FROM '\"(.*)\"') FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database() LIMIT 1"))
	count := func() int {
		hears.mu.Lock()
		defer hears.mu.Unlock()
		return hears.all
	}
	before := count()
	began = time.Now()
	const sent = 2000
	for i := range sent / 100 {
		db.MustExec("SELECT pg_notify($1, 'somebody' || $2 || '-' || i || ' *') FROM generate_series(1, 100) i", channel, i)
	}
	commit(t, b, (&runLog{id: "amid"}).create(""))
	hears.eventually(t, "the real one is heard, too", func() bool { return slices.Contains(hears.heard, "amid") || hears.all > before })
	last := &runLog{id: "last"}
	require.Eventually(t, func() bool { // once the flood is over, each is named again
		last = &runLog{id: fmt.Sprintf("last%d", time.Now().UnixNano())}
		commit(t, b, last.create(""))
		time.Sleep(50 * time.Millisecond)
		hears.mu.Lock()
		defer hears.mu.Unlock()
		return slices.Contains(hears.heard, last.id)
	}, time.Minute, time.Millisecond)
	took := time.Since(began)
	require.LessOrEqual(t, count()-before, 8+1+int(took/(25*time.Millisecond)), "%d notices in %v", sent, took)
}
