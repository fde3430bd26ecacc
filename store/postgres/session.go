package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// writers is a set of connections kept for writing, each with its prepared
// statements.
//
// They are pinned, and written through the driver, because database/sql would
// run a statement a second time when the first answer was lost, and hide
// whether it had been sent at all.
type writers struct {
	db      *sql.DB
	permits chan struct{} // one token per connection that is not in use
	setup   string        // sent once on each connection; may be empty
	closing <-chan struct{}

	mu   sync.Mutex
	free []*session // the one used last is on top, so that no more are opened than are needed
}

// session is one of the connections.
type session struct {
	conn  *sql.Conn // nil until it is needed
	stmts map[string]driver.Stmt
}

// sessionSettings bound what one stuck process can do to the others: it holds
// its row locks for a limited time, and nobody waits for a lock for long (lockWait)
// before he looks whom else that holds up. What
// runs outside an explicit transaction is to be READ COMMITTED too, whatever
// the server's default.
//
// Every statement of ours is meant to use an index. A plan that was prepared
// while the tables were nearly empty reads them whole instead, and is kept
// until they are analyzed, which made commits slower with every thousand runs
// of a new database: hence enable_seqscan. It makes a whole read look infinitely
// dear where there is no other way (a handful of executors), which would set off
// the compiler: hence jit. For the same reason the first rows of an index are not
// to be found by reading all rows and sorting them.
//
// The plans are the same whatever the arguments, but the server does not see
// that, and planned a claim anew each time, for longer than it took: hence
// plan_cache_mode, on servers that have it.
//
// Our tables have their schema before their names. Nothing is looked for in the
// schemas of others, where who may create could put a function that fits an argument
// better than the server's own, and would run with the rights of this role. What is
// read on connections that are not ours alone, or through a pooler, has the schema
// of the server's functions written out for the same reason.
const sessionSettings = "SET search_path = pg_catalog, pg_temp; SET default_transaction_isolation = 'read committed'; SET lock_timeout = '500ms'; SET idle_in_transaction_session_timeout = '15s'; " +
	"SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off; SET jit = off; " +
	"SELECT pg_catalog.set_config(name, 'force_generic_plan', false) FROM pg_settings WHERE name = 'plan_cache_mode'"

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

// close waits until all connections are given back, and closes them.
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
	// The error is the one that is given here, which tells database/sql to
	// throw the connection away.
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

// write runs f on a connection kept for writing. ctx bounds the wait for the
// connection alone. After an error that leaves the session in doubt it is
// dropped, and the next one connects anew.
func (s *Store) write(ctx context.Context, f func(*wire) error) error {
	ses, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer s.writers.give(ses)
	if err := ses.open(ctx, s.writers); err != nil {
		return err
	}
	var ferr error
	broken := false
	err = ses.conn.Raw(func(dc any) error {
		w := &wire{store: s, dc: dc.(driver.Conn), stmts: ses.stmts, ctx: context.Background()}
		ferr = f(w)
		if w.tx != nil {
			w.rollback()
		}
		broken = w.broken
		return nil
	})
	if err != nil {
		// The connection was closed under our hands; f did not run.
		ferr, broken = &lostError{err: err}, true
	}
	if broken {
		ses.drop()
	}
	return ferr
}

// querier runs the named statements: on a connection of ours, or in a
// transaction of the user's.
type querier interface {
	// exec returns how many rows were affected.
	exec(name string, args ...driver.Value) (int64, error)
	// query calls row for each row; the slice is used again for the next one.
	query(name string, row func([]driver.Value) error, args ...driver.Value) error
}

// wire is a connection in use. In a transaction, a lost connection means that
// nothing happened, until commit is sent.
type wire struct {
	store  *Store
	dc     driver.Conn
	stmts  map[string]driver.Stmt
	ctx    context.Context // of the statements; one that is never done costs no goroutine
	tx     driver.Tx
	broken bool
	// lockWait is how long a transaction waits for a lock; 0: as the session does.
	lockWait time.Duration
}

func (w *wire) stmt(name string) (driver.Stmt, error) {
	if st := w.stmts[name]; st != nil {
		return st, nil
	}
	st, err := w.dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), w.store.sql.Text(name))
	if err != nil {
		if faultOf(err) == faultLost {
			w.broken = true
			err = &lostError{err: err} // nothing was to be carried out yet
		}
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	w.stmts[name] = st
	return st, nil
}

func (w *wire) failed(name string, err error) error {
	switch faultOf(err) {
	case faultLost:
		w.broken = true
		return &lostError{err: fmt.Errorf("%s: %w", name, err), maybe: w.tx == nil}
	case faultSession:
		w.broken = true
	}
	if w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	return fmt.Errorf("%s: %w", name, err)
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
	r, err := st.(driver.StmtExecContext).ExecContext(w.ctx, named(args))
	if err != nil {
		return 0, w.failed(name, err)
	}
	n, err := r.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("%s: rows affected: %w", name, err)
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
	rows, err := st.(driver.StmtQueryContext).QueryContext(w.ctx, named(args))
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

// begin opens a transaction. READ COMMITTED is what the rules for locks and for
// appending are made for.
func (w *wire) begin() error {
	tx, err := w.dc.(driver.ConnBeginTx).BeginTx(context.Background(), driver.TxOptions{Isolation: driver.IsolationLevel(sql.LevelReadCommitted)})
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

// commit ends the transaction. When its answer is lost, the transaction may be
// committed, or may be yet.
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
// of no use.
func (w *wire) rollback() {
	tx := w.tx
	w.tx = nil
	if err := tx.Rollback(); err != nil {
		w.broken = true
	}
}

// maxMessage is what PostgreSQL takes in one message, less what stands around
// the arguments. It hangs up on a longer one, and whoever sent it would take the
// outcome for unknown, and send it again, for ever.
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
	if n > s.message {
		return fmt.Errorf("%s: a statement of %d MB, PostgreSQL takes %d MB at a time: %w", name, n>>20, s.message>>20, store.ErrTooLarge)
	}
	return nil
}

func named(args []driver.Value) []driver.NamedValue {
	nv := make([]driver.NamedValue, len(args))
	for i, a := range args {
		nv[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return nv
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
