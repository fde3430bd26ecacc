package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
)

// Schema gives access to our tables in a database without a Store: to see what
// an upgrade would do, to carry it out, and to go back. Its methods may be
// called concurrently, and while Stores are open on the database.
type Schema struct{ s *Store }

var (
	_ store.Migrator = (*Schema)(nil)
	_ store.Backuper = (*Schema)(nil)
)

// OpenSchema connects to the database of a connection string. It changes
// nothing yet. Of the Options, only Schema, NoMigrationBackup and ReadOnly matter.
func OpenSchema(dsn string, o Options) (*Schema, error) {
	dsn, err := complete(dsn)
	if err != nil {
		return nil, err
	}
	db, err := connect(dsn, 0, "")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(3)
	s := newStore(db, o)
	s.ownsDB = true
	err = o.check(db)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		o.ReadOnly = true // nothing is written yet
		err = s.locate(ctx, o)
	}
	if err != nil {
		return nil, errors.Join(masked(dsn, err), s.Close())
	}
	return &Schema{s: s}, nil
}

// Close closes the connections.
func (sc *Schema) Close() error { return sc.s.Close() }

// TakesWrites returns an error that matches store.ErrReadOnly if the server is a standby or set read-only.
func (sc *Schema) TakesWrites(ctx context.Context) error {
	var none bool
	err := sc.s.db.GetContext(ctx, &none, "SELECT pg_catalog.current_setting('transaction_read_only') = 'on'")
	if err == nil && none {
		return fmt.Errorf("the server %w: it is a standby, or is set read-only", store.ErrReadOnly)
	}
	return described("ask whether it may be written to", err)
}

// Plan implements store.Migrator.
func (sc *Schema) Plan(ctx context.Context) (p store.MigrationPlan, err error) {
	err = sc.s.snapshot(ctx, true, func(tx *sqlx.Tx) error {
		p, err = sc.s.migrations.Plan(ctx, tx)
		return err
	})
	if err != nil {
		return p, described("plan a migration", err)
	}
	return p, nil
}

// Migrate implements store.Migrator. The backup is a copy of our tables in a
// separate schema, named after the version it holds and the time; dropping that
// schema removes it. From the start of the copy, other writers wait and retry.
func (sc *Schema) Migrate(ctx context.Context) (m store.Migration, err error) {
	if err := sc.s.enter(ctx); err != nil {
		return m, err
	}
	defer sc.s.calls.Done()
	if err := sc.s.createSchema(ctx); err != nil {
		return m, err
	}
	return sc.s.migrate(ctx)
}

// Backup implements store.Backuper; see Store.Backup.
func (sc *Schema) Backup(ctx context.Context, to string) error { return sc.s.Backup(ctx, to) }

// snapshot runs f in a transaction that sees one moment throughout.
func (s *Store) snapshot(ctx context.Context, readOnly bool, f func(*sqlx.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	return s.within(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: readOnly}, f)
}

func (s *Store) within(ctx context.Context, o *sql.TxOptions, f func(*sqlx.Tx) error) error {
	o.ReadOnly = o.ReadOnly || s.opts.ReadOnly
	tx, err := s.long.BeginTxx(ctx, o)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // the first error is the one to report
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// copySchema returns the name of the schema for a copy, short enough for
// PostgreSQL and with a time that never repeats.
func copySchema(kind, schema string, version int, at time.Time) string {
	tail := fmt.Sprintf("_v%d_%s_%06d", version, at.UTC().Format("20060102t150405"), at.Nanosecond()/1000)
	name := "holdfast_" + kind + "_" + schema
	for len(name)+len(tail) > 63 {
		// Cut between characters, never inside one.
		r := []rune(name)
		name = string(r[:len(r)-1])
	}
	return name + tail
}
