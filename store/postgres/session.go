package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// writers is a set of connections reserved for writing, each with its prepared
// statements.
//
// They are pinned and used through the driver, because database/sql would run a
// statement a second time when the first answer was lost, and hide whether it had
// been sent at all.
type writers struct {
	db      *sql.DB
	permits chan struct{} // one token per connection that is not in use
	setup   string        // sent once on each connection; may be empty
	closing <-chan struct{}

	mu   sync.Mutex
	free []*session // the last one used is on top, so that no more are opened than needed
}

// session is one of the connections.
type session struct {
	conn  *sql.Conn // nil until it is needed
	stmts map[string]driver.Stmt
	named []driver.NamedValue // memory for the arguments of one statement
}

// sessionSettings bound the harm that one stuck process can do to the others: it
// holds its row locks for a limited time, and a statement waits for a lock only
// briefly (lockWait) before the store checks which other runs are held up. What
// runs outside an explicit transaction is READ COMMITTED too, whatever the server's
// default.
//
// All our statements are meant to use an index. A plan prepared while the tables
// were nearly empty scans them instead, and is kept until they are analyzed, which
// made commits slower with every thousand runs of a new database: hence
// enable_seqscan. That setting makes a sequential scan look extremely expensive
// even where it is the only way (a handful of executors), which would trigger the
// JIT compiler: hence jit. For the same reason the first rows of an index must not
// be found by reading all rows and sorting them.
//
// The plans are the same whatever the arguments, but the server does not see that
// and planned each claim again, which took longer than the claim: hence
// plan_cache_mode, on servers that have it. Reading pg_settings, to see whether they
// do, took longer than all these settings.
//
// Our table names are qualified with their schema. Nothing is looked up in other
// schemas, where any role with the right to create could place a function that
// matches an argument better than the server's own and would run with the rights of
// this role. For the same reason, statements on connections that we share, or that
// go through a pooler, qualify the server's functions with their schema.
const sessionSettings = "SET search_path = pg_catalog, pg_temp; SET default_transaction_isolation = 'read committed'; SET lock_timeout = '500ms'; SET idle_in_transaction_session_timeout = '15s'; " +
	"SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET jit = off; " +
	"SELECT pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false) WHERE pg_catalog.current_setting('plan_cache_mode', true) IS NOT NULL"

func newWriters(db *sql.DB, n int, setup string, closing <-chan struct{}) *writers {
	w := &writers{db: db, permits: make(chan struct{}, n), setup: setup, closing: closing}
	for range n {
		w.permits <- struct{}{}
		w.free = append(w.free, &session{})
	}
	return w
}

