package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

//go:embed sql/*.sql
var statementFiles embed.FS

//go:embed migrations/*.sql
var migrationFiles embed.FS

// tableNames has our tables and the view, but no index, which has the same prefix and is
// always in its table's schema.
var tableNames = map[string]bool{
	"durable_runs": true, "durable_events": true, "durable_branches": true, "durable_inbox": true, "durable_attributes": true,
	"durable_holds": true, "durable_executors": true, "durable_queues": true, "durable_queue_begun": true, "durable_requests": true,
	"durable_schedules": true, "durable_tell_requests": true, "durable_schema": true, "durable_history": true,
}

// qualified returns a rename that puts the schema before every table name. Quoted text is
// a value and stays as it is, and so do comments: `relname = 'durable_runs'` must not get
// a schema. Two other names get one too: the argument of to_regclass, which is inside a
// string, and an index to drop, which has no table beside it that determines its schema.
//
// It reads by hand, because each Open passes all statements through it, and a regular
// expression took most of the time of an Open.
func qualified(schema string) func(string) string {
	prefix := pq.QuoteIdentifier(schema) + "."
	return func(sql string) string {
		var b strings.Builder
		written := 0 // b has sql up to here
		for i := 0; i < len(sql); {
			end := i + 1
			switch c := sql[i]; {
			case c == '\'' || c == '"':
				// A doubled quote ends one text and begins the next.
				end += until(sql[end:], string(c)) + 1
				if c == '\'' && strings.HasSuffix(sql[:i], "to_regclass(") {
					b.WriteString(sql[written:i] + pq.QuoteLiteral(prefix+sql[i+1:end-1]))
					written = end
				}
			case strings.HasPrefix(sql[i:], "--"):
				end = i + until(sql[i:], "\n")
			case inName(c):
				for end < len(sql) && inName(sql[end]) {
					end++
				}
				if name := sql[i:end]; tableNames[name] || strings.HasPrefix(name, "durable_") && strings.HasSuffix(sql[:i], "DROP INDEX ") {
					b.WriteString(sql[written:i] + prefix)
					written = i
				}
			}
			i = end
		}
		b.WriteString(sql[written:])
		return b.String()
	}
}

// until returns the length of s before stop, or of all of it.
func until(s, stop string) int {
	before, _, _ := strings.Cut(s, stop)
	return len(before)
}

