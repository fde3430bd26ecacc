package store

import (
	"context"
	"time"
)

// Migrator is the way to the schema of a database, past the Store that keeps
// runs in it: what it says and does also goes for a database that cannot be
// opened yet, or no more. sqlite.OpenSchema and postgres.OpenSchema return one.
type Migrator interface {
	// Plan says what Migrate would do now, and changes nothing. A database
	// whose schema is newer than this program knows gives a *SchemaError.
	Plan(ctx context.Context) (MigrationPlan, error)

	// Migrate brings the schema to the newest version this program knows. All
	// steps and the new version number are one transaction: after an error or a
	// crash the database is as it was, with the version it had, and the program
	// that used it can go on. Where the database holds runs, a backup is made
	// first, of exactly the state that the steps begin with.
	//
	// Any number of processes may call it at once; one does the work and the
	// others find it done (From == To). A newer schema gives a *SchemaError and
	// is left alone.
	Migrate(ctx context.Context) (Migration, error)

	// Restore puts the data of a backup in the place of what the database
	// holds, with the schema version that the backup has: that is the way back
	// after an upgrade. It is one transaction too. What was there is kept, and
	// kept names it; empty: there was nothing.
	//
	// No process may have runs of the database in hand; one that is seen makes
	// it fail. What happened since the backup is gone from the runs, but not
	// from the world: steps that were done since will be done again.
	Restore(ctx context.Context, from string) (kept string, err error)
}

// MigrationPlan is what a Migrator would do.
type MigrationPlan struct {
	Have int // version of the database; 0: it has no schema yet
	Know int // the newest version this program knows, and where Migrate leads
	// Steps that are missing, in order; empty when there is nothing to do.
	Steps []MigrationStep
	// Backup says that a backup would be made first: there are steps, and runs.
	Backup bool
}

// MigrationStep is one numbered step of a schema.
type MigrationStep struct {
	Version int
	Name    string
	SQL     string
	// Rows is, for each table there is that the step changes, how many rows it
	// has. A step that only adds tables and indexes of its own touches none.
	Rows map[string]int64
}

// Migration is what a Migrator did.
type Migration struct {
	From, To int
	Backup   string // name of the backup that was made; empty: there was nothing to back up
	Took     time.Duration
}

// Backuper is a store that can copy itself while it is in use.
type Backuper interface {
	// Backup makes a copy of the whole store as it was at one moment between
	// the call and its return: every Change that was acknowledged before the
	// call is in it, and each Change whole or not at all. Others may write
	// meanwhile. When it returned nil the copy is as durable as the store.
	//
	// to is a path for a store that is a file, a name for one on a server. One
	// that exists already is refused with ErrInvalid and left alone. A crash
	// leaves nothing under the name.
	Backup(ctx context.Context, to string) error
}

// Maintainer is a store that is the better for some care now and then, such as
// once a day or after many runs were deleted.
type Maintainer interface {
	// Maintain gives the database's statistics and space some care. It changes
	// nothing that the store keeps, may be called while others read and write,
	// does not hold them up for long, and may be given up at any moment.
	Maintain(ctx context.Context) error
}
