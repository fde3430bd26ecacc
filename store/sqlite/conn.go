//go:build cgo

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
)

// session runs statements: on the writer's connection, or in a transaction of
// the user's.
type session interface {
	// exec returns the number of changed rows and the last rowid assigned.
	exec(q *query, args ...any) (changed, rowid int64, err error)
	// query calls each for every row. The row is only valid during the call.
	query(q *query, each func(row []driver.Value) error, args ...any) error
	// control runs a statement that is not counted: BEGIN, SAVEPOINT.
	control(q *query) error
}

// counts is what Meter reports.
type counts struct{ statements, reads, commits atomic.Int64 }

type sqliteStmt = *sqlite3.SQLiteStmt

// conn is a driver connection, used by one goroutine at a time. It bypasses
// database/sql, which costs as much as a small statement itself. It never passes on
// a context: if a context were cancelled, SQLite would roll the whole transaction
// back, and the next statement would then run and be committed on its own.
type conn struct {
	raw    *sqlite3.SQLiteConn
	stmts  map[*query]sqliteStmt
	args   []driver.NamedValue
	events []any // memory for the arguments of one statement that appends
	epoch  sqlstore.Repeated
	counts *counts
}

func openConn(dsn string, n *counts) (*conn, error) {
	raw, err := openRaw(dsn, &sqlite3.SQLiteDriver{})
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw, stmts: make(map[*query]sqliteStmt), counts: n}, nil
}

func openRaw(dsn string, d *sqlite3.SQLiteDriver) (*sqlite3.SQLiteConn, error) {
	dc, err := d.Open(dsn)
	if err != nil {
		return nil, err
	}
	raw, ok := dc.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, fmt.Errorf("sqlite: the driver returned a %T", dc)
	}
	return raw, nil
}

// pooled is a connection of a pool of database/sql.
type pooled struct {
	*sqlite3.SQLiteConn
	own *conn // with our statements that are prepared on it; nil: none are
}

// IsValid implements driver.Validator. A connection that comes back in a transaction, because its
// rollback has failed, is closed: it could begin no other one, and would keep its place in the
// WAL, or the lock of the file.
func (p *pooled) IsValid() bool { return p.AutoCommit() }

// Close closes the statements first: as long as there are any, SQLite keeps the transaction.
func (p *pooled) Close() error {
	var errs []error
	if p.own != nil {
		errs = append(errs, p.own.closeStatements())
	}
	return errors.Join(append(errs, p.SQLiteConn.Close())...)
}

// pooledOf returns the driver's connection that database/sql hands over.
func pooledOf(dc any) (*pooled, error) {
	c, ok := dc.(*pooled)
	if !ok {
		return nil, fmt.Errorf("sqlite: the connection is a %T of another driver", dc)
	}
	return c, nil
}

// connector opens the connections of a pool.
type connector struct {
	dsn    string
	driver *sqlite3.SQLiteDriver
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	raw, err := openRaw(c.dsn, c.driver)
	if err != nil {
		return nil, err
	}
	return &pooled{SQLiteConn: raw}, nil
}

func openPool(dsn string, d *sqlite3.SQLiteDriver) *sqlx.DB {
	return sqlx.NewDb(sql.OpenDB(connector{dsn, d}), "sqlite3")
}

// setting runs a pragma, given together with its expected answer.
func (c *conn) setting(s [2]string) error {
	got := ""
	rows, err := c.raw.Query(s[0], nil)
	if err != nil {
		return err
	}
	err = eachRow(rows, func(row []driver.Value) error {
		if len(row) > 0 {
			got = fmt.Sprint(row[0])
		}
		return nil
	})
	if err := errors.Join(err, rows.Close()); err != nil {
		return err
	}
	if s[1] != "" && got != s[1] {
		return fmt.Errorf("sqlite: %q gave %q: the file system does not support what a shared database needs; use a local one", s[0], got)
	}
	return nil
}

// drop closes a connection that can no longer be trusted; take opens another.
func (c *conn) drop() {
	// The error that led here is the one to report.
	_ = c.close()
	c.raw = nil
}

func (c *conn) close() error {
	if c.raw == nil {
		return nil
	}
	return errors.Join(c.closeStatements(), c.raw.Close())
}

func (c *conn) closeStatements() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	clear(c.stmts)
	return errors.Join(errs...)
}

func (c *conn) prepare(q *query) (*sqlite3.SQLiteStmt, error) {
	if st, ok := c.stmts[q]; ok {
		return st, nil
	}
	ds, err := c.raw.Prepare(q.text)
	if err != nil {
		return nil, err
	}
	st, ok := ds.(*sqlite3.SQLiteStmt)
	if !ok {
		return nil, fmt.Errorf("sqlite: the driver returned a %T", ds)
	}
	c.stmts[q] = st
	return st, nil
}

// bind fills the connection's only argument list; the driver copies the values
// before a statement runs.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

func (c *conn) exec(q *query, args ...any) (changed, rowid int64, err error) {
	c.counts.statements.Add(1)
	return c.run(q, args)
}

func (c *conn) control(q *query) error {
	_, _, err := c.run(q, nil)
	return err
}

func (c *conn) run(q *query, args []any) (changed, rowid int64, err error) {
	st, err := c.prepare(q)
	if err != nil {
		return 0, 0, err
	}
	res, err := st.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, 0, err
	}
	// Neither fails in this driver.
	changed, _ = res.RowsAffected()
	rowid, _ = res.LastInsertId()
	return changed, rowid, nil
}

func (c *conn) query(q *query, each func(row []driver.Value) error, args ...any) (err error) {
	c.counts.statements.Add(1)
	c.counts.reads.Add(1)
	st, err := c.prepare(q)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(context.Background(), c.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	return eachRow(rows, each)
}

// eachRow reads driver rows to their end, or to the first error of each.
func eachRow(rows driver.Rows, each func([]driver.Value) error) error {
	row := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}