func inName(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// prepare finds the schema, reads the statements and migrates.
func (s *Store) prepare(ctx context.Context, o Options) error {
	if err := s.locate(ctx, o); err != nil {
		return err
	}
	name, err := databaseOf(ctx, s.db, s.genuine)
	if err != nil {
		return fmt.Errorf("postgres: open: %w", err)
	}
	s.database.Store(&name)
	if o.Schema != "" && !o.ReadOnly {
		if err := s.createSchema(ctx); err != nil {
			return err
		}
	}
	err = s.migrations.Check(ctx, s.db, manual)
	e, ok := errors.AsType[*store.SchemaError](err)
	switch {
	case ok && e.Have < e.Know && (e.Have == 0 || !o.ManualMigrations) && !o.ReadOnly:
		// It has no deadline, however long its backup takes: cut short, it would
		// never finish.
		_, err = s.migrate(context.WithoutCancel(ctx))
		return err
	case err != nil:
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// manual says what an operator does about a schema that is too old.
const manual = "call Migrate of postgres.OpenSchema, which makes a backup first, or open the store without Options.ManualMigrations"

// locate finds the schema and reads the statements; it changes nothing.
func (s *Store) locate(ctx context.Context, o Options) error {
	var version string
	var first *string
	if err := s.db.QueryRowxContext(ctx, "SELECT pg_catalog.version(), pg_catalog.current_schema()").Scan(&version, &first); err != nil {
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
		return fmt.Errorf("postgres: open: no schema of the search path exists: check its name, or set Options.Schema to have it made: %w", store.ErrInvalid)
	}
	if err := checkSessions(ctx, s.db, &o); err != nil {
		return err
	}
	rename := forServer(s.genuine, qualified(s.schema))
	var err error
	if s.sql, err = sqlstore.ReadStatements(statementFiles, "sql", rename); err != nil {
		return err
	}
	s.sql[beatAndLook] = sqlstore.Statement{SQL: composeBeat(s.sql, executorsBy(s.PresenceKind())), Own: true}
	s.sql[censusAndNamed] = sqlstore.Statement{SQL: composeNamed(s.sql, executorsBy(s.PresenceKind())), Own: true}
	s.reads = map[string]bool{}
	for name, st := range s.sql {
		s.reads[name] = !writes(st.SQL)
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
		Unlimited:  s.sql.Text("no_time_limits"),
		Lock:       func(ctx context.Context, tx *sqlx.Tx) error { return s.lockTables(ctx, tx, "EXCLUSIVE") },
		Create:     s.sql.Text("schema_create"),
		Version:    s.sql.Text("schema_version"),
		Record:     s.sql.Text("schema_record"),
		Filled:     s.sql.Text("schema_filled"),
		// The steps must see what was committed while they waited for their locks.
		Tx:  &sql.TxOptions{Isolation: sql.LevelReadCommitted},
		Now: func() store.Time { return store.TimeOf(time.Now()) },
	}
	if !o.NoMigrationBackup {
		s.migrations.Backup = s.copyBeforeMigration
	}
	return nil
}

// onlyPostgreSQL matches the parts of a migration that other servers that speak its
// protocol refuse.
var onlyPostgreSQL = regexp.MustCompile(`(?s)-- begin: PostgreSQL\n.*?-- end: PostgreSQL\n`)

// forServer returns a rename that also leaves out what the server does not take.
func forServer(genuine bool, rename func(string) string) func(string) string {
	if genuine {
		return rename
	}
	return func(sql string) string { return rename(onlyPostgreSQL.ReplaceAllString(sql, "")) }
}

// writes reports whether a statement changes something, or may.
func writes(sql string) bool {
	return slices.ContainsFunc([]string{"INSERT INTO", "UPDATE", "DELETE FROM", "pg_notify"}, func(verb string) bool { return strings.Contains(sql, verb) })
}

// createSchema is not part of the migration's transaction, because that begins by
// looking into the schema. IF NOT EXISTS alone fails when two processes create the
// schema at once; the second check then finds it.
func (s *Store) createSchema(ctx context.Context) error {
	err := s.opts.writes()
	if err != nil {
		return described("make the schema", err)
	}
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

// migrate brings the schema up to date.
func (s *Store) migrate(ctx context.Context) (m store.Migration, err error) {
	err = s.alone(ctx, func() (err error) {
		m, err = s.migrations.Run(ctx, s.long)
		return err
	})
	if err != nil {
		return m, fmt.Errorf("postgres: %w", err)
	}
	return m, nil
}

// lockFor is how long a migration or a restore waits for the lock on one of our
// tables. All writers queue behind it for that long; then it lets them pass and
// begins again, until aloneWithin is over.
const (
	lockFor     = 100 * time.Millisecond
	aloneWithin = time.Minute
)

// alone retries f, a transaction that needs our tables exclusively, until it gets
// them.
func (s *Store) alone(ctx context.Context, f func() error) error {
	start := time.Now()
	for try := 0; ; try++ {
		err := f()
		if err == nil {
			return nil
		}
		fault := faultOf(err)
		switch {
		case fault == faultRetry && time.Since(start) > aloneWithin:
			return fmt.Errorf("our tables were in use for %v: end the transactions that hold locks on them%s and try again: %w", aloneWithin, s.holders(ctx), err)
		case fault != faultRetry && (try == 5 || (fault != faultConflict && !duplicateTable(err))):
			return err
		}
		if e := pause(ctx, s.closing, lockFor/2+jitter(try)); e != nil {
			return after(err, e)
		}
	}
}

// holders names the oldest transactions that hold locks on our tables; empty if
// there are none or the role may not see them.
func (s *Store) holders(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var list []string
	if err := s.db.SelectContext(ctx, &list, s.sql.Text("lock_holders"), s.schema); err != nil || len(list) == 0 {
		return ""
	}
	return " (" + strings.Join(list, ", ") + ")"
}

// dialect returns the SQL dialect of listings.
func (s *Store) dialect() sqlstore.Dialect {
	rename := qualified(s.schema)
	return sqlstore.Dialect{
		Param: func(n int) string { return fmt.Sprintf("$%d", n) },
		AnyOf: func(column, param string) string { return column + " = ANY(CAST(" + param + " AS text[]))" },
		Array: func(list []string) any { return names(list...) },
		Bar: func(column string) string {
			if strings.HasSuffix(column, "_at") {
				return "(" + column + " + 0)"
			}
			return "(" + column + " || '')"
		},
		Unfinished: "status NOT IN ('completed', 'failed', 'cancelled')",
		Owned:      []string{"owner <> ''"},
		Kinds:      "status, code, workflow",
		Mail:       "mail AND inbox > seen",
		Hashed:     func(text string) string { return "md5(" + text + ")" },
		Runs:       rename("durable_runs"),
		Attributes: rename("durable_attributes"),
		LastSeq:    "(SELECT pg_catalog.max(e.seq) FROM " + rename("durable_events") + " AS e WHERE e.run_no = no)",
	}
}
