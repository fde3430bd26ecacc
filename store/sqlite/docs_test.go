//go:build cgo

package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// What docs/operating-schema.md and docs/guides/databases.md tell people to type does what they say.
func TestTheCommandsOfTheSchemaPage(t *testing.T) {
	var page []byte
	for _, name := range []string{"operating-schema.md", "guides/databases.md"} {
		text, err := os.ReadFile("../../docs/" + name)
		require.NoError(t, err)
		page = append(page, text...)
	}
	block := func(kind, with string) string {
		for _, m := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
			if regexp.MustCompile(with).MatchString(m[1]) {
				return m[1]
			}
		}
		t.Fatalf("the page has no %s block with %s", kind, with)
		return ""
	}
	path, before := filled(t)
	dir := filepath.Dir(path)
	sc := schemaOf(t, path, sqlite.Options{})
	require.NoError(t, sc.Backup(t.Context(), filepath.Join(dir, "app.db.v1-20261121T084116.000000Z.backup")))
	// A process that was killed has left a WAL.
	st, err := sqlite.Open(path)
	require.NoError(t, err)
	start(t, st, "since")
	wal, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NoError(t, st.Close())
	require.NoError(t, os.WriteFile(path+"-wal", wal, 0o600))

	cmd := exec.Command("sh", "-e", "-c", block("sh", "cp app.db"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, before, everything(t, open(t, path, sqlite.Options{})))
	require.FileExists(t, filepath.Join(dir, "replaced", "app.db-wal"))

	other, _ := filled(t)
	db := connect(t, other, "")
	db.SetMaxOpenConns(1)
	_, err = db.Exec(block("sql", "VACUUM"))
	require.NoError(t, err)
	require.Equal(t, 2, value[int](t, db, "PRAGMA auto_vacuum"))
}
