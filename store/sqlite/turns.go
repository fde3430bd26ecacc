//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Several processes that write to one file take turns. SQLite itself has no queue: whoever
// finds the file locked sleeps and tries again, so a process that writes all the time gets
// the lock again and again before those that sleep.
//
// A handle that has met another writer, or finds that one takes turns, takes, before each write, a lock on one file (next) and
// then on another (turn), lets the first go, writes, and lets the second go. Whoever has
// just written finds the next one waiting at the door and stands behind it, so the two alternate;
// among those that wait for the door the kernel chooses. It frees the locks of a
// process however that ends, and wakes who waits at once.
//
// The turns only order the writers: SQLite's own lock keeps them apart. So a handle that does not get
// its turn in turnMost, because a process that was stopped has it, or because somebody writes for
// long, tries as if there were no turns, until the locks are free again.
type turns struct {
	path string // of the files, without their endings; empty: there are no turns

	// Used by the holder of the writer.
	until  time.Time // there were other writers not long ago
	writes int       // without turns

	mu         sync.Mutex
	next, turn *os.File
	held       bool          // this handle has the turn
	wanted     bool          // the holder of the writer wants it
	pending    chan struct{} // closed when the goroutine that waits for the turn ends; nil: there is none
	late       bool          // it waits for longer than turnMost
	closed     bool
}

const (
	// turnMost is how long a handle waits for its turn.
	turnMost = 50 * time.Millisecond
	// turnKeep is how long after it has met another writer a handle takes turns.
	turnKeep = time.Second
	// turnLook is how many writes a handle without turns makes between two looks at whether
	// another one takes them. It may never find the file locked, because it always comes first.
	turnLook = 8
)

func (q *turns) init(file string, alone bool) {
	if !alone && turnsWork && localDisk(filepath.Dir(file)) {
		q.path = filepath.Join(sideDir(file), "writers")
	}
}

// met notes that another process writes.
func (q *turns) met() { q.until = time.Now().Add(turnKeep) }

// take waits for the turn if there are other writers, for turnMost at most. The holder of the
// writer calls it, and give once it has written.
func (q *turns) take(ctx context.Context, closing <-chan struct{}) {
	if q.path == "" {
		return
	}
	if q.until.IsZero() || time.Now().After(q.until) {
		if q.writes++; q.writes%turnLook != 0 || !q.others() {
			return
		}
		q.met()
	}
	q.mu.Lock()
	if q.held || q.late || q.closed || !q.open(os.O_CREATE) {
		q.wanted = !q.closed
		q.mu.Unlock()
		return
	}
	q.wanted = true
	if q.pending == nil {
		front := tryLock(q.next)
		if front && tryLock(q.turn) {
			unlock(q.next)
			q.held = true
			q.mu.Unlock()
			return
		}
		q.pending = make(chan struct{})
		go q.wait(front, q.pending)
	}
	q.until = time.Now().Add(turnKeep)
	pending := q.pending
	q.mu.Unlock()
	t := time.NewTimer(turnMost)
	defer t.Stop()
	select {
	case <-pending:
	case <-t.C:
		q.mu.Lock()
		q.late = q.pending != nil
		q.mu.Unlock()
	case <-ctx.Done():
	case <-closing:
	}
}

// others reports whether another handle has the turn.
func (q *turns) others() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held || q.pending != nil || q.closed || !q.open(0) {
		return false
	}
	if tryLock(q.turn) {
		unlock(q.turn)
		return false
	}
	return true
}

// wait waits for the turn, and lets it go at once if nobody wants it any more. It runs on a
// goroutine of its own because nothing can interrupt it; front says that it is at the door.
func (q *turns) wait(front bool, ended chan<- struct{}) {
	if front || lock(q.next, q.ends) {
		front = lock(q.turn, q.ends)
		unlock(q.next)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending, q.late = nil, false
	if q.held = front && q.wanted; front && !q.held {
		unlock(q.turn)
	}
	if q.closed {
		q.release()
	}
	close(ended)
}

func (q *turns) ends() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// give lets the turn go.
func (q *turns) give() {
	if q.until.IsZero() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wanted = false
	if q.held {
		q.held = false
		unlock(q.turn)
	}
}

// open opens the files, with the mutex held. flags may be os.O_CREATE: the first handle that
// takes turns creates them.
func (q *turns) open(flags int) bool {
	if q.turn != nil {
		return true
	}
	if flags != 0 {
		if err := os.Mkdir(filepath.Dir(q.path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false
		}
	}
	var err error
	if q.next, err = os.OpenFile(q.path+".next", flags|os.O_RDWR, 0o600); err != nil {
		return false
	}
	if q.turn, err = os.OpenFile(q.path+".turn", flags|os.O_RDWR, 0o600); err != nil {
		_ = q.next.Close()
		q.turn = nil
		return false
	}
	return true
}

// release closes the files, which frees their locks, with the mutex held.
func (q *turns) release() {
	if q.turn != nil {
		_, _ = q.next.Close(), q.turn.Close() // nothing was written
		q.turn = nil
	}
}

// close ends the use of the turns. The holder of the writer calls it. If a process that was stopped has the
// turn, the goroutine that waits for it ends when that process goes on or ends.
func (q *turns) close() {
	q.mu.Lock()
	q.closed, q.wanted = true, false
	pending := q.pending
	if pending == nil {
		q.release()
	}
	q.mu.Unlock()
	if pending == nil {
		return
	}
	t := time.NewTimer(turnMost)
	defer t.Stop()
	select {
	case <-pending:
	case <-t.C:
	}
}
