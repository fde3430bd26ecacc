//go:build cgo

package sqlite

import (
	"database/sql/driver"
	"fmt"
	"os"
	"time"
)

// SQLite folds the WAL into the file by itself after some pages, but only what
// no reader may still need, and begins the WAL anew only when everything is
// folded in and nobody reads it. Readers that overlap never leave such a moment
// while somebody writes, and the WAL grows without end. So when it is large, the
// writer stops for as long as the reads take that are under way: those that
// begin meanwhile see its end and are in nobody's way.
const (
	walLook  = 32       // writes between two looks at its size
	walLarge = 16 << 20 // bytes
	// walWait is how long a commit waits for readers when the WAL is large; twice as
	// long for each walStep more, but never longer than walMost: a lease must not
	// run out meanwhile.
	walWait = 250 * time.Millisecond
	walStep = 4 << 20
	walMost = time.Second
	// walPause is how long it lets be after it has waited in vain; longer after
	// walTries in a row, for then somebody reads who does not end, and waiting for
	// him does no good.
	walPause = 100 * time.Millisecond
	walTries = 5
	walRest  = 30 * time.Second
	// careWait is how long Maintain waits.
	careWait = 5 * time.Second
)

// wal is what the holder of the writer knows of the WAL.
type wal struct {
	writes int
	vain   int       // waits for readers since the last that was of use
	again  time.Time // not before
}

// wait returns how long to wait for the readers of a WAL of size bytes.
func (w *wal) wait(size int64) time.Duration {
	return min(walWait<<min((size-walLarge)/walStep, 10), walMost)
}

// pause returns for how long not to wait again, after the last wait was in vain.
func (w *wal) pause() time.Duration {
	return min(walPause<<min(max(w.vain-walTries, 0), 10), walRest)
}

// size returns the size of the WAL; 0: there is none.
func (s *Store) walSize() int64 {
	info, err := os.Stat(s.file + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// tend begins the WAL anew if it is large. The caller holds the writer.
func (s *Store) tend(c *conn) {
	w := &s.wal
	if w.writes++; w.writes < walLook || s.memory || c.raw == nil || !c.raw.AutoCommit() {
		return
	}
	w.writes = 0
	size := s.walSize()
	if size < walLarge || time.Now().Before(w.again) {
		return
	}
	if done, err := c.foldIn(w.wait(size)); err == nil && done {
		w.vain = 0
		return
	}
	// Nothing is lost: it is tried again, and Maintain says so.
	w.vain++
	w.again = time.Now().Add(w.pause())
}

// foldIn folds the WAL into the file and cuts it, and waits for readers who are
// in the way.
func (c *conn) foldIn(wait time.Duration) (done bool, err error) {
	if err := c.ask(fmt.Sprintf("PRAGMA busy_timeout = %d", wait.Milliseconds()), nil); err != nil {
		return false, err
	}
	err = c.ask("PRAGMA wal_checkpoint(TRUNCATE)", func(row []driver.Value) {
		busy, _ := row[0].(int64)
		done = busy == 0
	})
	// Elsewhere nobody waits within SQLite, which does not look at contexts.
	if e := c.ask("PRAGMA busy_timeout = 0", nil); err == nil {
		err = e
	}
	return done && err == nil, err
}
