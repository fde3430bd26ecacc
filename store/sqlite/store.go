//go:build cgo

package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite/internal/ondisk"
)

// Store keeps runs in a SQLite file. Any number of Stores, in one or several
// processes of a machine, may have the same file open.
type Store struct {
	name   string // of the file, as it was given, for people
	file   string // its path, without links
	dsn    string // of the writer
	memory bool
	opts   Options
	limits store.Limits
	q      *queries
	counts counts

	// writer holds the write connection while it is idle; a writer takes it out
	// of the channel.
	writer  chan *conn
	readers *sqlx.DB
	closing chan struct{} // closed by Close, so that waiters give up

	closeOnce sync.Once // for closing

	// life is held for reading by every call, so that Close waits for them.
	life   sync.RWMutex
	closed bool

	// Only the holder of the writer touches these.
	numbers numbers
	updates map[string]*query // see tx
	wal     wal
	turns   turns

	files     ondisk.Files
	presence  *presence
	sightings sightings
	listeners listeners
	txs       transactions
	outbox    outbox
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Notifier = (*Store)(nil)
	_ store.Meter    = (*Store)(nil)
	_ store.Presence = (*Store)(nil)
	_ store.Clocked  = (*Store)(nil)
)

// Limits returns store.DefaultLimits.
func (s *Store) Limits() store.Limits { return s.limits }

// Counts implements store.Meter.
func (s *Store) Counts() store.Counts {
	return store.Counts{Statements: s.counts.statements.Load(), Reads: s.counts.reads.Load(), Commits: s.counts.commits.Load()}
}

// ClockKind says that the process's clock judges leases; all processes on one
// file share the machine's clock.
func (s *Store) ClockKind() string { return "process" }

// Close waits for the calls in progress, frees what the store holds and, if it
// was the last to have the file open, checkpoints the WAL. The executors that
// beat through this handle and did not leave count as gone from then on.
func (s *Store) Close() error {
	s.life.RLock()
	closed := s.closed
	s.life.RUnlock()
	if closed {
		return nil
	}
	marked := s.markGone()
	s.closeOnce.Do(func() { close(s.closing) })
	s.outbox.wait()

	// A transaction that is open has the writer. It may still make calls before it ends,
	// so this comes before life.
	c := <-s.writer
	defer func() { s.writer <- c }() // for another Close
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.turns.close()
	// The writer is closed last: the last connection of all checkpoints the
	// WAL, and the writer is the one that waits for the disk.
	errs := []error{s.presence.close(marked), s.listeners.close(), s.readers.Close(), s.txs.close(), c.close()}
	if err := errors.Join(errs...); err != nil {
		return s.fail("close", err, false)
	}
	return nil
}

// enter begins a call; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.RLock()
	if s.closed {
		s.life.RUnlock()
		return store.ErrClosed
	}
	if err := s.files.Gone(); err != nil {
		s.life.RUnlock()
		return err
	}
	return nil
}

func (s *Store) leave() { s.life.RUnlock() }

// take waits for the writer, as long as the context lives.
func (s *Store) take(ctx context.Context) (*conn, error) {
	if err := s.opts.writes(); err != nil {
		return nil, s.fail("write", err, false)
	}
	var c *conn
	select {
	case c = <-s.writer:
	default:
		select {
		case c = <-s.writer:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.closing:
			return nil, store.ErrClosed
		}
	}
	s.turns.take(ctx, s.closing)
	if c.raw == nil {
		if err := s.whileBusy(ctx, func() error { return s.reopen(c) }); err != nil {
			s.turns.give()
			s.writer <- c
			return nil, s.fail("reopen after an error", err, false)
		}
		if !s.memory {
			s.files.Opened(s.file)
		}
	}
	return c, nil
}

func (s *Store) give(c *conn) {
	s.turns.give()
	s.tend(c)
	s.writer <- c
}

// The pauses between two attempts to get a lock that another process holds.
// SQLite's own busy handler ignores the context and lengthens its pauses
// quickly, which starves a process next to one that writes all the time.
const (
	busyFirst = 100 * time.Microsecond
	busyMost  = 2 * time.Millisecond
)

// whileBusy repeats f as long as it finds the database locked by another
// process. f must have done nothing in that case. The caller holds the writer.
func (s *Store) whileBusy(ctx context.Context, f func() error) error {
	err := f()
	if !busy(err) {
		return err
	}
	s.turns.met()
	s.turns.take(ctx, s.closing)
	return whileBusy(ctx, s.closing, f)
}

func whileBusy(ctx context.Context, closing <-chan struct{}, f func() error) error {
	for pause := busyFirst; ; pause = min(2*pause, busyMost) {
		err := f()
		if !busy(err) {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-closing:
			t.Stop()
			return store.ErrClosed
		}
	}
}
