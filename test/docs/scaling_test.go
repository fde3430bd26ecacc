package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// servers are those that docs/scaling.md looks at, in the order of its columns.
var servers = []string{"CockroachDB", "YugabyteDB", "Citus", "Aurora DSQL"}

// The vendors' pages.
const (
	cockroachCompat   = "https://www.cockroachlabs.com/docs/stable/postgresql-compatibility"
	cockroachLimits   = "https://www.cockroachlabs.com/docs/stable/known-limitations"
	cockroachListen   = "https://github.com/cockroachdb/cockroach/issues/41522"
	yugabyteListen    = "https://docs.yugabyte.com/stable/api/ysql/the-sql-language/statements/cmd_listen_notify/"
	yugabyteIsolation = "https://docs.yugabyte.com/stable/explore/transactions/isolation-levels/"
	citusSQL          = "https://docs.citusdata.com/en/stable/develop/reference_workarounds.html"
	dsqlSQL           = "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-postgresql-compatibility-supported-sql-features.html"
	dsqlMigrating     = "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with-postgresql-compatibility-unsupported-features.html"
	dsqlIndex         = "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/create-index-syntax-support.html"
	dsqlSequence      = "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/create-sequence-syntax-support.html"
	postgresADR       = "adr/0004-postgres.md"
	dsqlWorking       = "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/working-with.html"
)

// A feature of PostgreSQL that not every one of the servers has.
type feature struct {
	name  string
	used  func([]string) bool
	lacks map[string]string // by server: a word, and the page that says so
}

// has reports whether these tokens follow each other.
func has(tokens []string, words ...string) bool {
	for i := 0; i+len(words) <= len(tokens); i++ {
		if slices.Equal(tokens[i:i+len(words)], words) {
			return true
		}
	}
	return false
}

// words is true of a statement with one of these sequences of words.
func words(list ...string) func([]string) bool {
	return func(tokens []string) bool {
		return slices.ContainsFunc(list, func(w string) bool { return has(tokens, strings.Fields(w)...) })
	}
}

// index reports whether a statement makes an index with one of these words behind its table.
func index(w string) func([]string) bool {
	return func(tokens []string) bool {
		return tokens[0] == "create" && slices.Contains(tokens[:3], "index") && (w == "" || slices.Contains(tokens, w))
	}
}

// changes returns the tables that a statement updates, deletes from or upserts into, once for
// each time.
func changes(tokens []string) (tables []string) {
	for i := 0; i+2 < len(tokens); i++ {
		switch {
		case tokens[i] == "update" && strings.HasPrefix(tokens[i+1], "durable_"):
			tables = append(tables, tokens[i+1])
		case tokens[i] == "delete" && tokens[i+1] == "from", tokens[i] == "insert" && tokens[i+1] == "into" && has(tokens, "on", "conflict"):
			tables = append(tables, tokens[i+2])
		}
	}
	return tables
}

