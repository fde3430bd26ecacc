package vintage_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

// A step of the schema that was released is what databases have been made with;
// changed afterwards, it would make others. What has to change is a new step.
func TestReleasedStepsAreNeverChanged(t *testing.T) {
	numberOf := func(file string) int {
		name := filepath.Base(file)
		n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSuffix(name, filepath.Ext(name)), "v"))
		require.NoError(t, err, file)
		return n
	}
	for _, file := range (cellar{dir: "../../store/postgres/testdata", ext: ".sql"}).bottles(t) {
		steps, err := sqlstore.ReadMigrations(os.DirFS("../../store/postgres"), "migrations", nil)
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, s := range steps[:numberOf(file)] {
			require.True(t, strings.Contains(string(text), strings.TrimSpace(s.SQL)), "step %d of postgres is not the one that made %s", s.Version, file)
		}
	}
	for _, file := range (cellar{dir: "../../store/sqlite/testdata", ext: ".db"}).bottles(t) {
		steps, err := sqlstore.ReadMigrations(os.DirFS("../../store/sqlite"), "migrations", nil)
		require.NoError(t, err)
		made := memory(t)
		for _, s := range steps[:numberOf(file)] {
			_, err := made.Exec(s.SQL)
			require.NoError(t, err)
		}
		kept := memory(t)
		_, err = kept.Exec("ATTACH ? AS kept", "file:"+file+"?immutable=1")
		require.NoError(t, err)
		require.Equal(t, objects(t, made, "main"), objects(t, kept, "kept"), "the steps of sqlite are not the ones that made %s", file)
	}
}

func memory(t *testing.T) *sql.DB {
	db, err := sql.Open("sqlite3", "file::memory:")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// objects returns what made the tables, indexes and views of a database.
func objects(t *testing.T, db *sql.DB, of string) (all []string) {
	rows, err := db.Query("SELECT sql FROM " + of + ".sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'durable_schema' AND name NOT LIKE 'sqlite_%' ORDER BY name")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		all = append(all, text)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, all)
	return all
}
