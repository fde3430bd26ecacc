//go:build cgo

package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/pack"
)

// Open opens or creates the database file at path, with the default Options.
// Only its owner can read and write a new file. ":memory:" opens a separate
// database in memory, for tests.
func Open(path string) (*Store, error) { return OpenOptions(path, Options{}) }

// New opens a store in the database that db is connected to, beside the
// program's own tables. It takes the path from db and opens its own connections,
// because what a Change promises depends on how a connection is configured; db
// stays the caller's. A database in memory has no path and is refused.
func New(db *sqlx.DB, o Options) (*Store, error) {
	var path string
	if err := db.Get(&path, `SELECT file FROM pragma_database_list WHERE name = 'main'`); err != nil {
		return nil, fmt.Errorf("sqlite: ask the database for its path: %w", err)
	}
	if path == "" {
		return nil, fmt.Errorf("sqlite: the given database is in memory, where it cannot be opened a second time; use Open(\":memory:\"): %w", store.ErrInvalid)
	}
	var enforced bool
	if err := db.Get(&enforced, `PRAGMA foreign_keys`); err != nil {
		return nil, fmt.Errorf("sqlite: ask the database whether it enforces foreign keys: %w", err)
	}
	if enforced {
		o.TxSetup = "PRAGMA foreign_keys = ON;" + o.TxSetup
	}
	return OpenOptions(path, o)
}

// openWait bounds how long opening waits for other processes that hold the
// file's lock.
const openWait = 30 * time.Second

// OpenOptions is Open with options.
func OpenOptions(path string, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		name: path, memory: path == ":memory:" && !o.ReadOnly, opts: o, limits: store.DefaultLimits(),
		writer: make(chan *conn, 1), closing: make(chan struct{}), updates: make(map[string]*query),
	}
	if s.q, err = loadQueries(o); err != nil {
		return nil, err
	}
	file := ""
	if s.memory {
		// One database per handle, known to SQLite by this name.
		file = "/holdfast-" + rand.Text()
	} else if file, err = prepareFile(path, &o); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		s.files.Reading(file)
	}
	s.file = file
	s.dsn = s.connect(file, "_txlock=immediate", "_busy_timeout=0", "_cache_size=-16384")
	if err := s.connectAll(file); err != nil {
		return nil, errors.Join(err, s.discard())
	}
	s.presence = newPresence(file, s.memory || o.NoPresence)
	s.turns.init(file, s.memory)
	s.listeners.init(file, s.memory || o.ReadOnly || o.Watch < 0)
	return s, nil
}

// connectAll opens the writer, brings the schema up to date, and opens the
// readers.
func (s *Store) connectAll(file string) error {
	if err := pack.Register(); err != nil {
		return s.fail("open", err, false)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openWait)
	defer cancel()
	c := &conn{stmts: make(map[*query]sqliteStmt), counts: &s.counts}
	if !s.opts.ReadOnly {
		if err := s.whileBusy(ctx, func() error { return s.reopen(c) }); err != nil {
			return s.fail("open", err, false)
		}
	}
	s.writer <- c
	if err := s.migrate(ctx); err != nil {
		return err
	}
	readers := openPool(s.connect(file, "_query_only=1", "_busy_timeout=5000", "_stmt_cache_size=32"), &sqlite3.SQLiteDriver{})
	readers.SetMaxOpenConns(s.opts.Readers)
	readers.SetMaxIdleConns(s.opts.Readers)
	s.readers = readers
	if !s.memory {
		s.files.Opened(file)
	}
	return nil
}

// discard closes what a failed opening left open.
func (s *Store) discard() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	select {
	case c := <-s.writer:
		errs = append(errs, c.close())
	default:
	}
	return errors.Join(errs...)
}

// connect returns the DSN of one kind of connection.
func (s *Store) connect(file string, params ...string) string {
	access := s.files.Access()
	if s.memory {
		access = "vfs=memdb"
	}
	return dsn(file, access, s.opts.Synchronous, params...)
}

func dsn(file, access string, synchronous Synchronous, params ...string) string {
	// Unless told otherwise, the driver sets synchronous=NORMAL.
	params = append(params, "_synchronous="+synchronous.String(), "_mutex=no", access)
	u := url.URL{Path: filepath.ToSlash(file)}
	p := u.EscapedPath()
	if runtime.GOOS == "windows" && !strings.HasPrefix(p, "/") {
		p = "/" + p // file:/C:/...
	}
	return "file:" + p + "?" + strings.Join(params, "&")
}

// reopen gives c a connection. If it fails, c has none.
func (s *Store) reopen(c *conn) error {
	n, err := openConn(s.dsn, &s.counts)
	if err != nil {
		return err
	}
	for _, pragma := range s.settings() {
		if err := n.setting(pragma); err != nil {
			return errors.Join(err, n.close())
		}
	}
	c.raw, c.stmts = n.raw, n.stmts
	return nil
}

// settings returns the pragmas for the writer's connection, each with its
// expected answer, empty for none.
func (s *Store) settings() [][2]string {
	list := [][2]string{{"PRAGMA temp_store = MEMORY", ""}}
	if s.opts.GiveBack {
		// This only works in an empty file, so it comes before the journal
		// mode, which writes the first page.
		list = append(list, [2]string{"PRAGMA auto_vacuum = INCREMENTAL", ""})
	}
	if !s.memory {
		list = append(list,
			[2]string{"PRAGMA journal_mode = WAL", "wal"},
			// A WAL that grew in a burst is cut back to this when it is reused.
			[2]string{"PRAGMA journal_size_limit = 67108864", ""})
	}
	return list
}

// creating keeps two handles of this process from creating one file at once.
var creating sync.Mutex

// prepareFile returns the path under which every handle knows the file. If need be it
// creates the file, so that only its owner can read it; the WAL inherits the mode.
func prepareFile(path string, o *Options) (string, error) {
	if err := plainPath(path); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("sqlite: %s: %w", path, err)
	}
	creating.Lock()
	defer creating.Unlock()
	if !o.ReadOnly {
		if err := create(abs, o.FileMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("sqlite: create %s: %w", path, err)
		}
	}
	real, err := resolve(abs)
	if err != nil {
		return "", fmt.Errorf("sqlite: %s: %w", path, err)
	}
	if info, err := os.Stat(real); err != nil {
		return "", fmt.Errorf("sqlite: %s: %w", path, err)
	} else if info.IsDir() {
		return "", fmt.Errorf("sqlite: %s is a directory: %w", path, store.ErrInvalid)
	}
	return real, nil
}

// create uses O_EXCL, because opening and closing a file that SQLite has open in this
// process would drop SQLite's locks on it (POSIX).
func create(file string, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	if err != nil {
		return err
	}
	return f.Close()
}

// plainPath refuses a string that is not a file path.
func plainPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("sqlite: the path is empty: %w", store.ErrInvalid)
	// The terminal takes sqlite:app.db for app.db: one DSN for it and the program made two files.
	case strings.HasPrefix(path, "file:"), strings.HasPrefix(path, "sqlite:"), strings.ContainsRune(path, 0):
		return fmt.Errorf("sqlite: %q is not a plain path: give the path alone, and options apart: %w", path, store.ErrInvalid)
	}
	return nil
}

// resolve returns the canonical name of a file: two names must lead to the same
// set of lock files.
func resolve(path string) (string, error) { return filepath.EvalSymlinks(path) }
