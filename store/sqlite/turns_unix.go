//go:build cgo && (linux || darwin)

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// turnsWork: a process can wait for a lock on a file.
const turnsWork = true

// lock waits for the lock on f.
func lock(f *os.File) bool { return flockFile(f, unix.LOCK_EX) }

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
