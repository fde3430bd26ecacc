package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Backuper = (*Store)(nil)

// Backup implements store.Backuper: it creates the schema to and copies our
// tables into it, without their indexes. The copy is as of one moment, and
// blocks no other transaction. It is in the same database, so it guards against
// what a program does, not against the loss of the server; use pg_dump for that.
// Schema.Restore brings it back, DROP SCHEMA removes it.
func (s *Store) Backup(ctx context.Context, to string) error {
	if err := checkSchemaName(to); err != nil {
		return err
	}
	err := s.snapshot(ctx, false, func(tx *sqlx.Tx) error {
		if err := s.unlimited(ctx, tx); err != nil {
			return err
		}
		return s.copyTables(ctx, tx, to)
	})
	if err == nil || errors.Is(err, store.ErrInvalid) {
		return err
	}
	return described("back up into schema "+to, err)
}

func checkSchemaName(name string) error {
	if name == "" || len(name) > 63 || strings.HasPrefix(name, "pg_") || strings.ContainsAny(name, "\"'\\\x00") {
		return fmt.Errorf("postgres: %.80q cannot be the name of a schema: 1 to 63 bytes, no quotes or backslashes, not beginning with pg_: %w", name, store.ErrInvalid)
	}
	return nil
}

// unlimited lifts the time limits that the role or the database sets for a
// transaction, because a copy of the whole store may take any length of time.
func (s *Store) unlimited(ctx context.Context, tx *sqlx.Tx) error {
	_, err := tx.ExecContext(ctx, s.sql.Text("no_time_limits"))
	return err
}

// copyBeforeMigration makes the backup of a migration inside its transaction, so
// the two happen together or not at all. Our tables are locked by then, so the
// copy is the state that the steps start from.
func (s *Store) copyBeforeMigration(ctx context.Context, tx *sqlx.Tx, version int) (string, error) {
	to := copySchema("backup", s.schema, version, time.Now())
	return to, s.copyTables(ctx, tx, to)
}

// relation is one of our tables or views.
type relation struct {
	Name string `db:"relname"`
	Kind string `db:"relkind"`
}

func (r relation) table() bool { return r.Kind != "v" }

func in(schema, name string) string {
	return pq.QuoteIdentifier(schema) + "." + pq.QuoteIdentifier(name)
}

// relations lists our relations in a schema: the tables, in the order in which
// transactions lock them, then the views.
func (s *Store) relations(ctx context.Context, tx *sqlx.Tx, schema string) (all []relation, err error) {
	err = tx.SelectContext(ctx, &all, s.sql.Text("relations"), schema)
	return all, err
}

// lockTables locks our tables, if there are any, in the order used by all our
// transactions.
func (s *Store) lockTables(ctx context.Context, tx *sqlx.Tx, mode string) error {
	all, err := s.relations(ctx, tx, s.schema)
	if err != nil {
		return err
	}
	var tables []string
	for _, r := range all {
		if r.table() {
			tables = append(tables, in(s.schema, r.Name))
		}
	}
	if len(tables) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", lockFor.Milliseconds())); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "LOCK TABLE "+strings.Join(tables, ", ")+" IN "+mode+" MODE")
	return err
}

// copyTables creates a schema with a copy of our tables, whatever their version.
func (s *Store) copyTables(ctx context.Context, tx *sqlx.Tx, to string) error {
	if _, err := tx.ExecContext(ctx, "CREATE SCHEMA "+pq.QuoteIdentifier(to)); err != nil {
		return creating(to, err)
	}
	all, err := s.relations(ctx, tx, s.schema)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("postgres: schema %s holds no store: %w", s.schema, store.ErrInvalid)
	}
	for _, r := range all {
		if !r.table() {
			continue
		}
		columns, _, err := s.columns(ctx, tx, s.schema, r.Name)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "CREATE TABLE "+in(to, r.Name)+" AS SELECT "+columns+" FROM "+in(s.schema, r.Name)); err != nil {
			return fmt.Errorf("copy %s: %w", r.Name, err)
		}
	}
	return nil
}

// creating words the error of a failed CREATE SCHEMA.
func creating(schema string, err error) error {
	switch sqlState(err) {
	case "42P06":
		return fmt.Errorf("postgres: schema %s exists already; give another name, or drop it: %w", schema, store.ErrInvalid)
	case "42501":
		return fmt.Errorf("the copy goes to a schema of its own, %s, which this user may not create: GRANT CREATE ON DATABASE, "+
			"or make a backup with pg_dump and set Options.NoMigrationBackup: %w", schema, err)
	}
	return fmt.Errorf("create schema %s: %w", schema, err)
}

// columns returns the columns of a table that hold written data, as a list for a
// statement, and those of them that the server numbers.
func (s *Store) columns(ctx context.Context, tx *sqlx.Tx, schema, table string) (list string, numbered []string, err error) {
	var columns []struct {
		Name     string `db:"attname"`
		Identity bool   `db:"identity"`
	}
	if err := tx.SelectContext(ctx, &columns, s.sql.Text("columns_of"), schema, table); err != nil {
		return "", nil, err
	}
	var names []string
	for _, c := range columns {
		names = append(names, pq.QuoteIdentifier(c.Name))
		if c.Identity {
			numbered = append(numbered, c.Name)
		}
	}
	return strings.Join(names, ", "), numbered, nil
}
