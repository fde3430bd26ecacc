//go:build cgo

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// Two processes write without a pause; every backup is a sound store that has
// all that was acknowledged before it was asked for.
func TestABackupOfALiveStoreIsOfOneMoment(t *testing.T) {
	path, dir := file(t), t.TempDir()
	st := open(t, path, sqlite.Options{Synchronous: sqlite.Off})
	child := spawn(t, "write", path, "other")
	require.True(t, child.lines.Scan())
	var acked atomic.Int64
	stop := make(chan struct{})
	var writing sync.WaitGroup
	l := start(t, st, "mine")
	start(t, st, "peer")
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			c := l.plain(2)
			// The row, the message and the events are one Change.
			c.Row = &store.RowPatch{Priority: new(int32(l.last.Seq))}
			c.Send = []store.Message{{To: "peer", Kind: store.KindSignal, ID: fmt.Sprint(i)}}
			if err := st.Commit(t.Context(), []store.Change{c})[0]; err != nil {
				t.Errorf("commit: %v", err)
				return
			}
			acked.Store(l.last.Seq)
		}
	})
	for i := range 8 {
		time.Sleep(10 * time.Millisecond)
		before := acked.Load()
		to := filepath.Join(dir, fmt.Sprint(i, ".db"))
		require.NoError(t, st.Backup(t.Context(), to))
		after := acked.Load()
		copied := open(t, to, sqlite.Options{})
		all := everything(t, copied)
		mine := all["mine"].Run
		require.GreaterOrEqual(t, mine.Last.Seq, before)
		require.LessOrEqual(t, mine.Last.Seq, after+2)
		require.EqualValues(t, mine.Last.Seq, max(int64(mine.Priority), 1))
		require.EqualValues(t, mine.Last.Seq, 1+2*all["peer"].Run.Inbox)
		require.Len(t, all["peer"].Inbox, int(all["peer"].Run.Inbox))
		require.Equal(t, "ok", ask[string](t, to, "PRAGMA integrity_check"))
		commit(t, copied, (&log{run: "mine", epoch: mine.Epoch, last: *mine.Last}).plain(1))
	}
	close(stop)
	writing.Wait()
	child.kill(t)
	left, err := filepath.Glob(filepath.Join(dir, "*.partial-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestABackupDoesNotReplaceAnything(t *testing.T) {
	path, _ := filled(t)
	st := open(t, path, sqlite.Options{})
	to := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, os.WriteFile(to, []byte("mine"), 0o600))
	require.ErrorIs(t, st.Backup(t.Context(), to), store.ErrInvalid)
	require.ErrorIs(t, st.Backup(t.Context(), path), store.ErrInvalid, "least of all the store itself")
	require.ErrorIs(t, st.Backup(t.Context(), ""), store.ErrInvalid)
	require.Error(t, st.Backup(t.Context(), filepath.Join(t.TempDir(), "none", "copy.db")))
	got, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, "mine", string(got))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, st.Backup(ctx, to+"2"), context.Canceled)
	require.NoFileExists(t, to+"2")
	require.ErrorIs(t, schemaOf(t, file(t), sqlite.Options{}).Backup(t.Context(), to+"2"), os.ErrNotExist)
	require.NoError(t, st.Close())
	require.ErrorIs(t, st.Backup(t.Context(), to+"2"), store.ErrClosed)
}

func TestAStoreInMemoryCanBeKept(t *testing.T) {
	st := open(t, ":memory:", sqlite.Options{})
	all := used(t, st)
	to := filepath.Join(t.TempDir(), "copy.db")
	require.NoError(t, st.Backup(t.Context(), to))
	require.Equal(t, all, everything(t, open(t, to, sqlite.Options{})))
	require.NoError(t, st.Maintain(t.Context()))
}
