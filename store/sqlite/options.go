package sqlite

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Synchronous says how far a commit has gone when it is acknowledged.
type Synchronous int

const (
	// Full: on the disk. What was acknowledged survives a power failure.
	Full Synchronous = iota
	// Normal: with the operating system. It survives the end of the process,
	// but the last commits may be lost with the power. Several times faster.
	Normal
	// Off: as Normal, and a power failure may also damage the file. For tests.
	Off
)

func (s Synchronous) String() string {
	switch s {
	case Full:
		return "FULL"
	case Normal:
		return "NORMAL"
	case Off:
		return "OFF"
	}
	return fmt.Sprintf("Synchronous(%d)", int(s))
}

// Options of a store. The zero value is what Open uses.
type Options struct {
	// Synchronous is Full by default.
	Synchronous Synchronous
	// Prefix of the tables; empty: "durable_". At most 32 letters, digits and
	// underscores. Stores with different prefixes share a file, not data.
	Prefix string
	// Readers is the number of connections for reading; 0: 4.
	Readers int
	// FileMode is given to a database file that is created; 0: 0600.
	FileMode fs.FileMode
	// Clock judges leases and due times; nil: time.Now. All processes on one
	// file must see the same time, so this is for tests.
	Clock func() time.Time
	// Watch is the longest pause between two looks for what other processes
	// did, while Notify runs; 0: 20 ms. A negative value looks never, so that
	// only the beat finds it: for tests with a clock of their own, which would
	// have to go through every look of a virtual year.
	Watch time.Duration
	// NoPresence does without lock files: then an executor counts as live until
	// its lease has run out, even if its process is gone.
	NoPresence bool
	// ManualMigrations makes opening fail with a *store.SchemaError where the
	// schema is older than this program needs, instead of bringing it up to
	// date: then Schema.Migrate does, at a time of the operator's choice. A file
	// without a schema gets one all the same.
	ManualMigrations bool
	// NoMigrationBackup changes the schema without a copy of the file first, for
	// those who have made one themselves: the copy needs as much disk as the
	// data, and its time.
	NoMigrationBackup bool
	// GiveBack makes a file that is created such that Maintain can give the
	// space of deleted runs back to the file system. Without it, that space is
	// used again, and the file does not shrink. A file that exists is as it was
	// created; "PRAGMA auto_vacuum = INCREMENTAL; VACUUM;" changes it.
	GiveBack bool

	migrations func([]sqlstore.Migration) []sqlstore.Migration // for tests: what the schema becomes one day
}

func (o Options) withDefaults() (Options, error) {
	if o.Synchronous < Full || o.Synchronous > Off {
		return o, fmt.Errorf("sqlite: %v is none of Full, Normal and Off: %w", o.Synchronous, store.ErrInvalid)
	}
	if o.Readers < 0 {
		return o, fmt.Errorf("sqlite: Options.Readers is %d: %w", o.Readers, store.ErrInvalid)
	}
	if o.Readers == 0 {
		o.Readers = 4
	}
	if o.FileMode == 0 {
		o.FileMode = 0o600
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Watch == 0 {
		o.Watch = 20 * time.Millisecond
	}
	return o, nil
}
