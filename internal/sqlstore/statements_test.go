package sqlstore_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

func TestStatementsAreReadByName(t *testing.T) {
	fsys := fstest.MapFS{
		"sql/run.sql":   {Data: []byte("-- Statements on runs.\n\n-- name: run_by_id\nSELECT 1\nFROM durable_runs; \n\n-- name: lanes (own)\n-- why it is so\nSELECT 2;\n")},
		"sql/event.sql": {Data: []byte("-- name: append\nINSERT INTO durable_events VALUES (?1)\n")},
	}
	rename, err := sqlstore.Prefixed("app_")
	require.NoError(t, err)
	st, err := sqlstore.ReadStatements(fsys, "sql", rename)
	require.NoError(t, err)
	require.Equal(t, "SELECT 1\nFROM app_runs", st.Text("run_by_id"))
	require.Equal(t, "-- why it is so\nSELECT 2", st.Text("lanes"))
	require.Equal(t, []string{"append", "run_by_id"}, st.Names(false))
	require.Equal(t, []string{"append", "lanes", "run_by_id"}, st.Names(true))
	require.NoError(t, st.Need("append", "lanes"))
	require.ErrorContains(t, st.Need("append", "gone", "lost"), "gone, lost")
	require.Panics(t, func() { st.Text("gone") })
}

func TestStatementsThatCannotBeMeantAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"twice":           "-- name: a\nSELECT 1\n-- name: a\nSELECT 2\n",
		"empty":           "-- name: a\n-- name: b\nSELECT 2\n",
		"before any name": "SELECT 1\n-- name: b\nSELECT 2\n",
	} {
		_, err := sqlstore.ReadStatements(fstest.MapFS{"sql/x.sql": {Data: []byte(text)}}, "sql", nil)
		require.Error(t, err, name)
	}
	_, err := sqlstore.ReadStatements(fstest.MapFS{}, "sql", nil)
	require.Error(t, err, "no files")
}

func TestPrefixIsCheckedBeforeItBecomesSQL(t *testing.T) {
	for _, bad := range []string{"a b", "x;", "1a", `"`, "a-b", "ä", "abcdefghijklmnopqrstuvwxyzabcdefg"} {
		_, err := sqlstore.Prefixed(bad)
		require.Error(t, err, bad)
	}
}

func TestMigrationsAreNumberedWithoutAGap(t *testing.T) {
	sql := &fstest.MapFile{Data: []byte("CREATE TABLE durable_x (a int)")}
	ms, err := sqlstore.ReadMigrations(fstest.MapFS{"m/0001_first.sql": sql, "m/0002_second.sql": sql}, "m", nil)
	require.NoError(t, err)
	require.Len(t, ms, 2)
	require.Equal(t, "second", ms[1].Name)
	for name, fsys := range map[string]fstest.MapFS{
		"gap":       {"m/0001_first.sql": sql, "m/0003_third.sql": sql},
		"not first": {"m/0002_second.sql": sql},
		"bad name":  {"m/0001_first.sql": sql, "m/2_second.sql": sql},
		"twice":     {"m/0001_first.sql": sql, "m/0001_other.sql": sql},
	} {
		_, err := sqlstore.ReadMigrations(fsys, "m", nil)
		require.Error(t, err, name)
	}
}
