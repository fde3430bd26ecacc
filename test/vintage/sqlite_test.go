//go:build cgo

package vintage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// openers open the store of a backend that is there.
var openers = map[string]func(dsn string) (store.Store, error){"sqlite": openSQLite, "postgres": openPostgres}

func openSQLite(path string) (store.Store, error) {
	return sqlite.OpenOptions(path, sqlite.Options{NoPresence: true})
}

func cellars(t *testing.T) map[string]cellar {
	return map[string]cellar{"sqlite": sqliteCellar(t), "postgres": postgresCellar(t)}
}

func sqliteCellar(t *testing.T) cellar {
	nowhere, err := sqlite.OpenSchema(filepath.Join(t.TempDir(), "none.db"), sqlite.Options{})
	require.NoError(t, err)
	plan, err := nowhere.Plan(t.Context())
	require.NoError(t, err)
	open := func(t *testing.T, path string) store.Store {
		st, err := openSQLite(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		return st
	}
	return cellar{
		dir: "../../store/sqlite/testdata", ext: ".db", version: plan.Know,
		open: open,
		empty: func(t *testing.T) (string, func(string)) {
			path := filepath.Join(t.TempDir(), "app.db")
			return path, func(to string) {
				sc, err := sqlite.OpenSchema(path, sqlite.Options{})
				require.NoError(t, err)
				require.NoError(t, sc.Backup(t.Context(), to))
				require.NoError(t, os.Chmod(to, 0o644))
			}
		},
		table: func(t *testing.T, dsn, statement string) {
			db, err := sqlx.Open("sqlite3", dsn)
			require.NoError(t, err)
			defer db.Close()
			db.MustExec(statement)
		},
		uncork: func(t *testing.T, file string) string {
			path := filepath.Join(t.TempDir(), "app.db")
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, b, 0o600))
			return path
		},
	}
}
