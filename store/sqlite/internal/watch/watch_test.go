package watch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/store/sqlite/internal/watch"
)

func touch(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString("x")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func told(t *testing.T, wake <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-wake:
	case <-time.After(time.Minute):
		require.Fail(t, "the kernel does not tell of "+what)
	}
}

// drained waits until the kernel has told of everything so far: of a change of another file, in order.
func drained(t *testing.T, dir string, wake <-chan struct{}) {
	t.Helper()
	path := filepath.Join(dir, "fence")
	touch(t, path)
	fence := make(chan struct{}, 1)
	f, err := watch.Open(path, fence)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	touch(t, path)
	told(t, fence, "the fence")
	select {
	case <-wake:
	default:
	}
}

func TestTheKernelTellsOfChangesWhileAFileIsArmed(t *testing.T) {
	goleak.VerifyNone(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	touch(t, path)
	one, two := make(chan struct{}, 1), make(chan struct{}, 1)
	a, err := watch.Open(path, one)
	require.NoError(t, err)
	b, err := watch.Open(path, two)
	require.NoError(t, err)
	touch(t, path)
	told(t, one, "a write")
	told(t, two, "a write, to the second")
	a.Disarm()
	touch(t, path)
	told(t, two, "a write while the other is not armed")
	drained(t, dir, two)
	require.Empty(t, one)
	require.NoError(t, a.Arm())
	now := time.Now()
	require.NoError(t, os.Chtimes(path, now, now))
	told(t, one, "new times")
	drained(t, dir, one)
	require.NoError(t, os.Remove(path))
	told(t, one, "its end")
	touch(t, path) // another file of that name
	a.Disarm()
	b.Disarm()
	require.NoError(t, a.Arm())
	drained(t, dir, one)
	touch(t, path)
	told(t, one, "a write to the new file")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, a.Arm(), os.ErrClosed)
	require.NoError(t, b.Close())
	goleak.VerifyNone(t) // the goroutines end with the last file
}

// A file was replaced by another of its name. Each of those who watch it arms anew, in turn, as two
// handles of one process do: then the kernel tells both of what happens to the new one.
func TestAFileThatWasReplacedIsWatchedByAllWhoArmAnew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	touch(t, path)
	one, two := make(chan struct{}, 1), make(chan struct{}, 1)
	a, err := watch.Open(path, one)
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	b, err := watch.Open(path, two)
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	for _, replace := range []func() error{
		func() error { return os.Remove(path) },
		func() error { return os.Rename(path, path+".old") },
	} {
		require.NoError(t, replace())
		told(t, one, "its end")
		touch(t, path)
		for _, f := range []*watch.File{a, b} {
			f.Disarm()
			require.NoError(t, f.Arm())
		}
		drained(t, dir, one)
		drained(t, dir, two)
		touch(t, path)
		told(t, one, "a write to the new file")
		told(t, two, "a write to the new file, to the second")
		drained(t, dir, one)
		drained(t, dir, two)
	}
}

// However many files and openings there are, the process has one instance of inotify, and none
// is left.
func TestAProcessHasOneInstanceOfTheKernelsMechanism(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the descriptors of a process are listed on Linux")
	}
	dir := t.TempDir()
	descriptors := func() (all, instances int) {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, e := range list {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == "anon_inode:inotify" {
				instances++
			}
		}
		return len(list), instances
	}
	before, _ := descriptors()
	for round := range 3 {
		var files []*watch.File
		for i := range 20 {
			path := filepath.Join(dir, fmt.Sprint(i))
			touch(t, path)
			f, err := watch.Open(path, make(chan struct{}, 1))
			require.NoError(t, err)
			files = append(files, f)
		}
		_, instances := descriptors()
		require.Equal(t, 1, instances, "round %d", round)
		for _, f := range files {
			require.NoError(t, f.Close())
		}
	}
	after, instances := descriptors()
	require.Zero(t, instances)
	require.LessOrEqual(t, after, before+1, "the poller of the runtime may have come")
}

func TestAFileThatDoesNotExistIsNotWatched(t *testing.T) {
	_, err := watch.Open(filepath.Join(t.TempDir(), "no", "file"), make(chan struct{}, 1))
	require.ErrorIs(t, err, os.ErrNotExist)
	goleak.VerifyNone(t)
}
