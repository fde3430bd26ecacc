package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"time"

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
	// Unlimited is run first in the transaction: it lifts the time limits that
	// the database sets for others. Empty: there are none.
	Unlimited string
	// Exclude is run next, so that two processes do not migrate at once; empty
	// where beginning a transaction does that already.
	Exclude string
	// Lock keeps all other writers out until the transaction ends. It takes the
	// locks in the order in which other transactions do, so that no step takes a
	// lock out of order. It is called before the backup and the steps of a
	// database that has a schema. nil: beginning a transaction does that already.
	Lock func(ctx context.Context, tx *sqlx.Tx) error
	// Exists selects whether the version table exists (one boolean or 0/1).
	Exists string
	// Create makes the version table. Version selects the highest version in
	// it, 0 if it is empty. Record inserts (version, name, time in µs).
	Create, Version, Record string
	// Filled selects whether the database holds anything worth a backup. It
	// runs only if there is a schema. Empty: nothing ever is.
	Filled string
	// Backup copies the database, within the transaction and before its first
	// step, and returns the name of the copy. nil: no backups.
	Backup func(ctx context.Context, tx *sqlx.Tx, from int) (string, error)
	// Tx is how the transaction is begun; nil: the driver's default.
	Tx *sql.TxOptions
	// Now returns the time to record.
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

// refuse returns the error for a schema that is newer than the program.
func (m *Migrator) refuse(have int) error {
	if have > m.Latest() {
		return &store.SchemaError{Have: have, Know: m.Latest()}
	}
	return nil
}

// Check returns a *store.SchemaError with todo unless the schema is the one
// that the program knows.
func (m *Migrator) Check(ctx context.Context, q sqlx.QueryerContext, todo string) error {
	have, err := m.Current(ctx, q)
	if err == nil {
		err = m.refuse(have)
	}
	if err == nil && have < m.Latest() {
		err = &store.SchemaError{Have: have, Know: m.Latest(), Todo: todo}
	}
	return err
}

// Plan says what Run would do, and changes nothing. q should be a transaction,
// so that the plan is as of one moment.
func (m *Migrator) Plan(ctx context.Context, q sqlx.QueryerContext) (store.MigrationPlan, error) {
	p := store.MigrationPlan{Know: m.Latest()}
	var err error
	if p.Have, err = m.Current(ctx, q); err == nil {
		err = m.refuse(p.Have)
	}
	if err != nil || p.Have == p.Know {
		return p, err
	}
	there := Tables(m.Migrations, p.Have)
	for i := range m.Migrations[p.Have:] {
		step := &m.Migrations[p.Have+i]
		s := store.MigrationStep{Version: step.Version, Name: step.Name, SQL: step.SQL, Rows: map[string]int64{}}
		for _, table := range step.changed() {
			if !slices.Contains(there, table) {
				continue
			}
			var rows int64
			if err := sqlx.GetContext(ctx, q, &rows, "SELECT count(*) FROM "+table); err != nil {
				return p, fmt.Errorf("sqlstore: count the rows of %s: %w", table, err)
			}
			s.Rows[Unqualified(table)] = rows
		}
		p.Steps = append(p.Steps, s)
	}
	p.Backup, err = m.worthABackup(ctx, q, p.Have)
	return p, err
}

// worthABackup reports whether Run would begin with a backup.
func (m *Migrator) worthABackup(ctx context.Context, q sqlx.QueryerContext, from int) (filled bool, err error) {
	if from == 0 || m.Filled == "" || m.Backup == nil {
		return false, nil
	}
	if err := sqlx.GetContext(ctx, q, &filled, m.Filled); err != nil {
		return false, fmt.Errorf("sqlstore: look whether there is anything to back up: %w", err)
	}
	return filled, nil
}

// Run applies the missing steps, all in one transaction, after a backup if
// there is something to lose. An error or a crash leaves the schema as it was,
// so that the previous program can go on with it. (With a transaction per step,
// a step that fails after another would leave a version that neither program
// knows.) A database with a newer schema is refused with *store.SchemaError and
// left alone. Nothing is written when the schema is up to date.
func (m *Migrator) Run(ctx context.Context, db *sqlx.DB) (done store.Migration, err error) {
	began := time.Now()
	done.From, err = m.Current(ctx, db)
	done.To = done.From
	if err == nil {
		err = m.refuse(done.From)
	}
	if err != nil || done.From == m.Latest() {
		return done, err
	}
	tx, err := db.BeginTxx(ctx, m.Tx)
	if err != nil {
		return done, fmt.Errorf("sqlstore: begin migration: %w", err)
	}
	if err := m.apply(ctx, tx, &done); err != nil {
		// The first error is the one to report; if the rollback fails as well,
		// the connection, and with it the transaction, is gone.
		_ = tx.Rollback()
		return done, err
	}
	if err := tx.Commit(); err != nil {
		return done, fmt.Errorf("sqlstore: commit migration: %w", err)
	}
	done.To, done.Took = m.Latest(), time.Since(began)
	return done, nil
}

func (m *Migrator) apply(ctx context.Context, tx *sqlx.Tx, done *store.Migration) (err error) {
	if m.Unlimited != "" {
		if _, err := tx.ExecContext(ctx, m.Unlimited); err != nil {
			return fmt.Errorf("sqlstore: lift time limits: %w", err)
		}
	}
	if m.Exclude != "" {
		if _, err := tx.ExecContext(ctx, m.Exclude); err != nil {
			return fmt.Errorf("sqlstore: wait for other migrations: %w", err)
		}
	}
	// Read again: another process may have migrated while this one waited.
	if done.From, err = m.Current(ctx, tx); err == nil {
		err = m.refuse(done.From)
	}
	if err != nil || done.From == m.Latest() {
		return err
	}
	if m.Lock != nil && done.From > 0 {
		if err := m.Lock(ctx, tx); err != nil {
			return fmt.Errorf("sqlstore: lock the tables for the migration from version %d to %d, which was not begun: %w", done.From, m.Latest(), err)
		}
	}
	worth, err := m.worthABackup(ctx, tx, done.From)
	if err != nil {
		return err
	}
	if worth {
		if done.Backup, err = m.Backup(ctx, tx, done.From); err != nil {
			return fmt.Errorf("sqlstore: back up before the migration from version %d to %d, which was not begun: %w", done.From, m.Latest(), err)
		}
	}
	return m.Steps(ctx, tx, done.From, m.Latest())
}

// Steps applies the steps after version from, up to and including version to.
func (m *Migrator) Steps(ctx context.Context, tx *sqlx.Tx, from, to int) error {
	if from == 0 {
		if _, err := tx.ExecContext(ctx, m.Create); err != nil {
			return fmt.Errorf("sqlstore: create the schema table: %w", err)
		}
	}
	for _, step := range m.Migrations[from:to] {
		if _, err := tx.ExecContext(ctx, step.SQL); err != nil {
			return fmt.Errorf("sqlstore: migration %04d_%s: %w", step.Version, step.Name, err)
		}
		if _, err := tx.ExecContext(ctx, m.Record, step.Version, step.Name, int64(m.Now())); err != nil {
			return fmt.Errorf("sqlstore: record migration %d: %w", step.Version, err)
		}
	}
	return nil
}
