package sqlite

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Synchronous says how far a commit has got when it is acknowledged.
type Synchronous int

const (
	// Full: on the disk. What was acknowledged survives a power failure.
	Full Synchronous = iota
	// Normal: with the operating system. It survives the end of the process,
	// but the last commits may be lost with the power. Several times faster.
	Normal
	// Off: like Normal, but a power failure may also damage the file. For tests.
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
	// underscores. Stores with different prefixes share a file but not data.
	Prefix string
	// Readers is the number of read connections; 0: 4.
	Readers int
	// FileMode is given to a database file that is created; 0: 0600.
	FileMode fs.FileMode
	// Clock judges leases and due times; nil: time.Now. All processes on one
	// file must see the same time, so this is for tests.
	Clock func() time.Time
	// Watch is the longest pause between two polls for changes by other processes, where
	// the kernel does not tell of them, and the least time between two looks for requests;
	// 0: 20 ms. Negative: nothing is polled or watched, and only the beat finds such
	// changes. That is for tests with a virtual clock, which would go through every poll of
	// a virtual year.
	Watch time.Duration
	// TxSetup is SQL that prepares the connection on which transactional steps run, such
	// as "PRAGMA foreign_keys = ON": the program's own connections are not used for
	// them. New adds foreign_keys if it is on where db is connected.
	TxSetup string
	// NoPresence turns lock files off: an executor then counts as live until its
	// lease has expired, even if its process is gone.
	NoPresence bool
	// ManualMigrations makes opening fail with a *store.SchemaError if the schema
	// is older than this program needs, instead of migrating it; the operator then
	// calls Schema.Migrate when it suits. A file without a schema still gets one.
	ManualMigrations bool
	// NoMigrationBackup migrates the schema without copying the file first, for
	// operators who have made a copy themselves: the copy needs as much disk as
	// the data, and time.
	NoMigrationBackup bool
	// GiveBack creates a new file such that Maintain can give the space of
	// deleted runs back to the file system. Without it, that space is reused and
	// the file does not shrink. It does not affect an existing file; "PRAGMA
	// auto_vacuum = INCREMENTAL; VACUUM;" changes that.
	GiveBack bool
	// ReadOnly opens a store to be looked at, such as a file that this process may not write, or one on a
	// full disk: nothing is written, and where no program has the file open, nothing is made beside it.
	// Opening fails if there is no file, or if its schema is not the one that this program needs. What would
	// change something fails with store.ErrReadOnly, a heartbeat too, so no engine opens on it.
	ReadOnly bool

	migrations func([]sqlstore.Migration) []sqlstore.Migration // for tests: a future schema
}

// writes returns an error if nothing may be changed.
func (o *Options) writes() error {
	if o.ReadOnly {
		return fmt.Errorf("the store was opened read-only and %w", store.ErrReadOnly)
	}
	return nil
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
