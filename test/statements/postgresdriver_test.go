package statements_test

import (
	"context"
	"database/sql/driver"
	"sync"
)

// injector is a driver that fails at its nth call.
type injector struct {
	driver.Connector

	mu    sync.Mutex
	n, at int
	err   error
	after bool   // the server has carried the call out
	what  string // that call was; empty: there was none
}

// arm lets the call of this number fail, from now on.
func (i *injector) arm(at int, err error, after bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n, i.at, i.err, i.after, i.what = 0, at, err, after, ""
}

// disarm returns what the call was that has failed; empty: none has.
func (i *injector) disarm() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.at = 0
	return i.what
}

// call makes one call of c.
func (i *injector) call(c *conn, what string, do func() error) error {
	if c.gone {
		return driver.ErrBadConn
	}
	i.mu.Lock()
	i.n++
	hit := i.at > 0 && i.n == i.at
	err, after := i.err, i.after
	if hit {
		i.what = what
	}
	i.mu.Unlock()
	if !hit {
		return do()
	}
	c.gone = err == driver.ErrBadConn
	if after {
		if done := do(); done != nil {
			return done
		}
	}
	return err
}

func (i *injector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := i.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c.(full), i, false}, nil
}

// full is what the connections of lib/pq can do.
type full interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type conn struct {
	full
	i    *injector
	gone bool
}

func (c *conn) IsValid() bool { return !c.gone && c.full.IsValid() }

func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (t driver.Tx, err error) {
	err = c.i.call(c, "BEGIN", func() (err error) { t, err = c.full.BeginTx(ctx, o); return err })
	return &tx{t, c}, err
}

func (c *conn) PrepareContext(ctx context.Context, q string) (s driver.Stmt, err error) {
	err = c.i.call(c, q, func() (err error) { s, err = c.full.PrepareContext(ctx, q); return err })
	if err != nil {
		return nil, err
	}
	return &stmt{s.(fullStmt), c, q}, nil
}

func (c *conn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.i.call(c, q, func() (err error) { r, err = c.full.ExecContext(ctx, q, args); return err })
	return r, err
}

func (c *conn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (r driver.Rows, err error) {
	err = c.i.call(c, q, func() (err error) { r, err = c.full.QueryContext(ctx, q, args); return err })
	return r, err
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type stmt struct {
	fullStmt
	c *conn
	q string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.c.i.call(s.c, s.q, func() (err error) { r, err = s.fullStmt.ExecContext(ctx, args); return err })
	return r, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	err = s.c.i.call(s.c, s.q, func() (err error) { r, err = s.fullStmt.QueryContext(ctx, args); return err })
	return r, err
}

type tx struct {
	driver.Tx
	c *conn
}

func (t *tx) Commit() error { return t.c.i.call(t.c, "COMMIT", t.Tx.Commit) }
