package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Dir is an archive in a directory: a JSON file for each run, named after its id
// (see Git for the bytes that become %XX):
//
//	{"run": {…}, "trace": […], "file": "…"}
//
// with what Run holds, the events, and the run exactly as it was exported, so
// that `jq .run order-42.json` shows a run. A file is replaced as a whole, and
// is on disk when Store returns. Nothing outside the directory is ever read or
// written, whatever an id or a symbolic link says. All methods may be called
// concurrently, by many processes: the file .lock in the directory is locked
// while a copy is compared and replaced.
type Dir struct {
	root *os.Root
	path string     // absolute, of the directory
	mu   sync.Mutex // guards comparing and replacing files, within this process
}

// document is the content of a file. The run comes first, so that a listing need
// not read more.
type document struct {
	Run   Run     `json:"run"`
	Trace []Event `json:"trace"`
	File  string  `json:"file"`
}

const (
	suffix = ".json"
	// lockName is the file that a writing process locks. No name of a run begins
	// with a dot.
	lockName = ".lock"
	// temporary is the prefix of files that are being written.
	temporary = ".tmp-"
	// staleTemporary is the age at which such a file must belong to a killed process.
	staleTemporary = time.Hour
)

// OpenDir opens the archive in a directory, which it creates if necessary. Close
// frees what it holds. Errors match ErrUnavailable.
func OpenDir(dir string) (*Dir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return &Dir{root: root, path: abs}, nil
}

// Close frees the directory. Later calls return ErrUnavailable.
func (d *Dir) Close() error { return d.root.Close() }

// StoreWord returns what log lines of the engine call the archive.
func (d *Dir) StoreWord() string { return "directory-store" }

// Store implements Archive.
func (d *Dir) Store(ctx context.Context, runID string, file []byte) error {
	name, err := nameOf(runID)
	if err != nil {
		return err
	}
	ours, err := readEntry(runID, file)
	if err != nil {
		return err
	}
	data, err := marshal(&document{Run: ours.Run, Trace: ours.Trace, File: string(file)})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	unlock, err := d.lock(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer unlock()
	name += suffix
	have, err := d.entry(runID, name)
	switch {
	case err == nil && have.ID != runID:
		return &CollisionError{RunID: runID, Other: have.ID, Where: name}
	case err == nil:
		switch compare(have, ours) {
		case foreign:
			return &ReusedIDError{RunID: runID, Given: ours.CreatedAt, Held: have.CreatedAt, Where: name}
		case held:
			// Its writer may have been killed before its name was on disk.
			err = d.settle(name)
		default:
			err = d.replace(name, data)
		}
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrUnreadable):
		err = d.replace(name, data)
	default:
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// lock keeps other processes from writing until the returned function is called.
// The system releases it when the process ends, however it ends.
func (d *Dir) lock(ctx context.Context) (unlock func(), err error) {
	// Opened through the root, which refuses a link that leads out of the directory.
	f, err := d.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	l := flock.New(filepath.Join(d.path, lockName), flock.SetFlag(os.O_RDWR))
	if _, err := l.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, fmt.Errorf("locking %s: %w", lockName, err)
	}
	return func() { _ = l.Close() }, nil
}

// replace writes a temporary file and renames it over the file of that name. A
// crash leaves at most the temporary file.
func (d *Dir) replace(name string, data []byte) error {
	folder := path.Dir(name)
	if folder != "." {
		if err := d.root.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	beside := path.Join(folder, fmt.Sprintf("%s%d-%d", temporary, os.Getpid(), time.Now().UnixNano()))
	f, err := d.root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.root.Rename(beside, name)
	}
	if err != nil {
		_ = d.root.Remove(beside)
		return err
	}
	return d.settle(name)
}

// settle syncs the name of a file to disk, and those of the folders up to the
// directory itself, because each may be new.
func (d *Dir) settle(name string) error {
	for folder := path.Dir(name); ; folder = path.Dir(folder) {
		if err := d.sync(folder); err != nil || folder == "." {
			return err
		}
	}
}

func (d *Dir) sync(folder string) error {
	f, err := d.root.Open(folder)
	if err != nil {
		return err
	}
	err = f.Sync()
	_ = f.Close()
	return err
}

// List implements Archive.
func (d *Dir) List(ctx context.Context) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) {
		err := fs.WalkDir(d.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case e == nil || err != nil && name == ".":
				return err
			case e.IsDir() && name != "." && !strings.HasSuffix(e.Name(), strings.TrimSuffix(more, "/")):
				return fs.SkipDir // not ours, such as lost+found
			case err != nil:
				// Only what is inside it is missing from the listing.
				if !yield(Run{}, &UnreadableError{Where: name, Err: err}) {
					return fs.SkipAll
				}
				return fs.SkipDir
			case e.IsDir():
				return nil
			case strings.HasPrefix(e.Name(), temporary):
				d.sweep(name, e)
				return nil
			case !strings.HasSuffix(name, suffix):
				return nil // not ours
			}
			run, err := d.record(name)
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			if !yield(run, err) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Run{}, fmt.Errorf("%w: %w", ErrUnavailable, err))
		}
	}
}

