//go:build cgo

package sqlite_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// heard waits for a notice that satisfies want, and returns how long that took.
func heard(t *testing.T, from <-chan store.Notice, want func(store.Notice) bool, what string) time.Duration {
	t.Helper()
	began, late := time.Now(), time.After(10*time.Second)
	for {
		select {
		case n := <-from:
			if want(n) {
				return time.Since(began)
			}
		case <-late:
			require.Fail(t, "no notice: "+what)
		}
	}
}

func lookAtAll(n store.Notice) bool { return len(n.RunIDs) == 0 && !n.Requests }

func names(id string) func(store.Notice) bool {
	return func(n store.Notice) bool { return len(n.RunIDs) == 1 && n.RunIDs[0] == id }
}

// Where the kernel tells of changes, Options.Watch does not matter: notices come, however long the
// pause is between two polls. (That nothing polls then is for TestALookoutLooksWhenTheKernelTells.)
func TestTheKernelWakesAListener(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the files may be polled")
	}
	noLeak(t)
	path := file(t)
	a, b := open(t, path, sqlite.Options{Watch: time.Hour}), open(t, path, sqlite.Options{Watch: time.Hour})
	others := listen(t, b)
	heard(t, others, lookAtAll, "the first")
	for i := range 20 {
		id := fmt.Sprint("r", i)
		start(t, a, id)
		heard(t, others, names(id), "a run of another handle")
	}
}

// A file of notices that is deleted, renamed or truncated while processes use it loses at most
// the notices that were in it: whoever listens looks at lookAtAll, and hears again of what
// comes later.
func TestTheFileOfNoticesMayDisappear(t *testing.T) {
	path := file(t)
	notices := path + ".executors/notices"
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	others := listen(t, b)
	heard(t, others, lookAtAll, "the first")
	start(t, a, "before")
	heard(t, others, names("before"), "a run before")
	n := 0
	for what, do := range map[string]func() error{
		"deleted":            func() error { return os.Remove(notices) },
		"renamed":            func() error { return os.Rename(notices, notices+".old") },
		"truncated":          func() error { return os.Truncate(notices, 0) },
		"deleted and remade": func() error { return os.WriteFile(notices+".new", nil, 0o600) },
	} {
		require.NoError(t, do())
		if what == "deleted and remade" {
			require.NoError(t, os.Rename(notices+".new", notices))
		}
		// Whoever appends looks at the name once a second.
		require.Eventually(t, func() bool {
			n++
			id := fmt.Sprint(what, n)
			start(t, a, id)
			for end := time.After(50 * time.Millisecond); ; {
				select {
				case got := <-others:
					if names(id)(got) {
						return true
					}
				case <-end:
					return false
				}
			}
		}, 20*time.Second, time.Millisecond, what)
	}
}

// A version before this one appends bytes without meaning.
func TestNoticesOfAnEarlierVersionAreHeard(t *testing.T) {
	path := file(t)
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	others := listen(t, b)
	heard(t, others, lookAtAll, "the first")
	old, err := os.OpenFile(path+".executors/notices", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer old.Close()
	for i := range 3 {
		_, err = old.WriteString(".")
		require.NoError(t, err)
		heard(t, others, lookAtAll, "a notice of an earlier version")
		id := fmt.Sprint("r", i)
		start(t, a, id)
		heard(t, others, func(n store.Notice) bool { return names(id)(n) || lookAtAll(n) }, "a notice behind it")
	}
}

// The file does not grow without bound, and nobody who reads it meanwhile misses that.
func TestTheFileOfNoticesStartsAgain(t *testing.T) {
	path := file(t)
	o := sqlite.Options{Synchronous: sqlite.Off}
	a, b := open(t, path, o), open(t, path, o)
	others := listen(t, b)
	heard(t, others, lookAtAll, "the first")
	notices := path + ".executors/notices"
	require.NoError(t, os.Truncate(notices, 5<<20))
	for i := range 300 {
		start(t, a, fmt.Sprint("r", i))
	}
	info, err := os.Stat(notices)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20))
	start(t, a, "last")
	heard(t, others, func(n store.Notice) bool {
		if lookAtAll(n) {
			return true
		}
		for _, id := range n.RunIDs {
			if id == "last" {
				return true
			}
		}
		return false
	}, "the last run")
}

// Opening, listening and closing leaves no descriptor behind.
func TestListenersLeaveNoDescriptors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the descriptors of a process are listed on Linux")
	}
	noLeak(t)
	path := file(t)
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(list)
	}
	once := func(i int) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			st := open(t, path, sqlite.Options{})
			from := listen(t, st)
			heard(t, from, lookAtAll, "the first")
			beat(t, st, executor("e"))
		})
	}
	once(0)
	before := count()
	for i := range 10 {
		once(i + 1)
	}
	require.LessOrEqual(t, count(), before)
}

// A line of a process that could not be written as a whole, for lack of room on the disk, stands before
// the next one of somebody else: that one is not taken for the process's own.
func TestANoticeBehindHalfALineIsHeard(t *testing.T) {
	for _, half := range []string{"", " ", " hal"} {
		t.Run(half, func(t *testing.T) { behindHalfALine(t, half) })
	}
}

func behindHalfALine(t *testing.T, half string) {
	noLeak(t)
	path := file(t)
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	mine := listen(t, a)
	heard(t, mine, lookAtAll, "the first")
	start(t, a, "mine")
	f, err := os.OpenFile(path+".executors/notices", os.O_RDWR|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	line := make([]byte, 10) // its handle, a dot and a number
	_, err = f.ReadAt(line, 0)
	require.NoError(t, err)
	heard(t, mine, names("mine"), "its own run")
	_, err = f.WriteString(string(line) + half)
	require.NoError(t, err)
	start(t, b, "theirs")
	heard(t, mine, func(n store.Notice) bool { return lookAtAll(n) || names("theirs")(n) }, "a run of another handle")
}
