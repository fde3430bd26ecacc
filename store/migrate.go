package store

import (
	"context"
	"time"
)

// Migrator gives access to the schema of a database without going through the
// Store that keeps runs in it, so it also works on a database that cannot be
// opened yet, or can no longer be opened. sqlite.OpenSchema and
// postgres.OpenSchema return one.
type Migrator interface {
	// Plan says what Migrate would do now and changes nothing. It returns a
	// *SchemaError when the schema of the database is newer than this program knows.
	Plan(ctx context.Context) (MigrationPlan, error)

	// Migrate brings the schema to the newest version this program knows. All
	// steps and the new version number are one transaction: after an error or a
	// crash the database is as it was, with the version it had, and the program
	// that used it can go on. If the database holds runs, Migrate first makes a
	// backup of exactly the state that the steps start from.
	//
	// Any number of processes may call it at once; one does the work and the
	// others find it done (From == To). Migrate leaves a newer schema alone and
	// returns a *SchemaError.
	Migrate(ctx context.Context) (Migration, error)

	// Restore replaces what the database holds by the data of a backup, with
	// the schema version of the backup: the way back after an upgrade. It is
	// one transaction too. The replaced data is kept, and kept names it; empty:
	// there was none.
	//
	// No process may be executing runs of the database; Restore fails if it
	// sees one. What happened since the backup is gone from the runs, but not
	// from the world: steps that ran since will run again.
	Restore(ctx context.Context, from string) (kept string, err error)
}

// MigrationPlan is what a Migrator would do.
type MigrationPlan struct {
	Have int // version of the database; 0: it has no schema yet
	Know int // the newest version this program knows, which Migrate leads to
	// Steps that are missing, in order; empty when there is nothing to do.
	Steps []MigrationStep
	// Backup says that Migrate would make a backup first: there are steps to
	// run and runs to lose.
	Backup bool
}

// MigrationStep is one numbered step of a schema.
type MigrationStep struct {
	Version int
	Name    string
	SQL     string
	// Rows holds the row count of each existing table that the step changes. A
	// step that only adds its own tables and indexes touches none.
	Rows map[string]int64
}

// Migration is what a Migrator did.
type Migration struct {
	From, To int
	Backup   string // name of the backup; empty: there was nothing to back up
	Took     time.Duration
}

// Backuper is a store that can copy itself while it is in use.
type Backuper interface {
	// Backup makes a copy of the whole store as it was at one moment between the
	// call and its return: the copy contains every Change that was acknowledged
	// before the call, and each Change whole or not at all. Others may write
	// meanwhile. Once Backup has returned nil, the copy is as durable as the store.
	//
	// to is a path if the store is a file, and a name if it is on a server.
	// Backup refuses an existing one with ErrInvalid and leaves it alone. A
	// crash leaves nothing under that name.
	Backup(ctx context.Context, to string) error
}

// Maintainer is a store that benefits from occasional maintenance, such as once
// a day or after many runs were deleted.
type Maintainer interface {
	// Maintain looks after the database's statistics and disk space. It changes
	// nothing that the store keeps, may run while others read and write, does
	// not block them for long, and may be abandoned at any moment.
	Maintain(ctx context.Context) error
}
