//go:build cgo

package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func walSize(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	return info.Size()
}

// wide is a checkpoint of about n bytes.
func wide(l *log, n int) store.Change {
	return store.Change{
		RunID: l.run, Expect: store.Expect{Epoch: l.epoch},
		Events: []store.Event{l.next(store.Event{Type: store.StepCompleted, Key: "s", Attempt: 1, Ordinal: 1, Payload: make([]byte, n)})},
	}
}

// Readers that overlap leave no moment at which nobody reads.
func TestTheWALStaysSmallBesideReadersThatOverlap(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{Synchronous: sqlite.Normal})
	l := start(t, st, "r")
	for range 40 {
		commit(t, st, l.plain(500))
	}
	volume, length := 64<<20, time.Duration(0)
	if os.Getenv("DURABLE_SOAK") != "" {
		length = time.Minute
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	var reads atomic.Int64
	raw, err := sql.Open("sqlite3", "file:"+path+"?mode=ro&_busy_timeout=5000")
	require.NoError(t, err)
	defer raw.Close()
	for i := range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if i%2 == 0 { // some are other programs' own
					var n int
					_ = raw.QueryRowContext(ctx, "SELECT sum(length(payload)) FROM durable_events").Scan(&n)
				} else if h, err := st.Load(ctx, "r", store.Cursor{All: true}); err == nil {
					for range h.Events {
					}
				}
				reads.Add(1)
			}
		})
	}
	largest, written, longest := int64(0), 0, time.Duration(0)
	for first := time.Now(); written < volume || time.Since(first) < length; {
		began := time.Now()
		w := start(t, st, fmt.Sprint("w", written))
		for range 20 {
			commit(t, st, wide(w, 100_000))
		}
		longest = max(longest, time.Since(began))
		written += 20 * 100_000
		largest = max(largest, walSize(t, path))
	}
	stop()
	readers.Wait()
	t.Logf("%d MB written beside %d reads, the WAL had %d MB at most, 21 commits took %v at most", written>>20, reads.Load(), largest>>20, longest)
	require.Less(t, largest, int64(32<<20))
}

func TestMaintenanceSaysThatTheWALCouldNotBeCut(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{Synchronous: sqlite.Normal})
	l := start(t, st, "r")
	other, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	require.NoError(t, err)
	defer other.Close()
	tx, err := other.Begin()
	require.NoError(t, err)
	var n int
	require.NoError(t, tx.QueryRow("SELECT count(*) FROM durable_runs").Scan(&n))
	began := time.Now()
	for range 60 {
		commit(t, st, wide(l, 500_000))
	}
	require.Less(t, time.Since(began), 20*time.Second, "a reader that stays holds up commits now and then, and shortly")
	require.Greater(t, walSize(t, path), int64(16<<20))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.ErrorContains(t, st.Maintain(ctx), "could not be folded")
	require.NoError(t, tx.Rollback())
	require.NoError(t, st.Maintain(t.Context()))
	require.Zero(t, walSize(t, path))
}
