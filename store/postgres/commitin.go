package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// CommitIn implements store.TxCommitter. The transaction must be on this store's
// database and have access to its schema.
//
// The rows it locks stay locked until the user ends the transaction, which
// should be soon, because messages to these runs and claims of them wait.
func (s *Store) CommitIn(ctx context.Context, tx any, c store.Change) error {
	q := &userTx{store: s, ctx: ctx}
	switch tx := tx.(type) {
	case *sql.Tx:
		q.tx = tx
	case *sqlx.Tx:
		if tx != nil {
			q.tx = tx.Tx
		}
	}
	if q.tx == nil {
		return fmt.Errorf("postgres: CommitIn takes a *sql.Tx or *sqlx.Tx, not a %T: %w", tx, store.ErrInvalid)
	}
	if err := cmp.Or(s.opts.writes(), c.Validate(s.limits)); err != nil {
		return err
	}
	if err := checkTexts(&c); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if err := s.sameDatabase(ctx, q.tx); err != nil {
		return described("look at the given transaction", unusable(err))
	}
	m := &member{c: &c}
	err := s.commitIn(q, m)
	if err == nil {
		err = m.err
	}
	return described(fmt.Sprintf("commit for run %q in a transaction", c.RequestedRun()), unusable(err))
}

// unusable marks the errors of a transaction that has ended, that a statement of the program's has
// aborted, or that may not write. It will never take the Change, however often it is asked.
func unusable(err error) error {
	switch code := sqlState(err); {
	case errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("%w: the given transaction has ended: %w", store.ErrInvalid, err)
	case code == "25P02":
		return fmt.Errorf("%w: the given transaction was aborted by an earlier statement: roll it back: %w", store.ErrInvalid, err)
	case code == "25006":
		return fmt.Errorf("%w: the given transaction may only read: %w", store.ErrInvalid, err)
	}
	return err
}

func (s *Store) commitIn(q querier, m *member) error {
	members := []*member{m}
	if err := s.findNumbers(q, members, false); err != nil || m.decided {
		return err
	}
	d, refused, err := s.plan(q, members)
	if err != nil {
		return err
	}
	if len(m.c.Events) > 0 {
		// What was already carried out is done (S6). Check that before anything
		// is written, because only the user can roll a write back. From here on
		// no other transaction can carry it out: the row is locked.
		done, err := s.carriedOut(q, m)
		if err != nil || done {
			return err
		}
	}
	if len(refused) > 0 {
		if err := s.judge(q, refused); err != nil {
			return err
		}
		decide(refused)
		return nil
	}
	left, err := s.writeDraft(q, d, members)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		if err := s.readBack(q, left); err != nil {
			return err
		}
		// A plain checkpoint locks no row: it may just have been carried out.
		if !m.decided || (m.err == nil && !m.c.Plain()) {
			m.decide(sqlstore.FencedAt(m.c))
		}
		return nil
	}
	m.decide(nil)
	news := d.News()
	if news.Empty() || !s.genuine {
		return nil // no NOTIFY there
	}
	// The server delivers these only if the user's transaction commits.
	for _, payload := range news.Messages(inTx, maxPayload) {
		if err := q.query("notify_in_tx", func([]driverValue) error { return nil }, s.notices.channel(), payload); err != nil {
			return err
		}
	}
	return nil
}

// sameDatabase makes sure that tx is on this store's database: the tables of another store may have the
// same names. The store asks for its own when it is opened, and again if the two differ, since the server
// may have been restarted. Not for long: tx may have the last connection of the program's pool, as others
// that ask may have theirs.
func (s *Store) sameDatabase(ctx context.Context, tx *sql.Tx) error {
	theirs, err := databaseOf(ctx, tx, s.genuine)
	if err != nil {
		return err
	}
	if known := s.database.Load(); known != nil && *known == theirs {
		return nil
	}
	asking, cancel := context.WithTimeoutCause(ctx, answerIn, errors.New("no connection of the pool became free: it needs more than there are transactions at a time"))
	defer cancel()
	ours, err := databaseOf(asking, s.db, s.genuine)
	if err != nil && ctx.Err() == nil && asking.Err() != nil {
		err = context.Cause(asking)
	}
	if err != nil {
		return err
	}
	s.database.Store(&ours)
	if ours != theirs {
		return fmt.Errorf("postgres: the given transaction is on %s, the store on %s: %w", theirs, ours, store.ErrInvalid)
	}
	return nil
}

// databaseOf returns what tells the database that q is on from others.
func databaseOf(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, genuine bool) (name string, err error) {
	ask := "SELECT pg_catalog.current_database()"
	if genuine {
		// Two servers may have databases of one name. A restart changes it. An operator would be
		// looked up where any role may have placed one, see sessionSettings.
		ask = "SELECT pg_catalog.concat(pg_catalog.current_database(), ' of the server that was started at ', pg_catalog.pg_postmaster_start_time())"
	}
	err = q.QueryRowContext(ctx, ask).Scan(&name)
	return name, err
}

// carriedOut decides m if its last event is in the log.
func (s *Store) carriedOut(q querier, m *member) (done bool, err error) {
	probe := &member{c: m.c, no: m.no}
	if err := s.readBack(q, []*member{probe}); err != nil {
		return false, err
	}
	if done = probe.decided && probe.err == nil; done {
		m.decide(nil)
	}
	return done, nil
}
