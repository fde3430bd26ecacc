package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

//go:embed sql/*.sql
var statementFiles embed.FS

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Names of tables and of the view, but not of indexes, which begin alike and
// are always in their table's schema.
var tableNames = regexp.MustCompile(`\bdurable_(?:runs|events|branches|inbox|attributes|holds|executors|queues|schema|history)\b`)

// qualified returns a rename that puts the schema before every table.
func qualified(schema string) func(string) string {
	prefix := pq.QuoteIdentifier(schema) + "."
	return func(sql string) string {
		return tableNames.ReplaceAllStringFunc(sql, func(table string) string { return prefix + table })
	}
}

// prepare finds the schema, reads the statements and migrates.
func (s *Store) prepare(ctx context.Context, o Options) error {
	if err := s.locate(ctx, o); err != nil {
		return err
	}
	if o.Schema != "" {
		if err := s.createSchema(ctx); err != nil {
			return err
		}
	}
	err := s.migrations.Check(ctx, s.db, manual)
	e, ok := errors.AsType[*store.SchemaError](err)
	switch {
	case ok && e.Have < e.Know && (e.Have == 0 || !o.ManualMigrations):
		// However long its backup takes: cut short, it would never be done.
		_, err = s.migrate(context.WithoutCancel(ctx))
		return err
	case err != nil:
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// manual is what an operator does about a schema that is older than needed.
const manual = "call Migrate of postgres.OpenSchema, which makes a backup first, or open the store without Options.ManualMigrations"

// locate finds the schema and reads the statements, and changes nothing.
func (s *Store) locate(ctx context.Context, o Options) error {
	var version string
	var first *string
	if err := s.db.QueryRowxContext(ctx, "SELECT version(), current_schema()").Scan(&version, &first); err != nil {
		return fmt.Errorf("postgres: open: %w", err)
	}
	s.genuine = genuine(version)
	s.sessionLocks = s.genuine && !o.Pooled
	switch {
	case o.Schema != "":
		s.schema = o.Schema
	case first != nil:
		s.schema = *first
	default:
		return fmt.Errorf("postgres: open: no schema of the search path exists; set Options.Schema: %w", store.ErrInvalid)
	}
	rename := qualified(s.schema)
	var err error
	if s.sql, err = sqlstore.ReadStatements(statementFiles, "sql", rename); err != nil {
		return err
	}
	s.reads = map[string]bool{}
	for name, st := range s.sql {
		s.reads[name] = !writing.MatchString(st.SQL)
	}
	steps, err := sqlstore.ReadMigrations(migrationFiles, "migrations", rename)
	if err != nil {
		return err
	}
	if o.migrations != nil {
		steps = o.migrations(steps)
	}
	s.migrations = &sqlstore.Migrator{
		Migrations: steps,
		Exists:     s.sql.Text("schema_exists"),
		Exclude:    s.sql.Text("schema_exclude"),
		Create:     s.sql.Text("schema_create"),
		Version:    s.sql.Text("schema_version"),
		Record:     s.sql.Text("schema_record"),
		Filled:     s.sql.Text("schema_filled"),
		// A backup must see what was committed while it waited for its locks.
		Tx:  &sql.TxOptions{Isolation: sql.LevelReadCommitted},
		Now: func() store.Time { return store.TimeOf(time.Now()) },
	}
	if !o.NoMigrationBackup {
		s.migrations.Backup = s.copyBeforeMigration
	}
	return nil
}

var writing = regexp.MustCompile(`\b(?:INSERT INTO|UPDATE|DELETE FROM|pg_notify)\b`)

// createSchema is not part of the migration's transaction, whose first act
// looks into the schema. IF NOT EXISTS alone fails when two processes create it
// at once; the second look then finds it.
func (s *Store) createSchema(ctx context.Context) error {
	var err error
	for range 3 {
		var exists bool
		if err := s.db.GetContext(ctx, &exists, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", s.schema); err != nil {
			return fmt.Errorf("postgres: look for schema %q: %w", s.schema, err)
		}
		if exists {
			return nil
		}
		if _, err = s.db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pq.QuoteIdentifier(s.schema)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("postgres: create schema %q: %w", s.schema, err)
}

// migrate brings the schema up to date. Sessions that hold locks of ours make it
// begin again, so that it never waits with others behind it for long.
func (s *Store) migrate(ctx context.Context) (store.Migration, error) {
	for try := 0; ; try++ {
		m, err := s.migrations.Run(ctx, s.db)
		if err == nil {
			return m, nil
		}
		f := faultOf(err)
		if try == 5 || (f != faultRetry && f != faultConflict && !duplicateTable(err)) {
			return m, fmt.Errorf("postgres: %w", err)
		}
		if err := pause(ctx, s.closing, jitter(try)); err != nil {
			return m, err
		}
	}
}

// Dialect of listings.
func (s *Store) dialect() sqlstore.Dialect {
	rename := qualified(s.schema)
	return sqlstore.Dialect{
		Param:      func(n int) string { return fmt.Sprintf("$%d", n) },
		AnyOf:      func(column, param string) string { return column + " = ANY(CAST(" + param + " AS text[]))" },
		Array:      func(list []string) any { return texts(list...) },
		Runs:       rename("durable_runs"),
		Attributes: rename("durable_attributes"),
		LastSeq:    "(SELECT max(e.seq) FROM " + rename("durable_events") + " AS e WHERE e.run_no = no)",
	}
}
