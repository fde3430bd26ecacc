package postgres

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Options configure a store. The zero value suits most programs.
type Options struct {
	// Schema holds the tables. It is created if it does not exist. Empty: the
	// first schema of the connection's search path.
	Schema string
	// Writers is how many connections are kept for writing; 0: 4. Further
	// concurrent commits wait for each other.
	Writers int
	// Lanes is how many batches of checkpoints an engine whose runs have much to commit sends
	// at a time, at most one on each connection for writing; 0: 1, one batch after another.
	// Several batches are smaller, and cost both sides more CPU time: they help if the server is
	// on another machine and the way to it is what takes long.
	Lanes int
	// Transactions is how many transactional steps run at a time; 0: 8. Each has a
	// connection to itself while its body runs; further ones wait.
	Transactions int
	// DSN is for New: with it the store opens the one connection that it cannot
	// take from a pool, the one that listens. That one is lib/pq's, whatever the
	// driver of the pool is, and DSN is a connection string as lib/pq understands
	// it. Without it the store learns of other processes' changes only at the next
	// beat, and has no presence.
	DSN string
	// Pooled says that connections go through a pooler that gives each transaction
	// another server session, such as PgBouncer in transaction mode. The pooler
	// must carry prepared statements from session to session: PgBouncer 1.21 or
	// later, with max_prepared_statements above 0. Opening fails with ErrInvalid
	// if it does not, or if there is such a pooler and Pooled is not set. With
	// Pooled the store uses nothing that lives in a session: no listening, no
	// presence, no session settings. It finds what others commit at the next beat,
	// and notices that an executor is gone when its lease has expired.
	Pooled bool
	// NoPresence makes leases the only evidence that an executor is gone.
	NoPresence bool
	// Limits of what Commit accepts; zero fields take store.DefaultLimits. Payload
	// and Batch are at most 256 MiB.
	Limits store.Limits
	// ManualMigrations makes opening fail with a *store.SchemaError if the schema is
	// older than this program needs, instead of migrating it; the operator then calls
	// Schema.Migrate when it suits. A database without our tables still gets them.
	ManualMigrations bool
	// NoMigrationBackup migrates the schema without copying our tables first, for
	// operators who have made a copy themselves (pg_dump): the copy needs as much
	// disk as the data, time, and the right to create a schema.
	NoMigrationBackup bool
	// ReadOnly opens a store to be looked at, such as that of a standby: opening it changes nothing, and
	// fails if the schema is not the one that this program needs. What would change something fails with
	// store.ErrReadOnly, a heartbeat too, so no engine opens on it. There are neither notices nor presence.
	ReadOnly bool

	shared     bool                                            // the pool is the caller's
	readers    int                                             // how many connections are kept for loads
	silence    time.Duration                                   // for tests: replaces the constant
	message    int                                             // the same: the longest statement, in bytes
	migrations func([]sqlstore.Migration) []sqlstore.Migration // for tests: a future schema
}

const (
	defaultWriters = 4
	loaders        = 4 // connections for loads, as far as there are so many
	maxReaders     = 16
	connectTimeout = 10 * time.Second
	openTimeout    = 2 * time.Minute
	// maxSilence is how long the server may take to answer a statement before the
	// connection is given up. It is longer than any wait for one of our locks.
	maxSilence = 20 * time.Second
	// maxLimit bounds Limits: on the wire a payload is twice as long.
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
	o.Writers, o.silence = cmp.Or(max(o.Writers, 0), defaultWriters), cmp.Or(o.silence, maxSilence)
	db, err := connect(dsn, o.silence, interpreted(dsn, o.Pooled))
	if err != nil {
		return nil, err
	}
	long, err := connect(dsn, 0, "")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	long.SetMaxIdleConns(0)
	long.SetMaxOpenConns(2)
	// Opening a connection costs a handshake of several round trips and a server
	// process, so keep some idle.
	db.SetMaxIdleConns(8)
	// A thousand runs loading at once must not use up the server's connections.
	// No call holds one connection while it waits for a second.
	db.SetMaxOpenConns(o.Writers + loaders + maxReaders)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s, err := open(db, long, o)
	if err != nil {
		return nil, errors.Join(masked(dsn, err), db.Close(), long.Close())
	}
	s.ownsDB = true
	if err := s.txs.useOwn(dsn, o.Pooled); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect returns a pool for a complete dsn, whose connections give up on a
// server that stays silent for this long; 0: never. setup, if not empty, is sent first on each.
func connect(dsn string, silence time.Duration, setup string) (*sqlx.DB, error) {
	connector, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, masked(dsn, err)
	}
	connector.Dialer(dialer{silence})
	if setup == "" {
		return sqlx.NewDb(openDB(connector), "postgres"), nil
	}
	return sqlx.NewDb(openDB(&tuned{connector, setup}), "postgres"), nil
}

