package sqlstore_test

import (
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

// Both dialects define the same statements, apart from those that one of them
// marks as its own.
func TestDialectsDefineTheSameNames(t *testing.T) {
	names := map[string][]string{}
	for _, backend := range []string{"sqlite", "postgres"} {
		fsys := os.DirFS("../../store/" + backend)
		if _, err := fs.Stat(fsys, "sql"); err != nil {
			t.Fatalf("%s has no statements: %v", backend, err)
		}
		st, err := sqlstore.ReadStatements(fsys, "sql", nil)
		require.NoError(t, err, backend)
		names[backend] = st.Names(false)
	}
	require.Equal(t, names["sqlite"], names["postgres"], "mark a statement that only one dialect needs with (own)")
}
