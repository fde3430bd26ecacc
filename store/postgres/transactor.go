package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

var _ store.Transactor = (*Store)(nil)

// defaultTransactions is how many transactions of steps are open at a time: each has a
// connection to itself while the user's code runs.
const defaultTransactions = 8

// transactions bounds and opens the transactions of BeginTx. Their connections have
// the settings of the program, and not those of the store's sessions. They
// have no limit on how long the server may be silent either: the statements are the user's.
type transactions struct {
	db      *sqlx.DB
	ownsDB  bool
	permits chan struct{}      // one token per transaction that is not open
	level   sql.IsolationLevel // to be asked for at the beginning
	prepared
}

func newTransactions(db *sqlx.DB, n int) *transactions {
	t := &transactions{db: db, permits: make(chan struct{}, n), level: sql.LevelReadCommitted}
	for range n {
		t.permits <- struct{}{}
	}
	return t
}

// useOwn makes t use connections of its own, to the same server as the store's.
func (t *transactions) useOwn(dsn string, pooled bool) error {
	setup := ""
	if !pooled {
		setup = "SET default_transaction_isolation = 'read committed'"
	}
	db, err := connect(dsn, 0, setup)
	if err != nil {
		return err
	}
	db.SetMaxIdleConns(cap(t.permits))
	db.SetConnMaxIdleTime(5 * time.Minute)
	t.db, t.ownsDB = db, true
	if setup != "" {
		t.level = sql.LevelDefault // to ask for it takes a round trip
	}
	return nil
}

func (t *transactions) close() error {
	if t.ownsDB {
		return t.db.Close()
	}
	return nil
}

// BeginTx implements store.Transactor. The transaction is READ COMMITTED; a body
// that needs more begins with SET TRANSACTION ISOLATION LEVEL.
func (s *Store) BeginTx(ctx context.Context) (_ store.Tx, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	t := &stepTx{s: s}
	defer func() {
		if err != nil {
			s.calls.Done()
		}
	}()
	select {
	case <-s.txs.permits:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.closing:
		return nil, store.ErrClosed
	}
	if t.conn, err = s.txs.db.Connx(ctx); err == nil {
		// The context of the transaction would roll it back at any moment.
		t.tx, err = t.conn.BeginTxx(context.Background(), &sql.TxOptions{Isolation: s.txs.level, ReadOnly: s.opts.ReadOnly})
	}
	if err != nil {
		if t.conn != nil {
			err = errors.Join(err, t.conn.Close())
		}
		s.txs.permits <- struct{}{}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, described("begin a transaction", err)
	}
	return t, nil
}

// OneWriter implements store.Transactor.
func (s *Store) OneWriter() bool { return false }

// stepTx is a transaction of BeginTx.
type stepTx struct {
	s    *Store
	conn *sqlx.Conn
	tx   *sqlx.Tx
	over bool
	// old: the server that the connection is to takes no writes; a failover has left it behind.
	old bool
}

// Handle implements store.Tx.
func (t *stepTx) Handle() any { return t.tx }

// end gives the connection back.
func (t *stepTx) end() {
	t.over = true
	if t.old {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool makes another one
	}
	_ = t.conn.Close() // it only goes back to its pool, or is broken already
	t.s.txs.permits <- struct{}{}
	t.s.calls.Done()
}

// Rollback implements store.Tx.
func (t *stepTx) Rollback() error {
	if t.over {
		return nil
	}
	defer t.end()
	// On a lost connection the server rolls back by itself.
	if err := t.tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) && faultOf(err) != faultLost {
		return described("roll a transaction back", err)
	}
	return nil
}

// Commit implements store.Tx.
func (t *stepTx) Commit(c store.Change) error {
	if t.over {
		return fmt.Errorf("postgres: commit a transaction that has ended: %w", store.ErrInvalid)
	}
	d, err := t.carryOut(&c)
	if err != nil {
		t.old = sqlState(err) == "25006" // before the connection goes back to the pool
		return errors.Join(t.wording(&c, err), t.Rollback())
	}
	defer t.end()
	s := t.s
	if err := t.tx.Commit(); err != nil {
		switch {
		case errors.Is(err, sql.ErrTxDone):
			return errEnded
		case faultOf(err) == faultLost:
			return fmt.Errorf("postgres: commit for run %q: %w: %w", c.RunID, store.ErrUnknown, err)
		}
		return t.wording(&c, err)
	}
	s.counts.commits.Add(1)
	if d != nil {
		s.remember(d)
		s.notices.tell(d.News())
	}
	return nil
}

