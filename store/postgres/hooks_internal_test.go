package postgres

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

// Later returns options of a program that knows more steps of the schema than
// there are.
func (o Options) Later(steps ...string) Options {
	o.migrations = func(ms []sqlstore.Migration) []sqlstore.Migration {
		for _, sql := range steps {
			rename := qualified(cmp.Or(o.Schema, "public")) // as every step has its schema before its tables
			ms = append(ms, sqlstore.Migration{Version: len(ms) + 1, Name: fmt.Sprint("later_", len(ms)+1), SQL: rename(sql)})
		}
		return ms
	}
	return o
}

// GivesUpAfter returns options of a store with another limit for a server that
// says nothing.
func (o Options) GivesUpAfter(d time.Duration) Options {
	o.silence = d
	return o
}

// SendsAtMost returns options of a store with another limit for the bytes of a
// statement.
func (o Options) SendsAtMost(n int) Options {
	o.message = n
	return o
}

// CopySchema makes the name of a copy's schema.
var CopySchema = copySchema

// Qualified reports whether a table's name is one that statements qualify.
func Qualified(table string) bool { return tableNames[table] }

// Present is the version of the schema that this program knows.
var Present = func() int {
	steps, err := sqlstore.ReadMigrations(migrationFiles, "migrations", nil)
	if err != nil {
		panic(err)
	}
	return len(steps)
}()

// Texts returns every statement and migration as it is used in a schema, by name.
func Texts(schema string) map[string]string {
	texts := map[string]string{}
	statements, err := sqlstore.ReadStatements(statementFiles, "sql", qualified(schema))
	if err != nil {
		panic(err)
	}
	for name, st := range statements {
		texts[name] = st.SQL
	}
	steps, err := sqlstore.ReadMigrations(migrationFiles, "migrations", qualified(schema))
	if err != nil {
		panic(err)
	}
	for _, m := range steps {
		texts[m.Name] = m.SQL
	}
	return texts
}
