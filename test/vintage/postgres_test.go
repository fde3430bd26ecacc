package vintage_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func openPostgres(dsn string) (store.Store, error) {
	return postgres.OpenOptions(dsn, postgres.Options{NoPresence: true})
}

func postgresCellar(t *testing.T) cellar {
	dsn := pgtest.DSN(t)
	nowhere, err := postgres.OpenSchema(dsn, postgres.Options{})
	require.NoError(t, err)
	plan, err := nowhere.Plan(t.Context())
	require.NoError(t, err)
	require.NoError(t, nowhere.Close())
	open := func(t *testing.T, dsn string) store.Store {
		st, err := openPostgres(dsn)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		return st
	}
	return cellar{
		dir: "../../store/postgres/testdata", ext: ".sql", version: plan.Know,
		open: open,
		empty: func(t *testing.T) (string, func(string)) {
			dsn := pgtest.DSN(t)
			return dsn, func(to string) {
				text := ddl(t, plan) + dump(t, connect(t, dsn))
				require.NoError(t, os.WriteFile(to, []byte(text), 0o644))
			}
		},
		table: func(t *testing.T, dsn, statement string) { connect(t, dsn).MustExec(statement) },
		uncork: func(t *testing.T, file string) string {
			dsn := pgtest.DSN(t)
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			connect(t, dsn).MustExec(string(b))
			return dsn
		},
	}
}

func connect(t *testing.T, dsn string) *sqlx.DB {
	db, err := sqlx.Open("postgres", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// ddl is what made the tables, as it stands in the file, so that the file needs
// nothing of the present program.
func ddl(t *testing.T, plan store.MigrationPlan) string {
	var b strings.Builder
	b.WriteString("-- A store as a program of this schema version has left it. It is never changed.\n\n")
	b.WriteString("CREATE TABLE durable_schema (version integer PRIMARY KEY, name text NOT NULL, applied_at bigint NOT NULL);\n\n")
	for _, s := range plan.Steps {
		b.WriteString(strings.TrimSpace(strings.ReplaceAll(s.SQL, `"public".`, "")) + "\n\n")
	}
	return b.String()
}

// dump writes the rows of all tables as INSERTs.
func dump(t *testing.T, db *sqlx.DB) string {
	var b strings.Builder
	var tables []string
	require.NoError(t, db.Select(&tables, `SELECT table_name FROM information_schema.tables
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY table_name`))
	for _, table := range tables {
		var columns []struct {
			Name     string `db:"column_name"`
			Identity bool   `db:"identity"`
		}
		require.NoError(t, db.Select(&columns, `SELECT column_name, is_identity = 'YES' AS identity FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position`, table))
		var names, quoted []string
		for _, c := range columns {
			names = append(names, c.Name)
			quoted = append(quoted, fmt.Sprintf("quote_nullable(CAST(%s AS text))", c.Name))
		}
		var rows []string
		require.NoError(t, db.Select(&rows, fmt.Sprintf("SELECT concat_ws(', ', %s) FROM %s ORDER BY 1", strings.Join(quoted, ", "), table)))
		for _, row := range rows {
			fmt.Fprintf(&b, "INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s);\n", table, strings.Join(names, ", "), row)
		}
		for _, c := range columns {
			if c.Identity {
				fmt.Fprintf(&b, "SELECT setval(pg_get_serial_sequence('%s', '%s'), (SELECT max(%s) FROM %s));\n", table, c.Name, c.Name, table)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
