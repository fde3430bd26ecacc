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
// handle, and checks whether other executors still hold theirs. The operating
// system frees a lock when the process ends, however it ends.
//
// Locks are trusted only between handles that see the same boot of the same
// kernel, through a file system on a local disk: elsewhere a lock may be
// invisible to others, or survive its holder. A missing file proves nothing,
// because another mount may hide it. A lock never extends a lease.
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

// path returns the path of an executor's file. The caller chooses ids, so they
// are not used as file names.
func (p *presence) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(p.dir, hex.EncodeToString(sum[:16])+".lock")
}

// hold takes the lock of an executor and returns the mark for its row. The mark
// is empty if the lock could not be taken, so that only the lease counts.
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
	// Shared, so that two processes that test the lock do not take each other
	// for the owner.
	l := flock.New(p.path(id), flock.SetFlag(os.O_RDONLY))
	free, err := l.TryRLock()
	_ = l.Close()
	return free && err == nil
}

// exists reports that another handle holds the lock of the executor with this
// mark in its row, so its process exists.
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

// release releases an executor's lock and deletes its file.
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

// close releases all locks and deletes the files of the marked executors.
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
