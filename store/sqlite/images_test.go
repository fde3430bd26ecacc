//go:build cgo

package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// imagesOf does something to a file in use, and calls check with what a power
// failure at each moment of it may leave: the file and every beginning of its
// WAL, by steps of 512 bytes.
func imagesOf(t *testing.T, path string, st *sqlite.Store, act func(), check func(image string)) (images int) {
	t.Helper()
	require.NoError(t, st.Setting("PRAGMA wal_checkpoint(TRUNCATE)"))
	require.NoError(t, st.Setting("PRAGMA wal_autocheckpoint = 0"))
	db, err := os.ReadFile(path)
	require.NoError(t, err)
	act()
	same, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, db, same, "all that was written is in the WAL")
	wal, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, wal)
	dir := t.TempDir()
	for size := 0; ; size = min(size+512, len(wal)) {
		images++
		image := filepath.Join(dir, strconv.Itoa(images)+".db")
		require.NoError(t, os.WriteFile(image, db, 0o600))
		require.NoError(t, os.WriteFile(image+"-wal", wal[:size], 0o600))
		check(image)
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(image + suffix)
		}
		if size == len(wal) {
			return images
		}
	}
}

func TestAPowerFailureAtAnyWriteOfAMigrationLeavesTheOneOrTheOther(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	used(t, st)
	found, v := map[string]int{}, newest(t)
	n := imagesOf(t, path, st, func() {
		_, err := schemaOf(t, path, sqlite.Options{}.Later(widen, rewrite)).Migrate(t.Context())
		require.NoError(t, err)
	}, func(image string) {
		found[ask[string](t, image, `SELECT (SELECT max(version) FROM durable_schema) || ' ' ||
			(SELECT count(*) FROM pragma_table_info('durable_runs') WHERE name = 'note') || ' ' ||
			(SELECT count(*) FROM sqlite_master WHERE name = 'durable_seen') || ' ' || (SELECT sum(archived_seq) FROM durable_runs)`)]++
	})
	t.Logf("%d images: %v", n, found)
	require.Len(t, found, 2)
	require.Positive(t, found[fmt.Sprint(v, " 0 0 0")], "the version before, untouched")
	require.Positive(t, found[fmt.Sprint(v+2, " 1 1 4")], "the version after, with all that belongs to it")
	tried.Say(t, "wal", "of=migration images=%d wrong=0", n)
}

func TestAPowerFailureAtAnyWriteOfADeletionLeavesTheBatchOrNothingOfIt(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	ids := ended(t, st, "r", 20, 3000)
	start(t, st, "kept")
	found := map[int]int{}
	n := imagesOf(t, path, st, func() {
		n, err := st.Delete(t.Context(), store.Deletion{RunIDs: ids})
		require.NoError(t, err)
		require.Equal(t, len(ids), n)
	}, func(image string) {
		found[ask[int](t, image, `SELECT count(*) FROM durable_runs`)]++
		require.Zero(t, ask[int](t, image, `SELECT (SELECT count(*) FROM durable_events WHERE place >> 28 NOT IN (SELECT no FROM durable_runs))
			+ (SELECT count(*) FROM durable_attributes WHERE run_no NOT IN (SELECT no FROM durable_runs))`), "no orphans")
		require.Equal(t, 1, ask[int](t, image, `SELECT count(*) FROM durable_runs WHERE id = 'kept'`))
	})
	t.Logf("%d images: %v", n, found)
	require.Len(t, found, 2)
	require.Positive(t, found[1])
	require.Positive(t, found[len(ids)+1])
	refuse(t, st, store.Change{RunID: ids[0], Expect: store.Expect{Epoch: 1}, Row: &store.RowPatch{}}, store.ErrNotFound)
	tried.Say(t, "wal", "of=deletion images=%d wrong=0", n)
}
