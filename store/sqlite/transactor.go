//go:build cgo

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Transactor = (*Store)(nil)

// transactions has the one connection on which BeginTx begins transactions. It is not
// the writer's: statements that a user's goroutine left behind must not meet ours.
type transactions struct {
	once sync.Once
	db   *sqlx.DB // nil until it is needed
	err  error
	// mayCommit is false while the user's statements run. Then nothing is committed on
	// the connection: neither a COMMIT of the user's, nor a statement that follows
	// one that was interrupted, after which SQLite has rolled the transaction back
	// and would commit each further statement on its own.
	mayCommit atomic.Bool
}

func (s *Store) openTransactions() error {
	t := &s.txs
	t.once.Do(func() {
		d := &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
			c.RegisterCommitHook(func() int {
				if t.mayCommit.Load() {
					return 0
				}
				return 1
			})
			if s.opts.TxSetup == "" {
				return nil
			}
			t.mayCommit.Store(true)
			defer t.mayCommit.Store(false)
			_, err := c.Exec(s.opts.TxSetup, nil)
			return err
		}}
		dsn := s.connect(s.file, "_txlock=immediate", "_busy_timeout=0", "_stmt_cache_size=64")
		t.db = openPool(dsn, d)
		t.db.SetMaxOpenConns(1)
		t.db.SetMaxIdleConns(1)
	})
	return t.err
}

func (t *transactions) close() error {
	if t.db == nil {
		return nil
	}
	return t.db.Close()
}

// BeginTx implements store.Transactor. The transaction has the write lock of the file
// from the beginning: until it ends, nobody else writes, in any process, and no
// lease is renewed.
func (s *Store) BeginTx(ctx context.Context) (store.Tx, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave() // from then on Close waits for the writer
	c, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	t := &stepTx{s: s, writer: c}
	if err := s.openTransactions(); err != nil {
		s.give(c)
		return nil, s.fail("open a connection for transactions", err, false)
	}
	// Its context would roll the transaction back at any moment.
	if t.conn, err = s.txs.db.Connx(context.Background()); err == nil {
		err = s.whileBusy(ctx, func() (err error) {
			t.tx, err = t.conn.BeginTxx(context.Background(), nil)
			return err
		})
	}
	if err != nil {
		t.give()
		return nil, s.fail("begin a transaction", err, false)
	}
	return t, nil
}

// OneWriter implements store.Transactor.
func (s *Store) OneWriter() bool { return true }

// stepTx is a transaction of BeginTx. It holds the writer, so that the other
// writers of this handle do not compete for the file's lock meanwhile.
type stepTx struct {
	s      *Store
	writer *conn
	conn   *sqlx.Conn // that of tx
	tx     *sqlx.Tx
	over   bool
}

// give gives back what t holds.
func (t *stepTx) give() {
	if t.conn != nil {
		_ = t.conn.Close() // it goes back to its pool
	}
	t.s.give(t.writer)
}

// pinnedTx carries out our statements on the connection of a transaction, past database/sql, which
// costs as much as a small statement. The connection is locked meanwhile: a goroutine of the
// user's that still uses the transaction waits.
type pinnedTx struct{ t *stepTx }

func (p pinnedTx) on(do func(*conn) error) error {
	return p.t.conn.Raw(func(dc any) error {
		c, err := pooledOf(dc)
		if err != nil {
			return err
		}
		if c.AutoCommit() {
			return sql.ErrTxDone // what follows would be committed on its own
		}
		if c.own == nil {
			c.own = &conn{raw: c.SQLiteConn, stmts: make(map[*query]sqliteStmt), counts: &p.t.s.counts}
		}
		return do(c.own)
	})
}

func (p pinnedTx) exec(q *query, args ...any) (changed, rowid int64, err error) {
	err = p.on(func(c *conn) (err error) {
		changed, rowid, err = c.exec(q, args...)
		return err
	})
	return changed, rowid, err
}

func (p pinnedTx) query(q *query, each func([]driver.Value) error, args ...any) error {
	return p.on(func(c *conn) error { return c.query(q, each, args...) })
}

func (p pinnedTx) control(q *query) error { return p.on(func(c *conn) error { return c.control(q) }) }

var _ session = pinnedTx{}

// Handle implements store.Tx.
func (t *stepTx) Handle() any { return t.tx }

// Rollback implements store.Tx.
func (t *stepTx) Rollback() error {
	if t.over {
		return nil
	}
	t.over = true
	defer t.give()
	err := t.tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) || rolledBack(err) {
		return nil // the body has done that, or SQLite has
	}
	return err
}

// rolledBack reports that SQLite had rolled the transaction back on its own.
func rolledBack(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	return ok && e.Code == sqlite3.ErrError
}

// Commit implements store.Tx.
func (t *stepTx) Commit(c store.Change) error {
	if t.over {
		return fmt.Errorf("sqlite: commit a transaction that has ended: %w", store.ErrInvalid)
	}
	w, err := t.carryOut(&c)
	if err != nil {
		return errors.Join(err, t.Rollback())
	}
	s := t.s
	t.over = true
	defer t.give()
	s.txs.mayCommit.Store(true)
	err = t.tx.Commit()
	s.txs.mayCommit.Store(false)
	switch {
	case errors.Is(err, sql.ErrTxDone), rolledBack(err):
		return errEnded
	case err != nil:
		return s.fail("commit a transaction", err, true)
	}
	s.counts.commits.Add(1)
	for id, no := range w.fresh {
		s.numbers.put(id, no)
	}
	s.tell(w.news)
	return nil
}

// errEnded: there is nothing left to commit.
var errEnded = errors.New("sqlite: the transaction has ended before its commit: a statement was interrupted, because its context ended, or the body has committed or rolled back itself, which it must leave to the library; nothing was committed")

// carryOut writes c in the transaction. After an error it must be rolled back.
func (t *stepTx) carryOut(c *store.Change) (*tx, error) {
	s := t.s
	if err := c.Validate(s.limits); err != nil {
		return nil, err
	}
	w := s.newTx(pinnedTx{t})
	refused, err := w.change(c)
	switch {
	case errors.Is(err, sql.ErrTxDone), hooked(err):
		return nil, errEnded
	case err != nil:
		return nil, s.fail("write in a transaction", err, false)
	case refused != nil:
		return nil, refused
	case !w.wrote && len(c.Events) > 0:
		return nil, sqlstore.FencedAt(c) // it was carried out earlier
	}
	return w, nil
}

// hooked reports that the commit hook has refused a statement that was about to be committed on its own.
func hooked(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	return ok && e.ExtendedCode == sqlite3.ErrConstraintCommitHook
}

// Explain implements store.TxExplainer. The transaction has the write lock from its beginning, so a
// statement that finds the file locked went through another connection.
func (t *stepTx) Explain(err error) error {
	if e, _ := errors.AsType[sqlite3.Error](err); e.Code == sqlite3.ErrBusy {
		return fmt.Errorf("%w: the step's transaction has the file to itself, so its function writes through tx alone; another connection waits for its end", err)
	} else if hooked(err) {
		return errEnded // SQLite says "constraint failed"
	}
	return err
}

// Again implements store.Tx.
func (t *stepTx) Again(err error) bool {
	if errors.Is(err, store.ErrUnknown) {
		return false
	}
	switch e, _ := errors.AsType[sqlite3.Error](err); e.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrIoErr, sqlite3.ErrNomem:
		return true
	}
	return false
}