// tuned makes connections with settings of ours. They are not parameters of the connection, because
// a pooler refuses those that it does not know, also one that keeps sessions and so needs nothing else.
type tuned struct {
	driver.Connector
	setup string
}

func (t *tuned) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := t.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// A server that refuses a setting, because it does not know it, does without: this one is about
	// speed alone.
	_, err = conn.(driver.ExecerContext).ExecContext(ctx, t.setup, nil)
	if err != nil && (sqlState(err) == "" || faultOf(err) == faultLost) {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// interpreted says what turns the JIT compiler off: it takes longer (20 to 40 ms) than any page of a
// listing that has arms for many and for few matches, whose cost the planner adds up. Connections
// through a pooler that does not keep sessions are set for others, too; they stay as they are.
func interpreted(dsn string, pooled bool) string {
	cfg, err := pq.NewConfig(dsn)
	if _, set := cfg.Runtime["jit"]; pooled || set || err != nil {
		return ""
	}
	return "SET jit = off"
}

// New uses connections of db, which stays open when the store is closed. The
// store reserves Options.Writers of them; db needs at least two more.
//
// The driver of db must be github.com/lib/pq or github.com/jackc/pgx/v5/stdlib, in any
// of its query modes, or wrap one of them, as tracing drivers do: a *sql.DB of pgx is
// passed as sqlx.NewDb(db, "pgx"). Any other driver is refused with an error that matches
// store.ErrInvalid.
//
// The caller must bound how long a server may stay silent, in the dialer of db.
// Without a bound, a server that hangs blocks calls, and Close, until the
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
	o.shared = true
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

// writes returns an error if nothing may be changed.
func (o *Options) writes() error {
	if o.ReadOnly {
		return fmt.Errorf("the store was opened read-only and %w", store.ErrReadOnly)
	}
	return nil
}

func (o *Options) check(db *sqlx.DB) error {
	if len(o.Schema) > 63 || strings.ContainsAny(o.Schema, "\"'\\\x00") {
		return fmt.Errorf("postgres: Options.Schema %.80q: at most 63 bytes, no quotes or backslashes: %w", o.Schema, store.ErrInvalid)
	}
	o.Writers = cmp.Or(max(o.Writers, 0), defaultWriters)
	if n := db.Stats().MaxOpenConnections; n > 0 && o.Writers > n-2 {
		if n < 3 {
			return fmt.Errorf("postgres: the database allows %d connections, the store needs at least 3: %w", n, store.ErrInvalid)
		}
		o.Writers = n - 2
	}
	o.Transactions = cmp.Or(max(o.Transactions, 0), defaultTransactions)
	if n := db.Stats().MaxOpenConnections; n > 0 && o.shared {
		o.Transactions = min(o.Transactions, n-o.Writers-1) // one is left for reading
	}
	o.readers = loaders
	if n := db.Stats().MaxOpenConnections; n > 0 && o.shared {
		o.readers = min(o.readers, n-o.Writers-o.Transactions-1)
	}
	d := store.DefaultLimits()
	l := &o.Limits
	l.Payload, l.Batch, l.Changes = cmp.Or(max(l.Payload, 0), d.Payload), cmp.Or(max(l.Batch, 0), d.Batch), cmp.Or(max(l.Changes, 0), d.Changes)
	if n := max(o.Limits.Payload, o.Limits.Batch); n > maxLimit {
		return fmt.Errorf("postgres: Options.Limits of %d bytes: PostgreSQL takes no more than %d at a time: %w", n, maxLimit, store.ErrInvalid)
	}
	return nil
}