// errEnded: there is nothing left to commit.
var errEnded = errors.New("postgres: the transaction has ended before its commit: the body has committed or rolled back itself, which it must leave to the library; what it committed was made without its checkpoint")

// wording explains an error of Commit.
func (t *stepTx) wording(c *store.Change, err error) error {
	switch {
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, errEnded):
		return errEnded
	case sqlState(err) == "25P02":
		return fmt.Errorf("postgres: commit for run %q: the server had aborted the transaction because of an earlier statement, whose error the body has not returned: %w", c.RunID, err)
	case sqlState(err) == "25006":
		return fmt.Errorf("postgres: commit for run %q: the transaction may only read: the body, or a default of the connection, has set it so, or the server is a standby: %w", c.RunID, err)
	}
	return described(fmt.Sprintf("commit for run %q in a transaction", c.RunID), err)
}

// carryOut writes c in the transaction; d is nil for a plain checkpoint. After an
// error the transaction must be rolled back.
func (t *stepTx) carryOut(c *store.Change) (*drafted, error) {
	s := t.s
	if err := c.Validate(s.limits); err != nil {
		return nil, err
	}
	if err := checkTexts(c); err != nil {
		return nil, err
	}
	q := &userTx{store: s, ctx: context.Background(), tx: t.tx.Tx}
	m := &member{c: c}
	members := []*member{m}
	if err := s.findNumbers(q, members, false); err != nil {
		return nil, err
	}
	if m.decided {
		return nil, m.err
	}
	if c.Plain() && len(c.Events) == 1 {
		args := appendEventValues([]driverValue{m.no, c.Events[0].Seq, c.Expect.Epoch}, &c.Events[0])
		n, err := int64(0), error(nil)
		if s.genuine {
			n, err = t.append(q, args)
		}
		if err == nil && n == 0 {
			if err := t.stillOpen(); err != nil {
				return nil, err
			}
			n, err = q.exec("append", args...)
		}
		if sqlState(err) == "23505" || err == nil && n == 0 {
			s.numbers.forget(c.RunID)
			return nil, sqlstore.FencedAt(c)
		}
		return nil, err
	}
	if err := t.stillOpen(); err != nil {
		return nil, err
	}
	d, refused, err := s.plan(q, members)
	if err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		if err := s.judge(q, refused); err != nil || refused[m] != nil {
			return nil, cmp.Or(err, refused[m])
		}
		return nil, sqlstore.FencedAt(c) // it was carried out before
	}
	left, err := s.writeDraft(q, d, members)
	if sqlState(err) == "23505" || err == nil && len(left) > 0 {
		return nil, errors.Join(sqlstore.FencedAt(c), err)
	}
	return d, err
}

// stillOpen returns errEnded if the body has ended the transaction by SQL, of which the driver
// knows nothing: what follows would then be committed by itself.
func (t *stepTx) stillOpen() error {
	_, err := t.tx.Exec("SAVEPOINT durable_outcome") // an error outside of a transaction
	if sqlState(err) == "25P01" {
		return errEnded
	}
	return err
}

// Again implements store.Tx.
func (t *stepTx) Again(err error) bool {
	if err == nil || errors.Is(err, store.ErrUnknown) {
		return false
	}
	switch code := sqlState(err); {
	case code == "40001", code == "40P01", code == "40003", code == "57P01", code == "57P02", code == "57P03", code == "25P03":
		return true
	case code == "25006":
		t.old = true
		return true
	case code == "26000", code == "0A000" && routineOf(err) == "RevalidateCachedQuery":
		// The driver had the statement prepared, and its tables have changed since. It prepares it again.
		return true
	case len(code) == 5:
		return code[:2] == "08"
	case !connectionLost(err):
		return false
	case t.over:
		return true // it was Commit
	}
	// The lost connection may be another one, of the body's own.
	_, err = t.tx.Exec("SELECT 1")
	return err != nil && sqlState(err) == ""
}
