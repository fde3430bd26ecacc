package postgres

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Store is a store.Store in a PostgreSQL database. It is also a
// store.Notifier, store.Meter, store.Presence, store.Clocked and
// store.TxCommitter.
//
// Opening it starts no goroutine. The first Notify or Beat starts the one that
// listens, and the first notice for other processes starts the one that sends.
// Close ends both.
type Store struct {
	db           *sqlx.DB
	long         *sqlx.DB // for operations without a time limit: copies, migrations, maintenance
	ownsDB       bool
	schema       string
	sql          sqlstore.Statements
	reads        map[string]bool // names of statements that change nothing
	migrations   *sqlstore.Migrator
	limits       store.Limits
	opts         Options
	genuine      bool // the server is PostgreSQL itself
	sessionLocks bool // and there is no pooler in front of it
	presence     bool
	writers      *writers
	readers      *writers // for loads; the same as writers if the database allows few connections
	txs          *transactions
	numbers      numbers
	notices      *notices
	listener     *listener // nil: there is no way to listen
	claims       unsettled
	suspects     suspicions
	heldUp       heldUp
	sightings    sqlstore.Sightings
	database     atomic.Pointer[string] // its name and server, once that was asked

	counts struct{ statements, reads, commits atomic.Int64 }

	closing chan struct{} // closed when Close begins
	calls   sync.WaitGroup

	mu     sync.Mutex
	closed bool // no call may begin
}

var (
	_ store.Store       = (*Store)(nil)
	_ store.Notifier    = (*Store)(nil)
	_ store.Meter       = (*Store)(nil)
	_ store.Presence    = (*Store)(nil)
	_ store.Clocked     = (*Store)(nil)
	_ store.TxCommitter = (*Store)(nil)
	_ store.Loader      = (*Store)(nil)
	_ store.Parallel    = (*Store)(nil)
)

func newStore(db *sqlx.DB, o Options) *Store {
	o.message = cmp.Or(o.message, maxMessage)
	s := &Store{db: db, long: db, limits: o.Limits, opts: o, closing: make(chan struct{})}
	setup := sessionSettings
	if o.Pooled {
		setup = ""
	}
	s.writers = newWriters(db.DB, o.Writers, setup, s.closing)
	s.readers = s.writers
	if o.readers > 0 {
		s.readers = newWriters(db.DB, o.readers, setup, s.closing)
	}
	s.txs = newTransactions(db, o.Transactions)
	s.notices = newNotices(s)
	if o.DSN != "" && !o.Pooled && !o.ReadOnly {
		s.listener = newListener(s, o.DSN)
	}
	s.presence = s.listener != nil && !o.NoPresence
	return s
}

// genuine reports whether version() is that of PostgreSQL itself: other servers
// that speak its protocol have session locks that lock nothing.
func genuine(version string) bool {
	if !strings.HasPrefix(version, "PostgreSQL ") {
		return false
	}
	for _, other := range []string{"CockroachDB", "-YB-", "Yugabyte", "Redshift", "Greenplum"} {
		if strings.Contains(version, other) {
			return false
		}
	}
	return true
}

// ParallelCommits implements store.Parallel; see Options.Lanes.
func (s *Store) ParallelCommits() int { return min(max(s.opts.Lanes, 1), cap(s.writers.permits)) }

// enter lets a call begin; the caller must call s.calls.Done.
func (s *Store) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// Close implements store.Store. It waits for calls in progress.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.mu.Unlock()
	s.calls.Wait()
	s.notices.close()
	if s.listener != nil {
		s.listener.close()
	}
	s.writers.close()
	if s.readers != s.writers {
		s.readers.close()
	}
	err := s.txs.close()
	if s.ownsDB {
		err = errors.Join(err, s.db.Close(), s.long.Close())
	}
	return err
}

// Limits implements store.Store.
func (s *Store) Limits() store.Limits { return s.limits }

// Counts implements store.Meter.
func (s *Store) Counts() store.Counts {
	return store.Counts{Statements: s.counts.statements.Load(), Reads: s.counts.reads.Load(), Commits: s.counts.commits.Load()}
}

func (s *Store) count(name string) {
	s.counts.statements.Add(1)
	if s.reads[name] {
		s.counts.reads.Add(1)
	}
}

// PresenceKind implements store.Presence.
func (s *Store) PresenceKind() string {
	if s.presence && s.sessionLocks {
		return "session lock"
	}
	return ""
}

// ClockKind implements store.Clocked.
func (s *Store) ClockKind() string { return "server" }

// jitter returns how long to wait before the n-th retry: growing, and random so
// that two that collided do not collide again.
func jitter(n int) time.Duration {
	top := min(time.Second, 5*time.Millisecond<<min(n, 8))
	return top/2 + rand.N(top/2+1)
}

// pause sleeps, unless the context ends or the store is closed.
func pause(ctx context.Context, closing <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closing:
		return store.ErrClosed
	}
}
