package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

func statements(t *testing.T, dir string) sqlstore.Statements {
	st, err := sqlstore.ReadStatements(os.DirFS(dir), "sql", nil)
	require.NoError(t, err)
	return st
}

// A statement that is not marked as this dialect's own has the same name in the
// other one.
func TestSharedStatementsHaveTheSameNamesInBothDialects(t *testing.T) {
	require.Subset(t, statements(t, "../sqlite").Names(false), statements(t, ".").Names(false))
}

func TestEveryStatementIsUsedAndUnderstoodByTheServer(t *testing.T) {
	dsn := pgtest.DSN(t)
	open(t, dsn)
	db := raw(t, dsn)
	var source strings.Builder
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			b, err := os.ReadFile(f.Name())
			require.NoError(t, err)
			source.Write(b)
		}
	}
	for name, st := range statements(t, ".") {
		require.Contains(t, source.String(), `"`+name+`"`, "nobody uses it")
		if name == "schema_create" {
			continue // it was carried out; DDL cannot be prepared
		}
		prepared, err := db.Prepare(st.SQL)
		require.NoError(t, err, name)
		require.NoError(t, prepared.Close())
	}
}
