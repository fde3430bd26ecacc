package archive_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
)

func openDir(t *testing.T, dir string) *archive.Dir {
	t.Helper()
	d, err := archive.OpenDir(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestAnyJSONReaderReadsAFileOfADirectory(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	file := export(t, "order-42/ship", 0)
	require.NoError(t, d.Store(t.Context(), "order-42/ship", file))
	b, err := os.ReadFile(dir + "/order-42%2Fship.json")
	require.NoError(t, err)
	var doc struct {
		Run   archive.Run
		Trace []archive.Event
		File  string
	}
	require.NoError(t, json.Unmarshal(b, &doc))
	require.Equal(t, "order-42/ship", doc.Run.ID)
	require.JSONEq(t, `"paid 0"`, string(doc.Run.Output))
	require.Equal(t, string(file), doc.File)
	require.Equal(t, int(doc.Run.Seq), len(doc.Trace))
	info, err := os.Stat(dir + "/order-42%2Fship.json")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestNothingOutsideOfTheDirectoryIsReadOrWritten(t *testing.T) {
	base := t.TempDir()
	outside := base + "/outside"
	require.NoError(t, os.MkdirAll(outside, 0o700))
	dir := base + "/archive"
	d := openDir(t, dir)
	// A file that is a link, and a folder that is one.
	secret := outside + "/secret.json"
	require.NoError(t, os.WriteFile(secret, []byte("{}"), 0o600))
	require.NoError(t, os.Symlink(secret, dir+"/r.json"))
	long := string(make([]byte, 0, 400))
	for range 400 {
		long += "x"
	}
	require.NoError(t, os.Symlink(outside, dir+"/"+long[:180]+"+"))
	_, err := d.Get(t.Context(), "r")
	require.ErrorIs(t, err, archive.ErrUnreadable)
	require.NoError(t, d.Store(t.Context(), "r", export(t, "r", 0)), "the link is replaced")
	require.Error(t, d.Store(t.Context(), long, export(t, long, 0)))
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	b, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "{}", string(b))
}

func TestAFileThatIsDamagedHidesNoOtherAndIsReplaced(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, d.Store(t.Context(), id, export(t, id, 0)))
	}
	b, err := os.ReadFile(dir + "/b.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/a.json", b, 0o600)) // that of another run
	require.NoError(t, os.WriteFile(dir+"/b.json", b[:len(b)/4], 0o600))
	require.NoError(t, os.WriteFile(dir+"/not%2e.json", b, 0o600))
	require.NoError(t, os.WriteFile(dir+"/README", b, 0o600)) // none of ours
	// What a killed process has left, long ago and just now.
	require.NoError(t, os.WriteFile(dir+"/.tmp-1-1", b[:9], 0o600))
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(dir+"/.tmp-1-1", old, old))
	require.NoError(t, os.WriteFile(dir+"/.tmp-1-2", b[:9], 0o600))

	var good []string
	bad := 0
	for run, err := range d.List(t.Context()) {
		if err != nil {
			require.ErrorIs(t, err, archive.ErrUnreadable)
			bad++
			continue
		}
		good = append(good, run.ID)
	}
	require.Contains(t, good, "c")
	require.NotContains(t, good, "a")
	require.GreaterOrEqual(t, bad, 2)
	require.NoFileExists(t, dir+"/.tmp-1-1")
	require.FileExists(t, dir+"/.tmp-1-2")
	_, err = d.Get(t.Context(), "b")
	require.ErrorIs(t, err, archive.ErrUnreadable)
	require.NoError(t, d.Store(t.Context(), "b", export(t, "b", 0)))
	_, err = d.Get(t.Context(), "b")
	require.NoError(t, err)

	var collision *archive.CollisionError
	require.ErrorAs(t, d.Store(t.Context(), "a", export(t, "a", 0)), &collision)
	require.Equal(t, "b", collision.Other)
}

// A folder that is none of ours is not looked into: the archive may be the top of a
// file system, whose lost+found only root can read.
func TestAFolderOfSomebodyElsesHidesNoRun(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	require.NoError(t, d.Store(t.Context(), "r", export(t, "r", 0)))
	require.NoError(t, os.Mkdir(dir+"/lost+found", 0o700))
	require.NoError(t, os.WriteFile(dir+"/lost+found/a.json", []byte("{}"), 0o600))
	require.NoError(t, os.Chmod(dir+"/lost+found", 0))
	t.Cleanup(func() { _ = os.Chmod(dir+"/lost+found", 0o700) })
	require.Equal(t, []string{"r"}, listed(t, d))
}

func TestADirectoryThatCannotBeUsedSaysSo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := archive.OpenDir(file)
	require.ErrorIs(t, err, archive.ErrUnavailable)
	dir := t.TempDir()
	d := openDir(t, dir)
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, d.Store(t.Context(), "r", export(t, "r", 0)), archive.ErrUnavailable)
}

func FuzzAFileOfADirectory(f *testing.F) {
	f.Add([]byte(`{"run":{"run_id":"r","format":1,"created_at":"2026-01-01T00:00:00Z"},"trace":[],"file":""}`))
	f.Add([]byte(`{"run":{"run_id":"r","format":9}}`))
	f.Add([]byte(`{"file":"{\"holdfast\":\"run\",\"format\":1}\n"}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		d := openDir(t, dir)
		require.NoError(t, os.WriteFile(dir+"/r.json", data, 0o600))
		for run, err := range d.List(t.Context()) {
			if err == nil {
				require.Equal(t, "r", run.ID)
			} else {
				require.ErrorIs(t, err, archive.ErrUnreadable)
			}
		}
		if e, err := d.Get(t.Context(), "r"); err == nil {
			require.Equal(t, "r", e.ID)
		}
	})
}
