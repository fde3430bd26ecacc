//go:build cgo && linux

package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// busily has n handles write at the same time until all of them together have made so many commits,
// and returns after which part of the last half another handle came next.
func busily(t *testing.T, path string, n int, total int64) (changes float64) {
	t.Helper()
	var all, last, changed, counted atomic.Int64
	var writers sync.WaitGroup
	for i := range n {
		st := open(t, path, sqlite.Options{})
		l := start(t, st, fmt.Sprint("r", i))
		writers.Go(func() {
			for {
				commit(t, st, l.plain(1))
				switch n := all.Add(1); {
				case n > total:
					return
				case n > total/2: // they have met by then
					counted.Add(1)
					if last.Swap(int64(i)) != int64(i) {
						changed.Add(1)
					}
				}
			}
		})
	}
	writers.Wait()
	return float64(changed.Load()) / float64(counted.Load())
}

// onDisk returns the path of a file that is on a disk, also if temporary files are in memory: a
// commit in memory is shorter than it takes to wake who is next.
func onDisk(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "holdfast-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir + "/app.db"
}

// Without turns, the handle that has just written gets the lock again and again: another one comes next
// after one commit in a hundred.
func TestWritersTakeTurns(t *testing.T) {
	noLeak(t)
	changes := busily(t, onDisk(t), 3, 2000)
	t.Logf("another handle came next after %.3f of the commits", changes)
	require.Greater(t, changes, 0.25)
}

// locked takes the lock on one of the files of the turns, as a process does that is stopped in
// that moment.
func locked(t *testing.T, path, which string) (free func()) {
	t.Helper()
	f, err := os.OpenFile(path+".executors/writers."+which, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	return sync.OnceFunc(func() { require.NoError(t, f.Close()) })
}

// together calls both 200 times, at the same time.
func together(one, other func()) {
	var both sync.WaitGroup
	both.Go(func() {
		for range 200 {
			one()
		}
	})
	for range 200 {
		other()
	}
	both.Wait()
}

// untilMet waits until two that write to a file have found each other writing: their turns are
// kept from then on.
func untilMet(t *testing.T, path string, meet func()) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; {
		meet()
		if _, err := os.Stat(path + ".executors/writers.turn"); err == nil {
			return
		}
		require.True(t, time.Now().Before(until), "they never met")
	}
}

// Whoever has the turn, or is at the door, and does not go on holds the others up once, by the
// time that they wait for a turn, and not for every write.
func TestAWriterThatIsStoppedHoldsTheOthersUpOnce(t *testing.T) {
	noLeak(t)
	for _, which := range []string{"turn", "next"} {
		path := file(t)
		a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
		la, lb := start(t, a, "a"), start(t, b, "b")
		meet := func() {
			together(func() { commit(t, a, la.plain(1)) }, func() { commit(t, b, lb.plain(1)) })
		}
		untilMet(t, path, meet)
		free := locked(t, path, which)
		began := time.Now()
		const writes = 400
		for range writes {
			commit(t, a, la.plain(1))
		}
		require.Less(t, time.Since(began), writes*20*time.Millisecond, "%s: 50 ms for each would be 20 s", which)
		free()
		meet()
	}
}

// A handle is closed while somebody has the turn and does not go on: nothing is left once that
// one ends.
func TestClosingDoesNotWaitForATurn(t *testing.T) {
	noLeak(t)
	path := file(t)
	st, err := sqlite.Open(path)
	require.NoError(t, err)
	defer st.Close()
	other := open(t, path, sqlite.Options{})
	l, lo := start(t, st, "mine"), start(t, other, "other")
	meet := func() {
		together(func() { commit(t, st, l.plain(1)) }, func() { commit(t, other, lo.plain(1)) })
	}
	untilMet(t, path, meet)
	free := locked(t, path, "turn")
	defer free()
	meet()
	began := time.Now()
	require.NoError(t, st.Close())
	require.Less(t, time.Since(began), 5*time.Second)
}

// stopped reports whether a process is.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	rest := stat[bytes.LastIndexByte(stat, ')')+2:]
	return strings.HasPrefix(string(rest), "T")
}

// Real processes that write are stopped and killed, with and without the turn: the others go on.
// A process that is stopped within a transaction has SQLite's own lock, and holds up everybody until it
// goes on, with turns as without them.
func TestProcessesThatAreStoppedOrKilledDoNotKeepTheTurn(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	l := start(t, st, "mine")
	for round := range 6 {
		var writers []*child
		for k := range 2 {
			c := spawn(t, "write", path, fmt.Sprintf("w-%d-%d", round, k))
			require.True(t, c.lines.Scan(), "it begins to write")
			go c.rest()
			writers = append(writers, c)
		}
		for range 50 {
			commit(t, st, l.plain(1))
		}
		victim := writers[0].cmd.Process
		require.NoError(t, victim.Signal(syscall.SIGSTOP))
		require.Eventually(t, func() bool { return stopped(t, victim.Pid) }, time.Minute, time.Millisecond)
		written := make(chan struct{})
		go func() {
			defer close(written)
			for range 50 {
				commit(t, st, l.plain(1))
			}
		}()
		select {
		case <-written:
		case <-time.After(time.Second): // it was stopped within a transaction
		}
		if round%2 == 0 {
			require.NoError(t, victim.Signal(syscall.SIGCONT))
		}
		require.NoError(t, victim.Kill())
		select {
		case <-written:
		case <-time.After(20 * time.Second):
			require.Fail(t, "a process that was killed still holds up the others")
		}
		writers[1].kill(t)
		_ = writers[0].cmd.Wait() // tells of the kill
	}
	_, events := load(t, st, "mine")
	sound(t, "mine", events)
	require.Len(t, events, 1+6*100)
}