// features are what a server may lack, with what it lacks.
var features = []feature{
	{"`LISTEN`, `NOTIFY`", func(s []string) bool {
		return slices.Contains([]string{"listen", "unlisten", "notify"}, s[0]) || slices.Contains(s, "pg_notify")
	}, map[string]string{"CockroachDB": "no " + cockroachListen, "YugabyteDB": "off " + yugabyteListen, "Aurora DSQL": "no " + dsqlSQL}},
	{"advisory locks", func(s []string) bool {
		return slices.ContainsFunc(s, func(w string) bool {
			return strings.HasPrefix(w, "pg_advisory_") || strings.HasPrefix(w, "pg_try_advisory_") || w == "'advisory'"
		})
	}, map[string]string{"CockroachDB": "no-op " + cockroachCompat, "Aurora DSQL": "no " + dsqlSQL}},
	{"`SKIP LOCKED`", words("skip locked"), map[string]string{"Citus": "one shard " + citusSQL, "Aurora DSQL": "no " + dsqlSQL}},
	{"row locks that wait", words("for update", "for no key update", "for key share", "for share"),
		map[string]string{"Citus": "one shard " + citusSQL, "Aurora DSQL": "no wait " + dsqlWorking}},
	{"`READ COMMITTED`", func(s []string) bool { return has(s, "read", "committed") || slices.Contains(s, "'read committed'") },
		map[string]string{"YugabyteDB": "a flag " + yugabyteIsolation, "Aurora DSQL": "no " + dsqlWorking}},
	{"serial keys", func(s []string) bool {
		return has(s, "as", "identity") || slices.ContainsFunc(s, func(w string) bool {
			return slices.Contains([]string{"serial", "bigserial", "nextval", "setval", "pg_get_serial_sequence", "sequence"}, w)
		})
	}, map[string]string{"Aurora DSQL": "`CACHE` " + dsqlSequence}},
	{"recursive queries", words("with recursive"), map[string]string{"Citus": "one shard " + citusSQL}},
	{"`LATERAL` and correlated subqueries", func(s []string) bool {
		return slices.Contains(s, "lateral") || has(s, "exists", "(", "select")
	}, map[string]string{"Citus": "by run " + citusSQL}},
	{"`clock_timestamp()` in an `UPDATE`", func(s []string) bool {
		return slices.Contains(s, "clock_timestamp") && slices.Contains(s, "update") && !words("for update")(s) || slices.Contains(s, "clock_timestamp") && has(s, "do", "update")
	},
		map[string]string{"Citus": "no " + citusSQL}},
	{"one table changed twice", func(s []string) bool {
		c := changes(s)
		slices.Sort(c)
		return len(slices.Compact(slices.Clone(c))) < len(c)
	}, map[string]string{"CockroachDB": "no " + cockroachLimits}},
	{"indexes that are built at once", index(""), map[string]string{"Aurora DSQL": "`ASYNC` " + dsqlIndex}},
	{"partial indexes", index("where"), map[string]string{"Aurora DSQL": "no " + dsqlIndex}},
	{"temporary tables", words("create temp", "create temporary"), map[string]string{"Aurora DSQL": "no " + dsqlMigrating}},
	{"`TRUNCATE`, `VACUUM`", func(s []string) bool { return s[0] == "truncate" || s[0] == "vacuum" }, map[string]string{"CockroachDB": "not sent " + postgresADR, "YugabyteDB": "not sent " + postgresADR, "Aurora DSQL": "no " + dsqlMigrating}},
	{"PL/pgSQL, triggers", func(s []string) bool {
		return s[0] == "do" || slices.Contains(s, "plpgsql") || has(s, "create", "trigger")
	},
		map[string]string{"Aurora DSQL": "no " + dsqlMigrating}},
	{"foreign keys", words("foreign key", "references"), map[string]string{}},
	{"savepoints", func(s []string) bool { return s[0] == "savepoint" }, map[string]string{"Aurora DSQL": "no " + dsqlMigrating}},
}

