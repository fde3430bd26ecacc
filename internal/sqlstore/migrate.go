package sqlstore

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
)

// Migration is one step of the schema. Steps are numbered from 1 without a gap
// and never changed once released.
type Migration struct {
	Version int
	Name    string
	SQL     string
}

var migrationFile = regexp.MustCompile(`^([0-9]{4})_([a-z0-9_]+)\.sql$`)

// ReadMigrations reads the files NNNN_name.sql of dir, in order. rename is as
// in ReadStatements.
func ReadMigrations(fsys fs.FS, dir string, rename func(string) string) ([]Migration, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: list migrations: %w", err)
	}
	var ms []Migration
	for _, e := range entries {
		m := migrationFile.FindStringSubmatch(e.Name())
		if m == nil {
			return nil, fmt.Errorf("sqlstore: %s is not named like a migration (0001_name.sql)", e.Name())
		}
		version, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, fmt.Errorf("sqlstore: migration %s: %w", e.Name(), err)
		}
		if version != len(ms)+1 {
			return nil, fmt.Errorf("sqlstore: migration %s: expected number %04d", e.Name(), len(ms)+1)
		}
		text, err := fs.ReadFile(fsys, path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("sqlstore: read migration: %w", err)
		}
		sql := string(text)
		if rename != nil {
			sql = rename(sql)
		}
		ms = append(ms, Migration{Version: version, Name: m[2], SQL: sql})
	}
	if len(ms) == 0 {
		return nil, fmt.Errorf("sqlstore: no migrations in %q", dir)
	}
	return ms, nil
}

// Migrator brings a database to the newest schema this program knows.
type Migrator struct {
	Migrations []Migration
	// Exclude is run first in the transaction, so that two processes do not
	// migrate at once; empty where beginning a transaction does that already.
	Exclude string
	// Exists selects whether the version table is there (one boolean or 0/1).
	Exists string
	// Create makes the version table. Version selects the highest version in
	// it, 0 if it is empty. Record inserts (version, name, time in µs).
	Create, Version, Record string
	// Now is the time that is recorded.
	Now func() store.Time
}

// Latest returns the newest version the program knows.
func (m *Migrator) Latest() int { return m.Migrations[len(m.Migrations)-1].Version }

// Current returns the version of the database, 0 when it has no schema.
func (m *Migrator) Current(ctx context.Context, q sqlx.QueryerContext) (int, error) {
	var exists bool
	if err := sqlx.GetContext(ctx, q, &exists, m.Exists); err != nil {
		return 0, fmt.Errorf("sqlstore: look for the schema: %w", err)
	}
	if !exists {
		return 0, nil
	}
	var version int
	if err := sqlx.GetContext(ctx, q, &version, m.Version); err != nil {
		return 0, fmt.Errorf("sqlstore: read the schema version: %w", err)
	}
	return version, nil
}

// Run applies the steps that are missing, all in one transaction: a crash
// leaves the schema as it was. It returns the version that was found. A
// database with a newer schema is refused with *store.SchemaError and left
// alone; so is nothing written when the schema is up to date.
func (m *Migrator) Run(ctx context.Context, db *sqlx.DB) (from int, err error) {
	from, err = m.Current(ctx, db)
	if err != nil || from == m.Latest() {
		return from, err
	}
	if from > m.Latest() {
		return from, &store.SchemaError{Have: from, Know: m.Latest()}
	}
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("sqlstore: begin migration: %w", err)
	}
	from, err = m.apply(ctx, tx)
	if err != nil {
		// The first error is the one to tell; a rollback that fails as well
		// means that the connection, and with it the transaction, is gone.
		_ = tx.Rollback()
		return from, err
	}
	if err := tx.Commit(); err != nil {
		return from, fmt.Errorf("sqlstore: commit migration: %w", err)
	}
	return from, nil
}

func (m *Migrator) apply(ctx context.Context, tx *sqlx.Tx) (from int, err error) {
	if m.Exclude != "" {
		if _, err := tx.ExecContext(ctx, m.Exclude); err != nil {
			return 0, fmt.Errorf("sqlstore: wait for other migrations: %w", err)
		}
	}
	// Read again: another process may have migrated while this one waited.
	from, err = m.Current(ctx, tx)
	if err != nil {
		return 0, err
	}
	if from > m.Latest() {
		return from, &store.SchemaError{Have: from, Know: m.Latest()}
	}
	if from == 0 {
		if _, err := tx.ExecContext(ctx, m.Create); err != nil {
			return 0, fmt.Errorf("sqlstore: create the schema table: %w", err)
		}
	}
	for _, step := range m.Migrations[from:] {
		if _, err := tx.ExecContext(ctx, step.SQL); err != nil {
			return from, fmt.Errorf("sqlstore: migration %04d_%s: %w", step.Version, step.Name, err)
		}
		if _, err := tx.ExecContext(ctx, m.Record, step.Version, step.Name, int64(m.Now())); err != nil {
			return from, fmt.Errorf("sqlstore: record migration %d: %w", step.Version, err)
		}
	}
	return from, nil
}
