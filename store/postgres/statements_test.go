package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/test/pgtest"
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

// A claim and a beat go through the same lanes, and differ in the statuses alone.
// Each statement stays whole, so that it can be read and pasted.
func TestAClaimAndABeatGoThroughTheSameLanes(t *testing.T) {
	lanes := map[string]string{}
	for _, name := range []string{"due", "look"} {
		text, _, ok := strings.Cut(statements(t, ".")[name].SQL, "LIMIT 1) n\n)")
		require.True(t, ok, name)
		_, text, ok = strings.Cut(text, "WITH RECURSIVE lanes")
		require.True(t, ok, name)
		before, rest, ok := strings.Cut(text, "unnest(ARRAY[")
		require.True(t, ok, name)
		_, after, ok := strings.Cut(rest, "])")
		require.True(t, ok, name)
		lanes[name] = before + after
	}
	require.Equal(t, lanes["due"], lanes["look"])
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
