//go:build cgo

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// files are the database file and its WAL as they were opened. Whoever moves,
// deletes or replaces one of them leaves a store that goes on writing to what
// nobody will find again, and whose every commit succeeds.
type files struct {
	mu   sync.Mutex
	path string      // empty: a database in memory
	main fs.FileInfo // nil: not known
	wal  fs.FileInfo // nil: not known yet
	lost error       // what was found; it stays
}

// opened notes the files. The WAL may be made anew when the writer's connection
// is, so it is noted then again.
func (f *files) opened(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path = path
	if f.main == nil {
		f.main, _ = os.Stat(path)
	}
	f.wal, _ = os.Stat(path + "-wal")
}

// look compares the files with those that were opened.
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
	return nil // what cannot be looked at says nothing
}
