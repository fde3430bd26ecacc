//go:build cgo

package sqlite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gofrs/flock"
)

// presenceGone is the mark of an executor whose lock was found free.
const presenceGone = "gone"

// presence holds a lock on a file for each executor that beats through this
// handle, and tells whether others still hold theirs. The operating system
// frees a lock when the process ends, however it ends.
//
// It is believed only between handles that see the same boot of the same
// kernel, through a file system on a local disk: elsewhere a lock may be seen
// by nobody, or survive its holder. A file that is missing says nothing: it may
// be hidden by another mount. And it never makes a lease longer.
type presence struct {
	dir  string
	boot string // empty: not available

	mu    sync.Mutex
	locks map[string]*flock.Flock // by executor
}

func newPresence(file string, off bool) *presence {
	p := &presence{dir: sideDir(file), locks: make(map[string]*flock.Flock)}
	if !off && localDisk(filepath.Dir(file)) {
		p.boot = bootID()
	}
	return p
}

// PresenceKind implements store.Presence.
func (s *Store) PresenceKind() string {
	if s.presence.boot == "" {
		return ""
	}
	return "file lock"
}

// path of an executor's file. Ids are the caller's choice, so they do not
// become file names.
func (p *presence) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(p.dir, hex.EncodeToString(sum[:16])+".lock")
}

// hold takes the lock of an executor and returns the mark for its row; empty
// when it could not be had, so that its lease alone counts.
func (p *presence) hold(id string) string {
	if p.boot == "" {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locks[id] != nil {
		return p.boot
	}
	if err := os.Mkdir(p.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return ""
	}
	l := flock.New(p.path(id), flock.SetPermissions(0o600))
	if ok, err := l.TryLock(); !ok || err != nil {
		_ = l.Close()
		return ""
	}
	p.locks[id] = l
	return p.boot
}

// gone reports that the executor with this mark in its row has no process.
func (p *presence) gone(id, mark string) bool {
	if mark == presenceGone {
		return true
	}
	if p.boot == "" || mark != p.boot {
		return false
	}
	p.mu.Lock()
	held := p.locks[id] != nil
	p.mu.Unlock()
	if held {
		return false
	}
	// Shared, so that two who test do not take each other for the owner.
	l := flock.New(p.path(id), flock.SetFlag(os.O_RDONLY))
	free, err := l.TryRLock()
	_ = l.Close()
	return free && err == nil
}

// exists reports that another handle holds the lock of the executor with this
// mark in its row: its process is there.
func (p *presence) exists(id, mark string) bool {
	if p.boot == "" || mark != p.boot {
		return false
	}
	p.mu.Lock()
	own := p.locks[id] != nil
	p.mu.Unlock()
	if own {
		return false
	}
	l := flock.New(p.path(id), flock.SetFlag(os.O_RDONLY))
	free, err := l.TryRLock()
	_ = l.Close()
	return !free && err == nil
}

// remove deletes the file of an executor that is marked as gone.
func (p *presence) remove(id string) { _ = os.Remove(p.path(id)) }

// release gives an executor's lock up and deletes its file.
func (p *presence) release(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.locks[id]; l != nil {
		delete(p.locks, id)
		_ = l.Close()
		p.remove(id)
	}
}

func (p *presence) held() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]string, 0, len(p.locks))
	for id := range p.locks {
		ids = append(ids, id)
	}
	return ids
}

// close gives up all locks, and deletes the files of executors that are marked.
func (p *presence) close(marked []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for id, l := range p.locks {
		errs = append(errs, l.Close())
		if slices.Contains(marked, id) {
			p.remove(id)
		}
	}
	clear(p.locks)
	return errors.Join(errs...)
}