// take waits for a connection.
func (w *writers) take(ctx context.Context) (*session, error) {
	select {
	case <-w.permits:
	default:
		select {
		case <-w.permits:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-w.closing:
			return nil, store.ErrClosed
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	return s, nil
}

func (w *writers) give(s *session) {
	w.mu.Lock()
	w.free = append(w.free, s)
	w.mu.Unlock()
	w.permits <- struct{}{}
}

// close waits until all connections are returned, and closes them.
func (w *writers) close() {
	for range cap(w.permits) {
		<-w.permits
	}
	for _, s := range w.free {
		s.drop()
	}
}

// drop closes the connection. It does not go back to a pool: its settings are
// not those of the pool's other connections.
func (s *session) drop() {
	if s.conn == nil {
		return
	}
	// Raw returns the error given here, which makes database/sql discard the
	// connection.
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
	s.conn, s.stmts = nil, nil
}

// open connects if need be.
func (s *session) open(ctx context.Context, w *writers) error {
	if s.conn != nil {
		return nil
	}
	conn, err := w.db.Conn(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &lostError{err: err}
	}
	s.conn, s.stmts = conn, map[string]driver.Stmt{}
	if w.setup == "" {
		return nil
	}
	err = conn.Raw(func(dc any) error {
		_, err := dc.(driver.ExecerContext).ExecContext(context.Background(), w.setup, nil)
		return err
	})
	if err != nil {
		s.drop()
		return &lostError{err: err}
	}
	return nil
}

// write runs f on a connection reserved for writing. ctx bounds only the wait for
// the connection. After an error that leaves the session in doubt, the session is
// dropped, and the next use reconnects.
func (s *Store) write(ctx context.Context, f func(*wire) error) error {
	return s.with(ctx, s.writers, f)
}

// with is write on one of these connections.
func (s *Store) with(ctx context.Context, of *writers, f func(*wire) error) error {
	ses, err := of.take(ctx)
	if err != nil {
		return err
	}
	defer of.give(ses)
	if err := ses.open(ctx, of); err != nil {
		return err
	}
	var ferr error
	broken := false
	err = ses.conn.Raw(func(dc any) error {
		w := &wire{store: s, dc: dc.(driver.Conn), ses: ses, ctx: context.Background()}
		ferr = f(w)
		if w.tx != nil {
			w.rollback()
		}
		broken = w.broken
		return nil
	})
	if err != nil {
		// The connection was closed under us; f did not run.
		ferr, broken = &lostError{err: err}, true
	}
	if broken {
		ses.drop()
	}
	return ferr
}

// reading runs f, which only reads, on a connection reserved for that, again if the connection
// breaks, or if a compatible server refuses it under SERIALIZABLE. Its statements are prepared,
// which saves one of two round trips, and each is as of one moment of its own.
func (s *Store) reading(ctx context.Context, f func(*wire) error) error {
	for cause, try := error(nil), 0; ; try++ {
		err := s.with(ctx, s.readers, func(w *wire) error {
			w.ctx = ctx
			return f(w)
		})
		if err == nil || ctx.Err() != nil {
			return after(cause, cmp.Or(ctx.Err(), err))
		}
		if try >= 5 || faultOf(err).lasts() {
			return err
		}
		cause = err
		if e := pause(ctx, s.closing, jitter(try)); e != nil {
			return after(cause, e)
		}
	}
}

// querier runs the named statements: on one of our connections, or in a transaction
// of the user's.
type querier interface {
	// exec returns how many rows were affected.
	exec(name string, args ...driver.Value) (int64, error)
	// query calls row for each row; the slice is reused for the next one.
	query(name string, row func([]driver.Value) error, args ...driver.Value) error
}

// wire is a connection in use. In a transaction, a lost connection means that
// nothing happened, until commit is sent.
type wire struct {
	store  *Store
	dc     driver.Conn
	ses    *session
	ctx    context.Context // of the statements; a context that is never done costs no goroutine
	tx     driver.Tx
	broken bool
	// lockWait is how long a transaction waits for a lock; 0: the session's setting.
	lockWait time.Duration
}

func (w *wire) stmt(name string) (driver.Stmt, error) {
	if st := w.ses.stmts[name]; st != nil {
		return st, nil
	}
	if err := w.store.opts.writes(); err != nil && !w.store.reads[name] {
		return nil, err
	}
	st, err := w.dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), w.store.sql.Text(name))
	if err != nil {
		if faultOf(err) == faultLost {
			w.broken = true
			err = &lostError{err: err} // nothing had been sent for execution yet
		}
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	w.ses.stmts[name] = st
	return st, nil
}

func (w *wire) failed(name string, err error) error {
	fault := faultOf(err)
	if fault == faultOther && sqlState(err) == "" && w.ctx.Err() == nil && !w.alive() {
		fault = faultLost // in the driver's own words, such as for an answer that it cannot read
	}
	switch fault {
	case faultLost:
		w.broken = true
		return &lostError{err: fmt.Errorf("%s: %w", name, err), maybe: w.tx == nil}
	case faultSession:
		w.broken = true
	}
	if w.ctx.Err() != nil {
		// pgx closes the connection; lib/pq keeps it, and the server says that the
		// statement was cancelled.
		w.broken = w.broken || sqlState(err) == ""
		return w.ctx.Err()
	}
	return fmt.Errorf("%s: %w", name, err)
}

// alive asks the server for a sign of life.
func (w *wire) alive() bool {
	p, ok := w.dc.(driver.Pinger)
	if !ok {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	return p.Ping(ctx) == nil
}

func (w *wire) exec(name string, args ...driver.Value) (int64, error) {
	if err := w.store.fits(name, args); err != nil {
		return 0, err
	}
	st, err := w.stmt(name)
	if err != nil {
		return 0, err
	}
	w.store.count(name)
	r, err := st.(driver.StmtExecContext).ExecContext(w.ctx, w.ses.arguments(args))
	clear(w.ses.named)
	if err != nil {
		return 0, w.failed(name, err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("%s: rows affected: %w", name, err)
	}
	if n > 0 && w.tx == nil && w.ctx.Err() != nil {
		// The end of a context also ends the wait of a commit for the replicas, and the server then answers
		// that it has committed.
		return 0, w.ctx.Err()
	}
	return n, nil
}

func (w *wire) query(name string, row func([]driver.Value) error, args ...driver.Value) error {
	if err := w.store.fits(name, args); err != nil {
		return err
	}
	st, err := w.stmt(name)
	if err != nil {
		return err
	}
	w.store.count(name)
	rows, err := st.(driver.StmtQueryContext).QueryContext(w.ctx, w.ses.arguments(args))
	clear(w.ses.named)
	if err != nil {
		return w.failed(name, err)
	}
	dest := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(dest); {
		case err == io.EOF:
			if err := rows.Close(); err != nil {
				return w.failed(name, err)
			}
			return nil
		case err != nil:
			_ = rows.Close() // the first error is the one to tell
			return w.failed(name, err)
		}
		if err := row(dest); err != nil {
			_ = rows.Close()
			return err
		}
	}
}

// begin opens a transaction. The rules for locks and appends are designed for READ
// COMMITTED.
func (w *wire) begin() error {
	tx, err := w.dc.(driver.ConnBeginTx).BeginTx(context.Background(), driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelReadCommitted), ReadOnly: w.store.opts.ReadOnly})
	if err != nil {
		if faultOf(err) == faultLost {
			w.broken = true
			return &lostError{err: fmt.Errorf("begin: %w", err)}
		}
		return fmt.Errorf("begin: %w", err)
	}
	w.tx = tx
	if w.lockWait > 0 {
		return w.query("lock_wait", func([]driver.Value) error { return nil }, fmt.Sprint(max(1, w.lockWait.Milliseconds())))
	}
	return nil
}

