//go:build cgo

package vintage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func cellars(t *testing.T) map[string]cellar {
	return map[string]cellar{"sqlite": sqliteCellar(t), "postgres": postgresCellar(t)}
}

func sqliteCellar(t *testing.T) cellar {
	nowhere, err := sqlite.OpenSchema(filepath.Join(t.TempDir(), "none.db"), sqlite.Options{})
	require.NoError(t, err)
	plan, err := nowhere.Plan(t.Context())
	require.NoError(t, err)
	open := func(t *testing.T, path string) store.Store {
		st, err := sqlite.OpenOptions(path, sqlite.Options{NoPresence: true})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		return st
	}
	return cellar{
		dir: "../../store/sqlite/testdata", ext: ".db", version: plan.Know,
		empty: func(t *testing.T) (store.Store, func(string)) {
			path := filepath.Join(t.TempDir(), "app.db")
			return open(t, path), func(to string) {
				sc, err := sqlite.OpenSchema(path, sqlite.Options{})
				require.NoError(t, err)
				require.NoError(t, sc.Backup(t.Context(), to))
				require.NoError(t, os.Chmod(to, 0o644))
			}
		},
		uncork: func(t *testing.T, file string) func() store.Store {
			path := filepath.Join(t.TempDir(), "app.db")
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, b, 0o600))
			return func() store.Store { return open(t, path) }
		},
	}
}
