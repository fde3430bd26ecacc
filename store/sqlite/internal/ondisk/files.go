// Package ondisk watches over the files of a database: whether they may be written, and whether
// they are still those that were opened.
package ondisk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// How SQLite opens a file, as a parameter of its URI.
const (
	Write = "mode=rw"
	// read needs the WAL and its index, and makes them if need be.
	read = "mode=ro&readonly_shm=1"
	// still makes nothing and takes no locks, which is right as long as nobody writes.
	still = "mode=ro&immutable=1"
)

// Read returns how to open a file that is only read, and may lie where nothing can be written.
func Read(path string) string {
	wal, err := os.Stat(path + "-wal")
	_, index := os.Stat(path + "-shm")
	_, journal := os.Stat(path + "-journal")
	if err == nil && (wal.Size() > 0 || index == nil) || journal == nil {
		return read
	}
	return still // no program has it open, and all of it is in the one file
}

// Writable returns an error that matches store.ErrReadOnly unless this process may write a file, and
// what SQLite has beside it. A file that does not exist may be made.
func Writable(path string) error {
	if refused(path) {
		return fmt.Errorf("the file %w: this user may not write it, or it lies on a disk that is mounted read-only", store.ErrReadOnly)
	}
	for _, beside := range []string{path + "-wal", path + "-shm"} {
		if _, err := os.Stat(beside); errors.Is(err, fs.ErrNotExist) {
			beside = filepath.Dir(path)
		}
		if refused(beside) {
			return fmt.Errorf("the file %w: this user may not write %s", store.ErrReadOnly, beside)
		}
	}
	return nil
}

// Files are the database file and its WAL as they were opened. If one of them
// is moved, deleted or replaced, the store goes on writing to a file that will
// never be found again, and every commit still succeeds.
type Files struct {
	mu     sync.Mutex
	access string
	path   string      // empty: a database in memory
	main   fs.FileInfo // nil: not known
	wal    fs.FileInfo // nil: not known yet
	lost   error       // what Look found; it is permanent
}

// Access returns how connections open the file.
func (f *Files) Access() string { return cmp.Or(f.access, Write) }

// Reading says that the file is only read. It comes before all connections.
func (f *Files) Reading(path string) { f.access = Read(path) }

// Opened records the files. A new connection of the writer may create a new
// WAL, so the files are then recorded again.
func (f *Files) Opened(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path = path
	if f.main == nil {
		f.main, _ = os.Stat(path)
	}
	f.wal, _ = os.Stat(path + "-wal")
}

// Look compares the current files with those that were opened.
func (f *Files) Look() error {
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

// Gone returns what Look has found. Of a file that is read without locks it also says if somebody
// writes to it: then what was read may be torn.
func (f *Files) Gone() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil && f.access == still && f.main != nil {
		now, err := os.Stat(f.path)
		if err != nil || now.Size() != f.main.Size() || !now.ModTime().Equal(f.main.ModTime()) || !os.SameFile(now, f.main) || Read(f.path) != still {
			f.lost = fmt.Errorf("sqlite: %s: a program has begun to write to it while it was looked at: look again", f.path)
		}
	}
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
