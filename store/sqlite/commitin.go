//go:build cgo

package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/holdfast-dev/holdfast/store"
)

var _ store.TxCommitter = (*Store)(nil)

// CommitIn implements store.TxCommitter, for a *sql.Tx or *sqlx.Tx on this
// store's file, typically from the program's own connections to it. The Change
// becomes durable when tx commits, and as durable as that connection is
// configured to be; after an error tx must be rolled back.
//
// Until tx ends, no other connection can write to the file. Begin it with
// _txlock=immediate: a transaction that has only read while another process
// wrote can no longer write. Runs that wait for the Change learn of it soon after tx
// has ended.
func (s *Store) CommitIn(ctx context.Context, tx any, c store.Change) error {
	db := &userTx{counts: &s.counts}
	switch tx := tx.(type) {
	case *sql.Tx:
		db.tx = tx
	case *sqlx.Tx:
		if tx != nil {
			db.tx = tx.Tx
		}
	}
	if db.tx == nil {
		return fmt.Errorf("sqlite: CommitIn needs a *sql.Tx or *sqlx.Tx, not a %T: %w", tx, store.ErrInvalid)
	}
	if err := cmp.Or(s.opts.writes(), c.Validate(s.limits)); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.sameFile(db.tx); err != nil {
		return err
	}
	// CommitIn does not take the writer, because the writer's holder may be waiting
	// for tx to end. It therefore does not touch what the writer remembers.
	t := s.newTx(db)
	t.numbers, t.updates = &numbers{}, make(map[string]*query)
	refused, err := t.change(&c)
	if err != nil {
		return unusable(s.fail("commit in the given transaction", err, false))
	}
	if refused == nil {
		s.announce(t.news)
	}
	return refused
}

// unusable marks the errors of a transaction that has ended or may not write. It will never take the
// Change, however often it is asked.
func unusable(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return fmt.Errorf("%w: the given transaction has ended: %w", store.ErrInvalid, err)
	}
	if e, ok := errors.AsType[sqlite3.Error](err); ok && e.Code == sqlite3.ErrReadonly {
		return fmt.Errorf("%w: the given transaction may only read: %w", store.ErrInvalid, err)
	}
	return err
}

// sameFile makes sure that tx is on this store's database.
func (s *Store) sameFile(tx *sql.Tx) error {
	var file string
	if err := tx.QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return unusable(s.fail("ask the given transaction for its file", err, false))
	}
	real, err := resolve(file)
	if s.memory || err != nil || real != s.file {
		return errors.Join(fmt.Errorf("sqlite: the given transaction is on %q, the store on %q: %w", file, s.name, store.ErrInvalid), err)
	}
	return nil
}

// userTx carries out statements in a transaction of the user's. They get no
// context: a context that ended midway would roll the whole transaction back,
// and the user's next statement would then be committed on its own.
type userTx struct {
	tx     *sql.Tx
	counts *counts
}

func (u *userTx) exec(q *query, args ...any) (changed, rowid int64, err error) {
	u.counts.statements.Add(1)
	res, err := u.tx.Exec(q.text, args...)
	if err != nil {
		return 0, 0, err
	}
	// Neither fails in this driver.
	changed, _ = res.RowsAffected()
	rowid, _ = res.LastInsertId()
	return changed, rowid, nil
}

func (u *userTx) control(q *query) error {
	_, err := u.tx.Exec(q.text)
	return err
}

func (u *userTx) query(q *query, each func(row []driver.Value) error, args ...any) (err error) {
	u.counts.statements.Add(1)
	u.counts.reads.Add(1)
	rows, err := u.tx.Query(q.text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(columns))
	got, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range got {
		to[i] = &got[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for i := range got {
			row[i] = got[i]
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

var _ session = (*userTx)(nil)
