//go:build cgo

package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/ondisk"
)

// aloneWait bounds how long Restore waits for others to close the file. That is
// enough for a process that is slow to exit; a process at work will not close it.
const aloneWait = 2 * time.Second

// Restore implements store.Migrator. from is a copy that Backup or a migration
// made; Restore checks it first and keeps it. The whole file goes back to that
// copy, including the program's own tables. The replaced data is kept beside the
// file, under a name that ends in ".replaced". A database of another program, to which a
// mistyped name may lead, is not replaced.
//
// The pages are replaced in one SQLite transaction, so after a crash the next
// process to open the file finds either the old state or the new one. The file
// is locked meanwhile. Restore fails while another process, or a Store of this
// process, has the file open. A backup of a newer version of the program gives a
// *store.SchemaError.
func (sc *Schema) Restore(ctx context.Context, from string) (kept string, err error) {
	if err := plainPath(from); err != nil {
		return "", err
	}
	if err := cmp.Or(sc.opts.writes(), sc.checkBackup(ctx, from)); err != nil {
		return "", err
	}
	file, err := prepareFile(sc.name, &sc.opts)
	if err != nil {
		return "", err
	}
	if same, err := sameInode(from, file); err != nil || same {
		return "", errors.Join(err, fmt.Errorf("sqlite: %s cannot be restored from itself: %w", sc.name, store.ErrInvalid))
	}
	if err := sc.checkPlace(ctx, file); err != nil {
		return "", err
	}
	// The driver applies every parameter that it is given, so this DSN must not
	// set journal mode WAL.
	c, err := openConn(dsn(file, ondisk.Write, Full, "_busy_timeout=0"), new(counts))
	if err != nil {
		return "", sc.fail("restore", err)
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := sc.alone(ctx, c); err != nil {
		return "", err
	}
	if kept, err = sc.keep(c, file); err != nil {
		return "", sc.fail("keep what is there before it is replaced", err)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return kept, sc.fail("restore", replace(c, dsn(from, ondisk.Write, Full, "_query_only=1", "_busy_timeout=5000")))
}

// checkBackup makes sure that a file is a sound store.
func (sc *Schema) checkBackup(ctx context.Context, from string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("sqlite: restore from %s: %w", from, err)
	}
	return sc.with(dsn(from, ondisk.Write, Full, "_query_only=1", "_busy_timeout=5000"), func(db *sqlx.DB) error {
		var answer string
		if err := db.GetContext(ctx, &answer, "PRAGMA integrity_check(1)"); err != nil {
			return fail(from, "check the backup", err, false)
		}
		if answer != "ok" {
			return fmt.Errorf("sqlite: the backup %s is damaged (%s), and was not restored: %w", from, answer, store.ErrCorrupt)
		}
		version, err := sc.q.migrations.Current(ctx, db)
		know := sc.q.migrations.Latest()
		switch {
		case err == nil && version == 0:
			err = fmt.Errorf("sqlite: there is no store in %s, with tables named like %s: %w", from, sc.q.dialect.Runs, store.ErrInvalid)
		case version > know: // nobody here could open what is restored
			err = &store.SchemaError{Have: version, Know: know, Todo: "restore this backup with the program that made it, or a newer one"}
		}
		return err
	})
}

// checkPlace refuses a database that has tables, and no store. What cannot be read is left to what
// comes next, which says so.
func (sc *Schema) checkPlace(ctx context.Context, file string) error {
	var tables, version int
	err := sc.with(dsn(file, ondisk.Write, Full, "_query_only=1", "_busy_timeout=5000"), func(db *sqlx.DB) (err error) {
		if err := db.GetContext(ctx, &tables, "SELECT count(*) FROM sqlite_master"); err != nil {
			return err
		}
		version, err = sc.q.migrations.Current(ctx, db)
		return err
	})
	if err == nil && tables > 0 && version == 0 {
		return fmt.Errorf("sqlite: %s has tables of another program and no store, and was not replaced: restore to another file: %w", sc.name, store.ErrInvalid)
	}
	return nil
}

func sameInode(a, b string) (bool, error) {
	ai, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi), err
}

// alone gives c exclusive use of the file until c is closed: SQLite lets a
// database leave WAL mode only while a single connection has it open, and a
// Store always uses WAL mode.
func (sc *Schema) alone(ctx context.Context, c *conn) error {
	wait, cancel := context.WithTimeout(ctx, aloneWait)
	defer cancel()
	var mode string
	err := whileBusy(wait, nil, func() error {
		for _, q := range []string{"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = DELETE", "BEGIN EXCLUSIVE", "COMMIT"} {
			if err := c.ask(q, func(row []driver.Value) { mode = fmt.Sprint(row[0]) }); err != nil {
				return err
			}
			if q == "PRAGMA journal_mode = DELETE" && mode != "delete" {
				return fmt.Errorf("sqlite: the journal mode stays %q", mode)
			}
		}
		return nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("sqlite: %s is in use, and cannot be replaced: stop every program that has it open, and try again: %w", sc.name, store.ErrOwned)
	}
	return fmt.Errorf("%w; if the file is damaged, move it, its -wal and its -shm away and restore again", sc.fail("restore", err))
}

// keep copies what the file holds, if anything.
func (sc *Schema) keep(c *conn, file string) (name string, err error) {
	var version, tables int64
	ask := func(q string, into *int64) error {
		return c.ask(q, func(row []driver.Value) { *into, _ = row[0].(int64) })
	}
	if err := ask("SELECT count(*) FROM sqlite_master", &tables); err != nil || tables == 0 {
		return "", err
	}
	m := &sc.q.migrations
	var exists int64
	if err := ask(m.Exists, &exists); err != nil {
		return "", err
	}
	if exists != 0 {
		if err := ask(m.Version, &version); err != nil {
			return "", err
		}
	}
	name = copyName(file, int(version), sc.opts.Clock(), copyReplaced)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, modeOf(file, 0o600))
	if err != nil {
		return "", err
	}
	err = f.Close()
	if err == nil {
		_, _, err = c.exec(&query{"VACUUM INTO ?1"}, name)
	}
	if err == nil {
		err = syncFile(name)
	}
	if err != nil {
		_ = os.Remove(name)
		return "", err
	}
	return name, nil
}

// replace replaces the pages of c's database with those of another database.
func replace(c *conn, source string) (err error) {
	src, err := openConn(source, new(counts))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.close()) }()
	b, err := c.raw.Backup("main", src.raw, "main")
	if err != nil {
		return err
	}
	done, err := b.Step(-1)
	if err == nil && !done {
		err = fmt.Errorf("sqlite: somebody writes to what is copied: %w", store.ErrInvalid)
	}
	// Finish ends the transaction: a complete copy stays, anything else is undone.
	return errors.Join(err, b.Finish())
}
