//go:build unix

package archive_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
)

// TestFullDiskHelper stores the file in ARCHIVE_FULL, where nothing more can be written than
// its limit allows. It is no test of its own.
func TestFullDiskHelper(t *testing.T) {
	kind, rest, ok := strings.Cut(os.Getenv("ARCHIVE_FULL"), ":")
	if !ok {
		return // the test below starts it
	}
	dir, name, _ := strings.Cut(rest, ":")
	signal.Ignore(syscall.SIGXFSZ) // a write fails, as on a full disk
	file, err := os.ReadFile(name)
	require.NoError(t, err)
	small := syscall.Rlimit{Cur: 512, Max: 512}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
	var a archive.Archive
	if kind == "dir" {
		a, err = archive.OpenDir(dir)
	} else {
		a, err = archive.OpenGit(t.Context(), dir, archive.GitOptions{})
	}
	if err == nil {
		err = a.Store(t.Context(), "r", file)
	}
	if !errors.Is(err, archive.ErrUnavailable) {
		fmt.Fprintf(os.Stderr, "on a full disk: %v\n", err)
		os.Exit(3)
	}
	os.Exit(0)
}

// A disk that is full is told, the copy that was there stands, nothing is left beside it,
// and the next write succeeds.
func TestAFullDiskIsToldAndHarmsNoCopyThatWasThere(t *testing.T) {
	waiting, completed := states(t, "r")
	for _, kind := range []string{"dir", "git"} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s with a copy before: %v", kind, before), func(t *testing.T) {
				dir, file := t.TempDir(), t.TempDir()+"/completed"
				require.NoError(t, os.WriteFile(file, completed, 0o600))
				var a archive.Archive
				if kind == "git" {
					git(t, dir, "init", "-q", "--bare")
					a = openGit(t, dir)
				} else {
					a = openDir(t, dir)
				}
				if before {
					require.NoError(t, a.Store(t.Context(), "r", waiting))
				}
				names := entries(t, dir)
				cmd := exec.Command(os.Args[0], "-test.run=TestFullDiskHelper$")
				cmd.Env = append(os.Environ(), "ARCHIVE_FULL="+kind+":"+dir+":"+file)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				if kind == "dir" {
					after := entries(t, dir)
					delete(after, ".lock")
					delete(names, ".lock")
					require.Equal(t, names, after)
				}
				e, err := a.Get(t.Context(), "r")
				if before {
					require.NoError(t, err)
					require.Equal(t, waiting, e.File)
				} else {
					require.ErrorIs(t, err, archive.ErrNotFound)
				}
				require.NoError(t, a.Store(t.Context(), "r", completed))
				e, err = a.Get(t.Context(), "r")
				require.NoError(t, err)
				require.Equal(t, completed, e.File)
			})
		}
	}
}

func entries(t *testing.T, dir string) map[string]bool {
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, e := range list {
		names[e.Name()] = true
	}
	return names
}

// Somebody collects the garbage of the repository while runs are archived, and what Store has
// acknowledged stays. (Not with --prune=now, of which git says that nobody else may write then.)
func TestWhatWasArchivedSurvivesAGarbageCollectionBesideIt(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q", "--bare")
	g := openGit(t, dir)
	_, completed := states(t, "r")
	require.NoError(t, g.Store(t.Context(), "r", completed))
	stop := make(chan struct{})
	var gc sync.WaitGroup
	collected := 0
	gc.Go(func() {
		for ; ; collected++ {
			select {
			case <-stop:
				return
			default:
			}
			cmd := exec.Command("git", "gc", "-q")
			cmd.Dir = dir
			_ = cmd.Run() // one that meets a lock gives up
		}
	})
	acknowledged := map[string][]byte{}
	for i := range 8 {
		id := fmt.Sprint("run-", i)
		file := export(t, id, 0)
		for tries := 0; ; tries++ {
			err := g.Store(t.Context(), id, file)
			if err == nil {
				acknowledged[id] = file
				break
			}
			require.ErrorIs(t, err, archive.ErrUnavailable)
			require.Less(t, tries, 20, "%v", err)
			time.Sleep(10 * time.Millisecond)
		}
	}
	close(stop)
	gc.Wait()
	require.Positive(t, collected)
	for id, file := range acknowledged {
		e, err := g.Get(t.Context(), id)
		require.NoError(t, err, id)
		require.Equal(t, file, e.File, id)
	}
	git(t, dir, "fsck", "--strict", "--no-dangling")
	require.Len(t, listed(t, g), 9)
}

// A shallow clone is a repository like any other, and a lock on the index is none of an
// archive's business.
func TestAShallowCloneWithALockedIndexIsAnArchive(t *testing.T) {
	from, dir := repository(t), t.TempDir()+"/clone"
	git(t, from, "commit", "-q", "--allow-empty", "-m", "second")
	git(t, from, "clone", "-q", "--depth", "1", "file://"+from, dir)
	require.NoError(t, os.WriteFile(dir+"/.git/index.lock", nil, 0o600))
	g := openGit(t, dir)
	waiting, completed := states(t, "r")
	require.NoError(t, g.Store(t.Context(), "r", waiting))
	require.NoError(t, g.Store(t.Context(), "r", completed))
	e, err := g.Get(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, completed, e.File)
	require.Equal(t, []string{"r"}, listed(t, g))
	require.FileExists(t, dir+"/.git/index.lock", "it is somebody else's")
}

// A copy whose objects somebody has pruned away is one that cannot be read: it was archived,
// and its loss must not look like a run that never was.
func TestACopyWhoseObjectsWerePrunedIsUnreadableAndNotMissing(t *testing.T) {
	dir := t.TempDir()
	git(t, dir, "init", "-q", "--bare")
	g := openGit(t, dir)
	waiting, completed := states(t, "r")
	require.NoError(t, g.Store(t.Context(), "r", waiting))
	id := git(t, dir, "rev-parse", "refs/durable/runs/r")
	require.NoError(t, os.Remove(dir+"/objects/"+id[:2]+"/"+id[2:]))
	_, err := g.Get(t.Context(), "r")
	require.ErrorIs(t, err, archive.ErrUnreadable)
	require.NotErrorIs(t, err, archive.ErrNotFound)
	_, err = g.Trace(t.Context(), "r")
	require.ErrorIs(t, err, archive.ErrUnreadable)
	_, err = g.Get(t.Context(), "other")
	require.ErrorIs(t, err, archive.ErrNotFound)
	require.NoError(t, g.Store(t.Context(), "r", completed), "the next write mends it")
	e, err := g.Get(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, completed, e.File)
}
