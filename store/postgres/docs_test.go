package postgres_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// What docs/operating-schema.md tells people to type does what it says.
func TestTheCommandsOfTheSchemaPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating-schema.md")
	require.NoError(t, err)
	dsn, before := filled(t)
	dir := t.TempDir()
	run := func(with string) {
		t.Helper()
		for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
			if !strings.Contains(m[1], with) {
				continue
			}
			cmd := exec.Command("sh", "-e", "-c", m[1])
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "DSN="+dsn, "PATH="+pgtest.Programs(t)+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			return
		}
		require.Fail(t, "the page does not show "+with)
	}
	run("pg_dump")
	s := openOptions(t, dsn, postgres.Options{})
	commit(t, s, (&runLog{id: "since"}).create(""))
	require.NoError(t, s.Close())
	run("pg_restore")
	back := openOptions(t, dsn, postgres.Options{})
	require.Equal(t, before, allRuns(t, back))
	commit(t, back, (&runLog{id: "more"}).create(""))
}
