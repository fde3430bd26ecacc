//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/ondisk"
)

// Schema gives access to the schema of a database file without a Store: to see
// what an upgrade would do, to carry it out, and to go back. It holds nothing
// open between calls. Its methods may be called concurrently and while Stores
// are open on the file; only Restore needs the file to itself.
type Schema struct {
	name string // of the file, as it was given
	file string // its path, without links once it exists
	opts Options
	q    *queries
	stop <-chan struct{} // closed when the schema is no longer needed; nil: never
}

var (
	_ store.Migrator = (*Schema)(nil)
	_ store.Backuper = (*Schema)(nil)
)

// manual says what an operator does about a schema that is too old.
const manual = "call Migrate of sqlite.OpenSchema, which makes a backup first, or open the store without Options.ManualMigrations"

// OpenSchema returns the schema of the file at path. It reads and creates nothing
// yet; a file that does not exist counts as one without a schema. Of the Options,
// only Prefix, FileMode, Clock, Synchronous, NoMigrationBackup and ReadOnly matter.
func OpenSchema(path string, o Options) (*Schema, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if path == ":memory:" {
		return nil, fmt.Errorf("sqlite: a database in memory is known to its Store alone, and has always the newest schema: %w", store.ErrInvalid)
	}
	if err := plainPath(path); err != nil {
		return nil, err
	}
	sc := &Schema{name: path, opts: o}
	if sc.file, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("sqlite: %s: %w", path, err)
	}
	if real, err := resolve(sc.file); err == nil {
		sc.file = real
	}
	if sc.q, err = loadQueries(o); err != nil {
		return nil, err
	}
	return sc, nil
}

// Close returns nil: nothing is held open. It exists so that the schemas of all
// backends are used in the same way.
func (sc *Schema) Close() error { return nil }

// Plan implements store.Migrator.
func (sc *Schema) Plan(ctx context.Context) (p store.MigrationPlan, err error) {
	source := ":memory:" // equivalent to a file that does not exist
	if there, err := sc.exists(); err != nil {
		return p, err
	} else if there {
		source = sc.reading("_query_only=1", "_busy_timeout=5000")
	}
	err = sc.with(source, func(db *sqlx.DB) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it has written nothing
		p, err = sc.migrator("").Plan(ctx, tx)
		return err
	})
	return p, sc.fail("plan a migration", err)
}

// TakesWrites returns an error that matches store.ErrReadOnly if this process may not write the file.
func (sc *Schema) TakesWrites(context.Context) error {
	return ondisk.Writable(sc.file)
}

// Migrate implements store.Migrator. The backup is a file beside the database,
// named after the version it holds and the time, and ends in ".backup".
// While the steps run, other writers wait.
func (sc *Schema) Migrate(ctx context.Context) (m store.Migration, err error) {
	file, err := prepareFile(sc.name, &sc.opts)
	if err != nil {
		return m, err
	}
	return sc.run(ctx, file)
}

// run migrates. It checks the context only while others hold the lock; once the
// transaction has begun, a context that ended would cut it in two.
func (sc *Schema) run(ctx context.Context, file string) (m store.Migration, err error) {
	if err := sc.opts.writes(); err != nil {
		return m, sc.fail("bring the schema up to date", err)
	}
	err = sc.with(dsn(file, ondisk.Write, sc.opts.Synchronous, "_txlock=immediate", "_busy_timeout=0"), func(db *sqlx.DB) error {
		err := whileBusy(ctx, sc.stop, func() error {
			m, err = sc.migrator(file).Run(context.WithoutCancel(ctx), db)
			return err
		})
		if err != nil {
			return err
		}
		return settleCopies(file, m.To)
	})
	if m.Backup != "" {
		m.Backup = settled(m.Backup)
	}
	return m, sc.fail("bring the schema up to date", err)
}

// migrator returns the migrator for a file; without a file it does not make the
// backups that it plans.
func (sc *Schema) migrator(file string) *sqlstore.Migrator {
	m := sc.q.migrations
	if !sc.opts.NoMigrationBackup {
		m.Backup = func(ctx context.Context, _ *sqlx.Tx, from int) (string, error) {
			// The transaction holds the write lock, so the copy, which is made
			// on its own connection, contains what the transaction sees.
			return copyBeforeMigration(ctx, file, from, sc.opts.Clock())
		}
	}
	return &m
}

func (sc *Schema) exists() (bool, error) {
	_, err := os.Stat(sc.file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sqlite: %s: %w", sc.name, err)
	}
	return true, nil
}

// with opens one connection for f.
func (sc *Schema) with(source string, f func(*sqlx.DB) error) error {
	db, err := sqlx.Open("sqlite3", source)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(f(db), db.Close())
}

func (sc *Schema) fail(what string, err error) error {
	if errors.Is(err, store.ErrSchema) {
		return fmt.Errorf("sqlite: %s: %w", sc.name, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("sqlite: %s: %s: another process has kept the file locked, perhaps to migrate it: %w", sc.name, what, err)
	}
	return fail(sc.name, what, err, false)
}

// schema returns the store's own Schema.
func (s *Store) schema() *Schema {
	return &Schema{name: s.name, file: s.file, opts: s.opts, q: s.q, stop: s.closing}
}

// migrate is the part of opening that brings the schema up to date.
func (s *Store) migrate(ctx context.Context) error {
	sc := s.schema()
	if s.memory {
		err := sc.with(s.connect(s.file, "_txlock=immediate", "_busy_timeout=200"), func(db *sqlx.DB) error {
			_, err := sc.q.migrations.Run(context.WithoutCancel(ctx), db)
			return err
		})
		return sc.fail("make the schema", err)
	}
	if !s.opts.ManualMigrations && !s.opts.ReadOnly {
		_, err := sc.run(ctx, s.file)
		return err
	}
	err := sc.with(s.connect(s.file, "_query_only=1", "_busy_timeout=5000"), func(db *sqlx.DB) error {
		return sc.q.migrations.Check(ctx, db, manual)
	})
	if e, ok := errors.AsType[*store.SchemaError](err); ok && e.Have == 0 && !s.opts.ReadOnly {
		_, err = sc.run(ctx, s.file)
		return err
	}
	return sc.fail("look at the schema", err)
}

// stamp formats a time for the name of a copy, such that sorting by name sorts
// by time.
func stamp(t time.Time) string { return t.UTC().Format("20060102T150405.000000Z") }
