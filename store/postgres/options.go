package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Options configure a store. The zero value is what most programs want.
type Options struct {
	// Schema to keep the tables in. It is created when it does not exist.
	// Empty: the first schema of the connection's search path.
	Schema string
	// Writers is how many connections are kept for writing; 0: 4. Commits
	// beyond that wait for each other.
	Writers int
	// DSN is for New: it lets the store open the one connection that it cannot
	// take from a pool, the one that listens. Without it the store does not
	// hear of other processes' changes before the next beat, and has no
	// presence.
	DSN string
	// Pooled says that connections go through a pooler that gives each
	// transaction another server session, such as PgBouncer in transaction
	// mode, which must carry prepared statements from session to session: 1.21 or
	// later, with max_prepared_statements above 0. Opening fails with
	// ErrInvalid where it does not, and where there is such a pooler and this is
	// not set. The store then uses nothing that lives in a session: no
	// listening, no presence, no session settings. What others commit is found at
	// the next beat, and an executor that is gone when its lease has run out.
	Pooled bool
	// NoPresence leaves it to leases alone to tell that an executor is gone.
	NoPresence bool
	// Limits of what Commit accepts; zero fields take store.DefaultLimits. Payload
	// and Batch are at most 256 MiB.
	Limits store.Limits
	// ManualMigrations makes opening fail with a *store.SchemaError where the
	// schema is older than this program needs, instead of bringing it up to
	// date: then Schema.Migrate does, at a time of the operator's choice. A
	// database without our tables gets them all the same.
	ManualMigrations bool
	// NoMigrationBackup changes the schema without a copy of our tables first,
	// for those who have made one themselves (pg_dump): the copy needs as much
	// disk as the data, its time, and the right to create a schema.
	NoMigrationBackup bool

	silence    time.Duration                                   // for tests: in the place of the constant
	message    int                                             // the same
	migrations func([]sqlstore.Migration) []sqlstore.Migration // for tests: what the schema becomes one day
}

const (
	defaultWriters = 4
	maxReaders     = 16
	connectTimeout = 10 * time.Second
	openTimeout    = 2 * time.Minute
	// maxSilence is how long the server may take to answer a statement, before
	// the connection is given up. It is more than any lock of ours is waited for.
	maxSilence = 20 * time.Second
	// maxLimit is for Limits: a payload is twice as long on its way.
	maxLimit = 256 << 20
)

// Open opens the database of a connection string, in the form of a URL or of
// key=value pairs, and brings the schema up to date. It fails when the server
// cannot be reached. Errors never contain the password.
func Open(dsn string) (*Store, error) { return OpenOptions(dsn, Options{}) }

// OpenOptions is Open with options; Options.DSN is ignored.
func OpenOptions(dsn string, o Options) (*Store, error) {
	dsn, err := complete(dsn)
	if err != nil {
		return nil, err
	}
	o.DSN = dsn
	if o.Writers <= 0 {
		o.Writers = defaultWriters
	}
	if o.silence == 0 {
		o.silence = maxSilence
	}
	db, err := connect(dsn, o.silence)
	if err != nil {
		return nil, err
	}
	long, err := connect(dsn, 0)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	long.SetMaxIdleConns(0)
	long.SetMaxOpenConns(2)
	// A connection that comes and goes costs a handshake of several round trips
	// and a server process.
	db.SetMaxIdleConns(8)
	// A thousand runs that are loaded at once must not take all that the server
	// has. No call holds one connection while it waits for a second.
	db.SetMaxOpenConns(o.Writers + maxReaders)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s, err := open(db, long, o)
	if err != nil {
		return nil, errors.Join(masked(dsn, err), db.Close(), long.Close())
	}
	s.ownsDB = true
	return s, nil
}

// connect returns connections of a complete dsn, which give up a server that
// says nothing for so long; 0: never.
func connect(dsn string, silence time.Duration) (*sqlx.DB, error) {
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, masked(dsn, err)
	}
	connector.Dialer(dialer{silence})
	return sqlx.NewDb(openDB(connector), "postgres"), nil
}

// New uses connections of db, which stays open when the store is closed. The
// store keeps Options.Writers of them to itself; db needs at least two more.
//
// The driver of db must be github.com/lib/pq, or wrap it, as those do that
// trace what they pass on. Another one is refused with an error that matches
// store.ErrInvalid.
//
// How long a server may say nothing is the caller's to bound, in the dialer of
// db: where it is not, one that stands still holds calls, and Close, until the
// operating system gives the connection up.
func New(db *sqlx.DB, o Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("postgres: New needs a database: %w", store.ErrInvalid)
	}
	if o.DSN != "" {
		dsn, err := complete(o.DSN)
		if err != nil {
			return nil, err
		}
		o.DSN = dsn
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := checkDriver(ctx, db); err != nil {
		return nil, masked(o.DSN, err)
	}
	s, err := open(db, db, o)
	return s, masked(o.DSN, err)
}

func open(db, long *sqlx.DB, o Options) (*Store, error) {
	if err := o.check(db); err != nil {
		return nil, err
	}
	s := newStore(db, o)
	s.long = long
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := s.prepare(ctx, o); err != nil {
		return nil, err
	}
	return s, nil
}

func (o *Options) check(db *sqlx.DB) error {
	if len(o.Schema) > 63 || strings.ContainsAny(o.Schema, "\"'\\\x00") {
		return fmt.Errorf("postgres: Options.Schema %.80q: at most 63 bytes, no quotes or backslashes: %w", o.Schema, store.ErrInvalid)
	}
	if o.Writers <= 0 {
		o.Writers = defaultWriters
	}
	if n := db.Stats().MaxOpenConnections; n > 0 && o.Writers > n-2 {
		if n < 3 {
			return fmt.Errorf("postgres: the database allows %d connections, the store needs at least 3: %w", n, store.ErrInvalid)
		}
		o.Writers = n - 2
	}
	d := store.DefaultLimits()
	if o.Limits.Payload <= 0 {
		o.Limits.Payload = d.Payload
	}
	if o.Limits.Batch <= 0 {
		o.Limits.Batch = d.Batch
	}
	if o.Limits.Changes <= 0 {
		o.Limits.Changes = d.Changes
	}
	if n := max(o.Limits.Payload, o.Limits.Batch); n > maxLimit {
		return fmt.Errorf("postgres: Options.Limits of %d bytes: PostgreSQL takes no more than %d at a time: %w", n, maxLimit, store.ErrInvalid)
	}
	return nil
}
