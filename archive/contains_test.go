package archive_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// An id is used again, and then the earlier run comes back from a file: the
// archive keeps the later one and does not say that it has the earlier one.
func TestARunThatTheArchiveDoesNotTakeIsNotTakenForArchived(t *testing.T) {
	for name, a := range archives(t) {
		t.Run(name, func(t *testing.T) {
			_, earlier := states(t, "r")
			require.NoError(t, a.Store(t.Context(), "r", export(t, "r", 0)))
			err := a.Store(t.Context(), "r", earlier)
			var reused *archive.ReusedIDError
			require.ErrorAs(t, err, &reused)
			require.Equal(t, "r", reused.RunID)
			require.True(t, reused.Given.Before(reused.Held))

			o := options()
			o.Archive = a
			p := boot(t, memory.Open(), o)
			_, err = operate.On(p.Engine).Import(p.ctx, bytes.NewReader(earlier), operate.ImportOptions{})
			require.NoError(t, err)
			eventually(t, "it was tried", func() bool { return strings.Contains(p.log.String(), "write failed for r") })
			require.Zero(t, rowOf(t, p, "r").ArchivedSeq)
			_, err = operate.On(p.Engine).Clean(p.ctx, operate.CleanOptions{All: true})
			require.NoError(t, err)
			require.Equal(t, earlier, clearRow(exported(t, p, "r"), earlier), "it is the only copy")
		})
	}
}

// clearRow puts the first line of one file, which has the row, before the rest of
// another: only events are compared.
func clearRow(file, row []byte) []byte {
	first, _, _ := bytes.Cut(row, []byte("\n"))
	_, rest, _ := bytes.Cut(file, []byte("\n"))
	_, end, _ := bytes.Cut(row, []byte(`{"end":`))
	rest, _, _ = bytes.Cut(rest, []byte(`{"end":`))
	return bytes.Join([][]byte{first, []byte("\n"), rest, []byte(`{"end":`), end}, nil)
}

// What a state has of signals that nobody has taken tells it from an earlier one
// with the same events.
func TestOfTwoStatesWithTheSameEventsTheOneWithMoreSignalsIsTheLater(t *testing.T) {
	p := boot(t, memory.Open(), options())
	_, err := checkout(&bodies{}).Start(p.ctx, "r", order{ID: "r", Total: 5})
	require.NoError(t, err)
	eventually(t, "it waits", func() bool { return rowOf(t, p, "r").Status == store.Waiting })
	before := exported(t, p, "r")
	require.NoError(t, durable.Signal(p.ctx, "r", "another", "kept for later"))
	after := exported(t, p, "r")
	eachArchive(t, func(t *testing.T, a archive.Archive) {
		for _, file := range [][]byte{before, after, before} {
			require.NoError(t, a.Store(t.Context(), "r", file))
		}
		e, err := a.Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, string(after), string(e.File))
	})
}

// Two processes on one directory: here two handles, which share nothing else.
func TestOfTwoProcessesThatStoreARunInADirectoryTheLaterStateStands(t *testing.T) {
	waiting, completed := states(t, "r")
	for range 40 {
		dir := t.TempDir()
		handles := []*archive.Dir{openDir(t, dir), openDir(t, dir)}
		var work sync.WaitGroup
		for i, file := range [][]byte{waiting, completed} {
			work.Go(func() {
				if err := handles[i].Store(t.Context(), "r", file); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		e, err := handles[0].Get(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, store.Completed, e.Status)
	}
}

// A link in place of the lock leads nowhere.
func TestTheLockOfADirectoryIsNoWayOutOfIt(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Symlink(outside+"/made", dir+"/.lock"))
	d := openDir(t, dir)
	require.ErrorIs(t, d.Store(t.Context(), "r", export(t, "r", 0)), archive.ErrUnavailable)
	require.NoFileExists(t, outside+"/made")
}

// What a crash of the machine leaves of objects that were not on disk yet.
func TestARefWhoseObjectsAreMissingOrEmptyIsMendedByTheNextWrite(t *testing.T) {
	waiting, completed := states(t, "r")
	objects := map[string]string{"commit": "", "tree": "^{tree}", "run": ":run.json", "trace": ":trace.json", "file": ":run.hfrun"}
	spoil := map[string]func(t *testing.T, path string){
		"missing": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"empty":   func(t *testing.T, path string) { rewrite(t, path, nil) },
		"damaged": func(t *testing.T, path string) { rewrite(t, path, []byte("junk")) },
	}
	for object, place := range objects {
		for how, f := range spoil {
			t.Run(object+" "+how, func(t *testing.T) {
				t.Parallel()
				for _, again := range [][]byte{waiting, completed} {
					dir := t.TempDir()
					git(t, dir, "init", "-q", "--bare")
					g := openGit(t, dir)
					require.NoError(t, g.Store(t.Context(), "r", waiting))
					id := git(t, dir, "rev-parse", "refs/durable/runs/r"+place)
					f(t, filepath.Join(dir, "objects", id[:2], id[2:]))
					require.NoError(t, g.Store(t.Context(), "r", again))
					e, err := g.Get(t.Context(), "r")
					require.NoError(t, err)
					require.Equal(t, again, e.File)
					_, err = g.Trace(t.Context(), "r")
					require.NoError(t, err)
					require.Equal(t, []string{"r"}, listed(t, g))
				}
			})
		}
	}
}

func rewrite(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// slow is an archive whose first write waits.
type slow struct {
	archive.Archive
	once      sync.Once
	begun, on chan struct{}
}

func (s *slow) Store(ctx context.Context, id string, file []byte) error {
	s.once.Do(func() {
		close(s.begun)
		<-s.on
	})
	return s.Archive.Store(ctx, id, file)
}

// A run that is gone when its copy comes late, and whose id is used again, is no
// reason to complain.
func TestALateCopyOfARunThatIsGoneIsNoError(t *testing.T) {
	a := &slow{Archive: archives(t)["dir"], begun: make(chan struct{}), on: make(chan struct{})}
	st := memory.Open()
	o := options()
	o.Archive = a
	p := boot(t, st.Handle(), o)
	_, err := checkout(&bodies{}).Run(p.ctx, "r", order{ID: "r"})
	require.NoError(t, err)
	<-a.begun
	q := boot(t, st.Handle(), options())
	_, err = operate.On(q.Engine).Clean(q.ctx, operate.CleanOptions{All: true})
	require.NoError(t, err)
	_, err = checkout(&bodies{}).Run(q.ctx, "r", order{ID: "r"})
	require.NoError(t, err)
	require.NoError(t, a.Archive.Store(t.Context(), "r", exported(t, q, "r")))
	close(a.on)
	require.NoError(t, p.Close())
	require.NotContains(t, p.log.String(), "write failed")
}
