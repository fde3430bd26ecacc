//go:build cgo

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// files are the database file and its WAL as they were opened. If one of them
// is moved, deleted or replaced, the store goes on writing to a file that will
// never be found again, and every commit still succeeds.
type files struct {
	mu   sync.Mutex
	path string      // empty: a database in memory
	main fs.FileInfo // nil: not known
	wal  fs.FileInfo // nil: not known yet
	lost error       // what look found; it is permanent
}

// opened records the files. A new connection of the writer may create a new
// WAL, so the files are then recorded again.
func (f *files) opened(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path = path
	if f.main == nil {
		f.main, _ = os.Stat(path)
	}
	f.wal, _ = os.Stat(path + "-wal")
}

// look compares the current files with those that were opened.
func (f *files) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil || f.path == "" || f.main == nil {
		return f.lost
	}
	f.lost = taken(f.path, f.main)
	if f.wal == nil {
		f.wal, _ = os.Stat(f.path + "-wal")
	} else if f.lost == nil {
		f.lost = taken(f.path+"-wal", f.wal)
	}
	return f.lost
}

// gone returns what look has found.
func (f *files) gone() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

func taken(path string, opened fs.FileInfo) error {
	const todo = "what is written now would be lost: put the files back, the database and its -wal together, and restart all programs that have it open"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("sqlite: %s was moved or deleted while it was open; %s", path, todo)
	case err == nil && !os.SameFile(info, opened):
		return fmt.Errorf("sqlite: %s was replaced by another file while it was open; %s", path, todo)
	}
	return nil // a file that cannot be examined proves nothing
}
