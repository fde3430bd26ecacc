package arch_test

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages that people import stand where they look for them, and the
// libraries that the project is built on are used by the code, not only named.
func TestThePackagesAndTheLibrariesTheyStandOn(t *testing.T) {
	all := list(t, "linux", "1", "-test", module+"/...")
	for _, path := range []string{"durable", "store", "store/sqlite", "store/postgres", "store/memory", "conformance", "examples/quickstart"} {
		require.Contains(t, all, module+"/"+path)
	}
	_, err := os.Stat("../../go.mod")
	require.NoError(t, err)

	for path, libraries := range map[string][]string{
		"durable":        {otel, otel + "/trace", otel + "/metric"},
		"store/sqlite":   {sqlx, sqlite3},
		"store/postgres": {sqlx, pq},
		"conformance":    {rapid, porcupine},
	} {
		for _, library := range libraries {
			require.True(t, imports(all, path, library), "%s does not import %s", path, library)
		}
	}
	require.True(t, imports(all, "durable_test ["+module+"/durable.test]", testify+"/require"))
}

func imports(all map[string]pkg, path, library string) bool {
	return slices.Contains(all[module+"/"+path].Imports, library)
}
