//go:build cgo

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/ondisk"
)

var _ store.Backuper = (*Store)(nil)

// Backup implements store.Backuper: it writes a copy of the whole file,
// including the program's own tables, to a new file at the path to, with the
// same permissions. The copy is compact and complete, without a WAL. It opens
// as a store like any other. To bring it back, use Schema.Restore, or copy it
// over the database while no process uses the database.
//
// Backup does not block writers, but the WAL cannot be checkpointed while the
// copy is made, and grows. A crash may leave a file named like to with
// ".partial" and a number appended, which is of no use and may be deleted.
func (s *Store) Backup(ctx context.Context, to string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	open, err := s.shut(ctx)
	if err != nil {
		return err
	}
	defer open()
	source := s.connect(s.file, "_busy_timeout=5000")
	copyTo := func(file string) error { return copyInto(ctx, source, file) }
	if s.memory {
		// VACUUM INTO would make its copy in memory as well.
		copyTo = func(file string) error { return copyPages(source, file) }
	}
	return s.fail("back up", copyAside(to, modeOf(s.file, s.opts.FileMode), copyTo), false)
}

// Backup implements store.Backuper, for a file that a Store cannot or should
// not open; see Store.Backup.
func (sc *Schema) Backup(ctx context.Context, to string) error {
	if there, err := sc.exists(); err != nil {
		return err
	} else if !there {
		return fmt.Errorf("sqlite: back up: there is no file %s: %w", sc.name, fs.ErrNotExist)
	}
	source := sc.reading("_busy_timeout=5000")
	copyTo := func(file string) error { return copyInto(ctx, source, file) }
	return sc.fail("back up", copyAside(to, modeOf(sc.file, sc.opts.FileMode), copyTo))
}

// reading returns how to open the file for what only reads it. Where it cannot be written, nothing is made beside it.
func (sc *Schema) reading(params ...string) string {
	access := ondisk.Write
	if sc.opts.ReadOnly || ondisk.Writable(sc.file) != nil {
		access = ondisk.Read(sc.file)
	}
	return dsn(sc.file, access, sc.opts.Synchronous, params...)
}

func modeOf(file string, otherwise fs.FileMode) fs.FileMode {
	if info, err := os.Stat(file); err == nil {
		return info.Mode().Perm()
	}
	return otherwise // in memory
}

// copyAside makes copyTo write under a temporary name first, so that a file
// under the final name is always complete.
func copyAside(to string, mode fs.FileMode, copyTo func(file string) error) error {
	if err := plainPath(to); err != nil {
		return err
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	if err := mustNotExist(to); err != nil {
		return err
	}
	// The temporary name is unique, because two callers may copy to the same
	// place. The later one is then refused, or wins with a complete copy.
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".partial-*")
	if err != nil {
		return err
	}
	partial := f.Name()
	err = errors.Join(f.Chmod(mode), f.Close())
	if err == nil {
		err = copyTo(partial)
	}
	if err == nil {
		err = mustNotExist(to)
	}
	if err == nil {
		err = os.Rename(partial, to)
	}
	if err != nil {
		_ = os.Remove(partial)
		return err
	}
	return syncDir(filepath.Dir(to))
}

func mustNotExist(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("sqlite: %s exists already; give another name, or remove it: %w", path, store.ErrInvalid)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// copyInto copies the database of a connection string into an empty file, and
// returns when the copy is on the disk.
func copyInto(ctx context.Context, source, file string) error {
	db, err := sql.Open("sqlite3", source)
	if err != nil {
		return err
	}
	// The connection does nothing else, so a context that ends in the middle
	// undoes no more than the copy.
	_, err = db.ExecContext(ctx, "VACUUM INTO ?1", file)
	if err := errors.Join(err, db.Close()); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	return syncFile(file)
}

// copyPages is copyInto, page by page.
func copyPages(source, file string) (err error) {
	c, err := openConn(dsn(file, ondisk.Write, Full), new(counts))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return replace(c, source)
}

// The names of copies beside a database: app.db.v1-<time>.migrating while the
// migration is in progress, and .backup once it has committed. After a crash in
// between, the next opening decides which it is, by the version of the database
// (see settleCopies).
const (
	copyMigrating = ".migrating"
	copyBackup    = ".backup"
	copyReplaced  = ".replaced"
)

func copyName(file string, version int, at time.Time, kind string) string {
	return fmt.Sprintf("%s.v%d-%s%s", file, version, stamp(at), kind)
}

// settled returns the name of a copy after its migration.
func settled(name string) string { return strings.TrimSuffix(name, copyMigrating) + copyBackup }

// copyBeforeMigration makes the backup of a migration. The caller has the write
// lock, so no other migration is in progress.
func copyBeforeMigration(ctx context.Context, file string, version int, at time.Time) (string, error) {
	// Remove what a migration left that did not commit: the database is
	// unchanged, and each attempt would leave another copy of it.
	err := eachUnsettled(file, func(name string, v int) error {
		if v < version {
			return nil
		}
		return os.Remove(name)
	})
	if err != nil {
		return "", err
	}
	name := copyName(file, version, at, copyMigrating)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, modeOf(file, 0o600))
	if err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	if err := copyInto(ctx, dsn(file, ondisk.Write, Full, "_busy_timeout=5000"), name); err != nil {
		_ = os.Remove(name)
		return "", err
	}
	return name, syncDir(filepath.Dir(file))
}

// settleCopies gives the backups of completed migrations their final name.
// version is the version that the database now has.
func settleCopies(file string, version int) error {
	return eachUnsettled(file, func(name string, v int) error {
		if v >= version {
			return nil // its migration did not commit; the next attempt removes it
		}
		err := os.Rename(name, settled(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process was faster
		}
		return err
	})
}

func eachUnsettled(file string, do func(name string, version int) error) error {
	dir, base := filepath.Dir(file), filepath.Base(file)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // the directory can be used but not listed, so our files cannot be found
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), base+".v")
		if !ok || !strings.HasSuffix(rest, copyMigrating) {
			continue
		}
		number, _, _ := strings.Cut(rest, "-")
		version, err := strconv.Atoi(number)
		if err != nil {
			continue // not one of ours
		}
		if err := do(filepath.Join(dir, e.Name()), version); err != nil {
			return err
		}
	}
	return nil
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir makes the names in a directory durable. Some systems cannot do that and
// report it in their own ways; there the name is as durable as the system makes it.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
