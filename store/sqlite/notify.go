//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

// How processes notify each other: a process that committed something others
// may wait for appends one byte to a file, and a process that waits polls the
// size of that file, which takes no statement. Every notice is one byte, so a
// handle knows how much of the growth is its own.
//
// Why not the WAL itself: it changes with every checkpoint of every step,
// including those of the handle's own writer. Once the WAL is recycled, its
// size says nothing and its modification time is only as fine as the kernel's
// tick, so a change right after a look is missed.

// listeners are the Notify calls of one handle.
type listeners struct {
	path string // of the file of notices; empty: no notices to or from other processes

	own atomic.Int64 // notices this handle has appended, or is about to

	mu   sync.Mutex
	set  map[*listener]struct{}
	file *os.File // for appending; nil until a process listens
}

// listener collects notices for one Notify call. Its fields are under
// listeners.mu.
type listener struct {
	wake chan struct{} // holds one token while there is something to report
	ids  []string
	all  bool
}

const (
	// maxNotice bounds what is kept for a slow listener; beyond it, the notice
	// says to look at everything.
	maxNotice = 1024
	// noticesMost is the size at which the file of notices is truncated and
	// starts again.
	noticesMost = 64 << 10
	// watchFirst is the pause after something happened; it doubles from there.
	watchFirst = 2 * time.Millisecond
)

func (l *listeners) init(file string, alone bool) {
	l.set = make(map[*listener]struct{})
	if !alone {
		l.path = filepath.Join(sideDir(file), "notices")
	}
}

// sideDir is the directory beside a database file.
func sideDir(file string) string { return file + ".executors" }

// tell notifies all listeners that they should look at these runs.
func (s *Store) tell(ids []string) {
	if len(ids) > 0 {
		s.listeners.notice(ids)
		s.listeners.append()
	}
}

// tellAll notifies all listeners that they should look at all runs.
func (s *Store) tellAll() {
	s.listeners.notice(nil)
	s.listeners.append()
}

func (l *listeners) notice(ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.set {
		n.add(ids)
	}
}

func (n *listener) add(ids []string) {
	n.ids = append(n.ids, ids...)
	if len(ids) == 0 || len(n.ids) > maxNotice {
		n.all, n.ids = true, nil
	}
	nudge.Send(n.wake)
}

// append writes a notice for other processes. A failure only delays them until
// their next beat.
func (l *listeners) append() {
	if l.path == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		// A listener creates the file: as long as it does not exist, no process
		// listens.
		f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return
		}
		l.file = f
	}
	if l.own.Add(1)%4096 == 0 {
		if info, err := l.file.Stat(); err == nil && info.Size() > noticesMost {
			_ = l.file.Truncate(0)
		}
	}
	_, _ = l.file.Write([]byte{'.'})
}

func (l *listeners) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Notify implements store.Notifier. It reports what this handle commits at
// once. What other handles and processes commit it finds within Options.Watch,
// and reports without the ids of runs. It starts no goroutine.
func (s *Store) Notify(ctx context.Context, fn func(store.Notice)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	l := &s.listeners
	n := &listener{wake: make(chan struct{}, 1)}
	l.mu.Lock()
	l.set[n] = struct{}{}
	l.mu.Unlock()
	w := l.watch()
	l.mu.Lock()
	n.add(nil) // earlier changes were missed
	l.mu.Unlock()
	s.leave()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.set, n)
	}()
	defer w.close()
	return s.listen(ctx, n, w, fn)
}

func (s *Store) listen(ctx context.Context, n *listener, w *watch, fn func(store.Notice)) error {
	pause := watchFirst
	var requests requestWatch
	timer := time.NewTimer(pause)
	defer timer.Stop()
	if w == nil {
		timer.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return store.ErrClosed
		case <-timer.C:
			if w.changed() {
				pause = watchFirst
				fn(store.Notice{})
			} else {
				pause = min(2*pause, s.opts.Watch)
			}
			if requests.changed(s) {
				if waiting, err := s.requestsWait(ctx, 0); err == nil && waiting {
					fn(store.Notice{Requests: true})
				}
			}
			timer.Reset(pause)
		case <-n.wake:
			fn(s.listeners.collect(n))
		}
	}
}

func (l *listeners) collect(n *listener) store.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	notice := store.Notice{RunIDs: n.ids}
	if n.all {
		notice.RunIDs = nil
	}
	n.ids, n.all = nil, false
	return notice
}

// watch looks for notices that others appended.
type watch struct {
	l    *listeners
	file *os.File
	size int64 // at the last look
	own  int64 // of listeners.own, at the last look
}

// watch returns nil where there is nothing to watch.
func (l *listeners) watch() *watch {
	if l.path == "" {
		return nil
	}
	if err := os.Mkdir(filepath.Dir(l.path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return nil
	}
	w := &watch{l: l, file: f}
	w.changed()
	return w
}

func (w *watch) close() {
	if w != nil {
		_ = w.file.Close() // only read
	}
}

// changed reports whether another handle has appended since the last look.
func (w *watch) changed() bool {
	before := w.l.own.Load()
	info, err := w.file.Stat()
	if err != nil || w.l.own.Load() != before {
		return false // in the middle of a notice of our own: look again later
	}
	grown, mine := info.Size()-w.size, before-w.own
	w.size, w.own = info.Size(), before
	return grown != mine
}