// commit ends the transaction. If its answer is lost, the transaction may have
// committed, or may still commit.
func (w *wire) commit() error {
	tx := w.tx
	w.tx = nil
	if err := tx.Commit(); err != nil {
		return w.failed("commit", err)
	}
	w.store.counts.commits.Add(1)
	return nil
}

// rollback gives the transaction up; a connection that cannot even do that is
// unusable.
func (w *wire) rollback() {
	tx := w.tx
	w.tx = nil
	if err := tx.Rollback(); err != nil {
		w.broken = true
	}
}

// maxMessage is the longest message that PostgreSQL accepts, minus what surrounds
// the arguments. The server closes the connection on a longer one; the sender would
// take the outcome for unknown and resend it for ever.
const maxMessage = 1<<30 - 1<<16

// fits returns an error that matches store.ErrTooLarge unless a statement with
// these arguments can be sent.
func (s *Store) fits(name string, args []driver.Value) error {
	n := 0
	for _, a := range args {
		switch a := a.(type) {
		case string:
			n += len(a)
		case []byte:
			n += 2 * len(a) // in hexadecimal
		}
	}
	if n > s.opts.message {
		return fmt.Errorf("%s: a statement of %d MB, PostgreSQL takes %d MB at a time: %w", name, n>>20, s.opts.message>>20, store.ErrTooLarge)
	}
	return nil
}

// arguments is called for one statement at a time: a driver has encoded them when it returns.
func (s *session) arguments(args []driver.Value) []driver.NamedValue {
	s.named = s.named[:0]
	for i, a := range args {
		s.named = append(s.named, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.named
}

// userTx is a transaction of the user's.
type userTx struct {
	store *Store
	ctx   context.Context
	tx    *sql.Tx
}

func (u *userTx) exec(name string, args ...driver.Value) (int64, error) {
	if err := u.store.fits(name, args); err != nil {
		return 0, err
	}
	u.store.count(name)
	r, err := u.tx.ExecContext(u.ctx, u.store.sql.Text(name), anys(args)...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return r.RowsAffected()
}

func (u *userTx) query(name string, row func([]driver.Value) error, args ...driver.Value) error {
	if err := u.store.fits(name, args); err != nil {
		return err
	}
	u.store.count(name)
	rows, err := u.tx.QueryContext(u.ctx, u.store.sql.Text(name), anys(args)...)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	dest, to := make([]driver.Value, len(columns)), make([]any, len(columns))
	for i := range dest {
		to[i] = (*any)(&dest[i])
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := row(dest); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func anys(args []driver.Value) []any {
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	return list
}
