//go:build cgo

package sqlite

import (
	"database/sql/driver"
	"fmt"
	"os"
	"time"
)

// SQLite checkpoints the WAL on its own after some pages, but only what no reader
// may still need, and restarts the WAL only when everything is checkpointed and no
// reader uses it. Overlapping readers never leave such a moment under constant
// writes, and the WAL grows without bound. So when it is large, the writer pauses
// until the current reads have finished: reads that begin meanwhile start at the end
// of the WAL and block nothing.
const (
	walLook  = 32       // writes between two checks of its size
	walLarge = 16 << 20 // bytes
	// walWait is how long a commit waits for readers when the WAL is large; twice as
	// long for each further walStep, but never longer than walMost, because a lease
	// must not expire meanwhile.
	walWait = 250 * time.Millisecond
	walStep = 4 << 20
	walMost = time.Second
	// walPause is the pause after a wait in vain, unless the WAL has grown by walStep before
	// it is over. After walTries such waits in a row the pause is longer, however much is
	// written, because then a reader does not finish, and waiting for it is pointless.
	walPause = 100 * time.Millisecond
	walTries = 5
	walRest  = 30 * time.Second
	// careWait is how long Maintain waits.
	careWait = 5 * time.Second
)

// wal is what the holder of the writer knows of the WAL.
type wal struct {
	writes int
	vain   int       // waits for readers since the last one that succeeded
	tried  int64     // size at the last of them
	again  time.Time // not before
}

// rests reports whether a WAL of this size is left alone for now.
func (w *wal) rests(size int64) bool {
	if size < walLarge {
		return true
	}
	quick := w.vain > 0 && w.vain < walTries && size >= w.tried+walStep
	return !quick && time.Now().Before(w.again)
}

// wait returns how long to wait for the readers of a WAL of size bytes.
func (w *wal) wait(size int64) time.Duration {
	return min(walWait<<min((size-walLarge)/walStep, 10), walMost)
}

// pause returns how long to hold off before the next wait, after one in vain.
func (w *wal) pause() time.Duration {
	return min(walPause<<min(max(w.vain-walTries, 0), 10), walRest)
}

// walSize returns the size of the WAL; 0: there is none.
func (s *Store) walSize() int64 {
	info, err := os.Stat(s.file + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// tend restarts the WAL if it is large. The caller holds the writer.
func (s *Store) tend(c *conn) {
	w := &s.wal
	if w.writes++; w.writes < walLook || s.memory || c.raw == nil || !c.raw.AutoCommit() {
		return
	}
	w.writes = 0
	size := s.walSize()
	if w.rests(size) {
		return
	}
	if done, err := c.foldIn(w.wait(size)); err == nil && done {
		w.vain = 0
		return
	}
	// Nothing is lost: a later write tries again, and Maintain reports the failure.
	w.vain, w.tried = w.vain+1, size
	w.again = time.Now().Add(w.pause())
}

// foldIn checkpoints the WAL into the file and truncates it, waiting for readers
// that are in the way.
func (c *conn) foldIn(wait time.Duration) (done bool, err error) {
	if err := c.ask(fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds()), nil); err != nil {
		return false, err
	}
	err = c.ask("PRAGMA wal_checkpoint(TRUNCATE)", func(row []driver.Value) {
		busy, _ := row[0].(int64)
		done = busy == 0
	})
	// Nothing else waits inside SQLite, which ignores contexts.
	if e := c.ask("PRAGMA busy_timeout = 0", nil); err == nil {
		err = e
	}
	return done && err == nil, err
}
