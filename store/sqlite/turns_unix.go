//go:build cgo && (linux || darwin)

package sqlite

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// turnsWork: a process can wait for a lock on a file.
const turnsWork = true

// lock waits for the lock on f. In a bubble of testing/synctest it asks again and again until
// it is to give up: the time of a bubble stands still while one of its goroutines waits in the kernel, and
// whoever has the lock may be waiting for a time.
func lock(f *os.File, giveUp func() bool) bool {
	if !inBubble() {
		return flockFile(f, unix.LOCK_EX)
	}
	for !tryLock(f) {
		if giveUp() {
			return false
		}
		time.Sleep(busyFirst)
	}
	return true
}

// inBubble reports whether the calling goroutine belongs to a bubble of testing/synctest. Only
// the heading of its stack says so.
func inBubble() bool {
	var heading [64]byte
	n := runtime.Stack(heading[:], false)
	return bytes.Contains(heading[:n], []byte("synctest bubble"))
}

// tryLock takes the lock on f if it is free.
func tryLock(f *os.File) bool { return flockFile(f, unix.LOCK_EX|unix.LOCK_NB) }

func unlock(f *os.File) { flockFile(f, unix.LOCK_UN) }

func flockFile(f *os.File, how int) bool {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
