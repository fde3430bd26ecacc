package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// newer are the commands that no earlier version has, and some that are as old as any.
var newer = []string{
	"queues ls", "queues show emails", "queues pause emails", "queues resume emails", "queues dead emails", "queues retry emails --all", "queues retry emails mail-1",
	"schedules ls", "schedules show nightly", "schedules pause nightly", "schedules resume nightly", "schedules trigger nightly",
	"schedules backfill nightly --from 2026-01-01 --to 2026-01-02", "schedules rm nightly",
	"sessions ls", "stuck",
}

// A terminal may be newer than the programs on a store.
func TestCommandsOnAStoreOfAnOlderVersionSayWhatToDoAndChangeNothing(t *testing.T) {
	d := newDesk(t)
	golden, err := os.ReadFile("../store/sqlite/testdata/v1.db")
	require.NoError(t, err)
	path := filepath.Join(d.dir, "old.db")
	require.NoError(t, os.WriteFile(path, golden, 0o600))
	for _, command := range newer {
		a := d.sh("durable " + command + " --store old.db")
		require.Equal(t, 5, a.code, "%s: %s%s", command, a.out, a.err)
		require.Empty(t, a.out)
		require.Contains(t, a.err, "schema version 1 is older than version", command)
		require.Contains(t, a.err, "\nLook: durable schema status --store old.db\n", command)
	}
	require.Contains(t, d.ok("durable schema status --store old.db").out, "Plan: durable schema migrate --dry-run --store old.db")
	sc, err := sqlite.OpenSchema(path, sqlite.Options{})
	require.NoError(t, err)
	defer sc.Close()
	p, err := sc.Plan(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, p.Have)
	beside, err := filepath.Glob(path + ".*")
	require.NoError(t, err)
	require.Empty(t, beside, "no backup: nothing was migrated")
}

// Nor is a program of an older version, or what answers beside the mount path, one that
// lacks a run.
func TestCommandsToAServerWithoutTheirRouteSayWhatToDo(t *testing.T) {
	d := newDesk(t)
	for name, body := range map[string]string{
		"an older version":      `{"error":{"code":"no_route","message":"there is nothing at /api/queues","next":"the list of routes is at /api/openapi.json"}}`,
		"another program":       "404 page not found\n",
		"a proxy with a page":   "<html>404</html>",
		"an API of its own":     `{"message":"Not Found"}`,
		"nothing, but a status": "",
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(body))
		}))
		defer srv.Close()
		commands := []string{"queues ls"}
		if name == "an older version" {
			commands = append(newer, "resume order-1", "cancel order-1", "watch order-1", "run checkout --id order-1 --input {}")
		}
		for _, command := range commands {
			a := d.sh("durable " + command + " --server " + srv.URL)
			require.Equal(t, 5, a.code, "%s of %s: %s%s", command, name, a.out, a.err)
			require.Contains(t, a.err, "The program at "+srv.URL+" does not have what this command asks for", "%s of %s", command, name)
			require.Contains(t, a.err, "--store DSN", "%s of %s", command, name)
			require.NotContains(t, a.err, "not found", "%s of %s", command, name)
		}
	}
}
