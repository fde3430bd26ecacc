//go:build cgo

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func init() { roles["limited"] = childIsLimited }

// childIsLimited writes until the system refuses to let the WAL grow, which
// SQLite reports as an I/O error, and goes on when it may again.
func childIsLimited(st *sqlite.Store, _ string) error {
	ctx := context.Background()
	signal.Ignore(unix.SIGXFSZ)
	l, c := create("r", nil)
	if err := st.Commit(ctx, []store.Change{c})[0]; err != nil {
		return err
	}
	info, err := os.Stat(os.Getenv(childFile) + "-wal")
	if err != nil {
		return err
	}
	var free unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(info.Size()) + 50_000, Max: free.Max}); err != nil {
		return err
	}
	for i := 0; ; i++ {
		c = l.plain(1 + i%2)
		if err = st.Commit(ctx, []store.Change{c})[0]; err != nil {
			break
		}
	}
	fmt.Println("unknown", errors.Is(err, store.ErrUnknown), "events", l.last.Seq-int64(len(c.Events)))
	// The connection is not trusted any more; closing it folds the WAL into the
	// file, so that there may be room again even now.
	_ = st.Commit(ctx, []store.Change{c})
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &free); err != nil {
		return err
	}
	for range 2 { // the very same, twice (S6)
		if err := st.Commit(ctx, []store.Change{c})[0]; err != nil {
			return err
		}
	}
	fmt.Println("events", l.last.Seq)
	return nil
}

func TestAnIOErrorIsGotOver(t *testing.T) {
	path := file(t)
	c := spawn(t, "limited", path, "")
	lines := c.rest()
	require.NoError(t, c.cmd.Wait())
	require.Len(t, lines, 2)
	t.Log(lines)
	var unknown bool
	var before, after int
	_, err := fmt.Sscanf(lines[0], "unknown %t events %d", &unknown, &before)
	require.NoError(t, err)
	_, err = fmt.Sscanf(lines[1], "events %d", &after)
	require.NoError(t, err)
	require.Greater(t, after, before)
	_, events := load(t, open(t, path, sqlite.Options{}), "r")
	require.Len(t, events, after)
	sound(t, "r", events)
}