// sweep removes what a killed process left.
func (d *Dir) sweep(name string, e fs.DirEntry) {
	if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleTemporary {
		_ = d.root.Remove(name)
	}
}

// open opens one of our files. It refuses links and anything else that could be
// read for ever.
func (d *Dir) open(name string) (*os.File, error) {
	info, err := d.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &UnreadableError{Where: name, Err: errors.New("it is not a regular file")}
	}
	if err == nil && info.Size() > 4*maxFile {
		return nil, &UnreadableError{Where: name, Err: fmt.Errorf("it has %d bytes", info.Size())}
	}
	var f *os.File
	if err == nil {
		f, err = d.root.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return f, nil
}

// record reads only the Run of a file.
func (d *Dir) record(name string) (Run, error) {
	id, err := idOf(strings.TrimSuffix(name, suffix))
	if err != nil {
		return Run{}, &UnreadableError{Where: name, Err: err}
	}
	f, err := d.open(name)
	if err != nil {
		return Run{ID: id}, err
	}
	defer func() { _ = f.Close() }()
	run, err := headOf(f)
	if err == nil && run.ID != id {
		err = fmt.Errorf("it is the record of run %q", run.ID)
	}
	if err != nil {
		return Run{ID: id}, &UnreadableError{RunID: id, Where: name, Err: err}
	}
	return run, nil
}

// headOf reads the first member of a document.
func headOf(r io.Reader) (Run, error) {
	dec := json.NewDecoder(r)
	for _, want := range []json.Token{json.Delim('{'), "run"} {
		if got, err := dec.Token(); err != nil || got != want {
			return Run{}, errors.New("it does not begin as an entry")
		}
	}
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return Run{}, err
	}
	return readRun(raw)
}

// entry reads a whole file. If it belongs to a run other than the requested one,
// only its id is certain.
func (d *Dir) entry(runID, name string) (*Entry, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var doc document
	if err := json.NewDecoder(f).Decode(&doc); err != nil {
		return nil, &UnreadableError{RunID: runID, Where: name, Err: err}
	}
	if doc.Run.ID != "" && doc.Run.ID != runID {
		return &Entry{Run: doc.Run}, nil
	}
	e, err := readEntry(runID, []byte(doc.File))
	if err != nil {
		return nil, &UnreadableError{RunID: runID, Where: name, Err: err}
	}
	return e, nil
}

// Trace implements Archive.
func (d *Dir) Trace(ctx context.Context, runID string) ([]Event, error) {
	e, err := d.Get(ctx, runID)
	if err != nil {
		return nil, err
	}
	return e.Trace, nil
}

// Get implements Archive.
func (d *Dir) Get(ctx context.Context, runID string) (*Entry, error) {
	name, err := nameOf(runID)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	e, err := d.entry(runID, name+suffix)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("run %s: %w", runID, err)
	case err != nil:
		return nil, err
	case e.ID != runID:
		return nil, fmt.Errorf("run %s: %w", runID, ErrNotFound)
	}
	return e, nil
}
