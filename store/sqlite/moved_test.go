//go:build cgo && unix

package sqlite_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// What is written to a file that has no name any more is acknowledged and lost.
func TestAFileThatIsTakenAwayWhileItIsOpenStopsTheStore(t *testing.T) {
	for name, takeAway := range map[string]func(t *testing.T, path string) error{
		"moved":   func(_ *testing.T, path string) error { return os.Rename(path, path+".old") },
		"deleted": func(_ *testing.T, path string) error { return os.Remove(path) },
		"replaced": func(t *testing.T, path string) error {
			other := file(t)
			st, err := sqlite.Open(other)
			require.NoError(t, err)
			require.NoError(t, st.Close())
			return os.Rename(other, path)
		},
		"its WAL deleted": func(_ *testing.T, path string) error { return os.Remove(path + "-wal") },
		"its WAL replaced": func(_ *testing.T, path string) error {
			if err := os.Remove(path + "-wal"); err != nil {
				return err
			}
			return os.WriteFile(path+"-wal", nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			st, err := sqlite.Open(path)
			require.NoError(t, err)
			t.Cleanup(func() { _ = st.Close() })
			e := executor("me")
			beat(t, st, e)
			l := start(t, st, "r")
			beat(t, st, e)
			require.NoError(t, takeAway(t, path))
			_, err = st.Beat(t.Context(), e)
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, "restart")
			for _, err := range st.Commit(t.Context(), []store.Change{l.plain(1)}) {
				require.ErrorContains(t, err, path, "nothing is acknowledged any more")
			}
			_, err = st.Load(t.Context(), "r", store.Cursor{})
			require.ErrorContains(t, err, path)
		})
	}
}

func TestAFileThatStaysIsNotTakenForOneThatWasMoved(t *testing.T) {
	path := file(t)
	e := executor("me")
	for range 3 { // the last one to close removes the WAL
		st, err := sqlite.Open(path)
		require.NoError(t, err)
		other, err := sqlite.Open(path)
		require.NoError(t, err)
		for _, s := range []*sqlite.Store{st, other, st} {
			beat(t, s, e)
			require.NoError(t, s.Maintain(t.Context()))
			beat(t, s, e)
		}
		require.NoError(t, other.Close())
		beat(t, st, e)
		require.NoError(t, st.Close())
	}
	st := open(t, ":memory:", sqlite.Options{})
	beat(t, st, e)
	beat(t, st, e)
}