// portable are the tables of docs/scaling.md: which statements use what a server may lack, and
// how many need nothing that one lacks.
func portable(statements []sqlStatement) string {
	var b strings.Builder
	b.WriteString("| | statements | " + strings.Join(servers, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(servers)) + "\n")
	lacking := map[string]map[string]bool{} // by server, statements
	for _, f := range features {
		var users []string
		for _, s := range statements {
			if f.used(s.tokens) {
				users = append(users, s.name)
			}
		}
		fmt.Fprintf(&b, "| %s | %d |", f.name, len(users))
		for _, server := range servers {
			why := f.lacks[server]
			if why == "" {
				b.WriteString(" yes |")
				continue
			}
			at := strings.LastIndex(why, " ")
			fmt.Fprintf(&b, " [%s](%s) |", why[:at], why[at+1:])
			if strings.HasPrefix(why, "not sent ") {
				continue // the store knows this server
			}
			for _, u := range users {
				if lacking[server] == nil {
					lacking[server] = map[string]bool{}
				}
				lacking[server][u] = true
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "| **need none of what is lacking** | of %d |", len(statements))
	for _, server := range servers {
		fmt.Fprintf(&b, " %d |", len(statements)-len(lacking[server]))
	}
	b.WriteString("\n")
	return b.String()
}

// docs/scaling.md says what of the statements other servers take. A statement that is added, or
// one that begins to use something, changes the table; put what this test prints there.
func TestThePageOfScalingJudgesEveryStatementOfThePostgresStore(t *testing.T) {
	statements := postgresStatements(t)
	names := map[string]bool{}
	for _, s := range statements {
		require.False(t, names[s.name], s.name)
		names[s.name] = true
	}
	for _, name := range []string{"append", "carry_out", "0001_init/1", "listen.go/1", "session.go/1", "restore.go/1"} {
		require.True(t, names[name], "%s is not found among the statements", name)
	}
	page := read(t, "docs/scaling.md")
	_, rest, found := strings.Cut(page, "<!-- begin: found -->\n")
	table, _, ended := strings.Cut(rest, "<!-- end: found -->")
	require.True(t, found && ended, "docs/scaling.md has no place for the table")
	want := portable(statements)
	require.Equal(t, want, table, "docs/scaling.md is to have:\n%s", want)
	require.LessOrEqual(t, len(strings.Fields(regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(page, "]"))), 2000, "words")
}

// The statements that make a step durable use nothing that a server lacks, whatever becomes of
// the rest: they are what an engine sends ten thousand times a second.
func TestAStepNeedsNothingThatAServerLacks(t *testing.T) {
	for _, s := range postgresStatements(t) {
		if s.name != "append" && s.name != "append_many" && s.name != "events_up" && s.name != "run_numbers" {
			continue
		}
		for _, f := range features {
			if f.name != "`LATERAL` and correlated subqueries" { // by run, which Citus takes
				require.False(t, f.used(s.tokens), "%s uses %s", s.name, f.name)
			}
		}
	}
}

// The scanner must be able to say no.
func TestTheScannerFindsWhatAServerMayLack(t *testing.T) {
	for name, sql := range map[string]string{
		"`LISTEN`, `NOTIFY`":                 "SELECT pg_catalog.pg_notify($1, $2)",
		"advisory locks":                     "SELECT pg_catalog.pg_try_advisory_xact_lock(1, 2)",
		"`SKIP LOCKED`":                      "SELECT 1 FROM t FOR UPDATE OF r\n SKIP /* why */ LOCKED",
		"row locks that wait":                "SELECT 1 FROM t FOR NO KEY UPDATE",
		"`READ COMMITTED`":                   "SET default_transaction_isolation = 'read committed'",
		"serial keys":                        "CREATE TABLE t (no bigint GENERATED ALWAYS AS IDENTITY)",
		"recursive queries":                  "WITH RECURSIVE x AS (SELECT 1) SELECT 1",
		"`clock_timestamp()` in an `UPDATE`": "UPDATE durable_runs SET a = clock_timestamp()",
		"one table changed twice":            "WITH a AS (UPDATE durable_runs SET x = 1), b AS (DELETE FROM durable_runs) SELECT 1",
		"partial indexes":                    "CREATE UNIQUE INDEX i ON t (a) WHERE a <> ''",
		"temporary tables":                   "CREATE TEMP TABLE t (a int)",
		"PL/pgSQL, triggers":                 "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN; END; $$",
		"foreign keys":                       "CREATE TABLE t (a int REFERENCES u)",
		"savepoints":                         "SAVEPOINT s",
	} {
		i := slices.IndexFunc(features, func(f feature) bool { return f.name == name })
		require.GreaterOrEqual(t, i, 0, name)
		parts := sqlSplit(sqlTokens(t, name, sql))
		require.Len(t, parts, 1, name)
		require.True(t, features[i].used(parts[0]), name)
		// Neither a comment nor a string is a use.
		parts = sqlSplit(sqlTokens(t, name, "SELECT 1 -- "+strings.ReplaceAll(sql, "\n", " ")+"\n; SELECT '"+strings.ReplaceAll(sql, "'", "''")+"'"))
		require.Len(t, parts, 2, name)
		require.False(t, features[i].used(parts[0]) || features[i].used(parts[1]), name)
	}
}
