//go:build cgo

package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// tx is a write transaction, begun IMMEDIATE: until it ends, no other transaction
// writes, so what it has read stays true and it may check first and write afterwards.
//
// After any database error it is rolled back and never continued: on some
// errors (disk full, I/O, memory) SQLite rolls back on its own, and the next
// statement would then run and be committed alone.
type tx struct {
	s       *Store
	db      session
	numbers *numbers
	updates map[string]*query // by the columns they set
	clock   time.Time
	now     store.Time // the same
	wrote   bool
	news    notice.News      // what others may be waiting for
	fresh   map[string]int64 // numbers learnt here, valid once this has committed
	known   []sqlstore.ExecutorRow
	loaded  bool       // known is
	until   store.Time // see soon
	looked  *lastLook  // what a beat has found, valid once this has committed
}

func (s *Store) newTx(db session) *tx {
	clock := s.opts.Clock()
	return &tx{s: s, db: db, numbers: &s.numbers, updates: s.updates, clock: clock, now: store.TimeOf(clock), fresh: make(map[string]int64)}
}

// write runs fn in a transaction.
func (s *Store) write(ctx context.Context, what string, fn func(*tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer s.give(c)
	return s.transact(ctx, c, what, fn)
}

// transact runs fn in a transaction on c. It checks the context until the
// transaction has begun; from then on the transaction is committed or rolled back,
// whatever the context says. Errors of the contract come back as fn returned them.
func (s *Store) transact(ctx context.Context, c *conn, what string, fn func(*tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.whileBusy(ctx, func() error { return c.control(s.q.begin) }); err != nil {
		return s.fail(what, err, false)
	}
	finished := false
	defer func() {
		if !finished { // an error, or a panic of ours
			s.undo(c, err)
		}
	}()
	t := s.newTx(c)
	if err := fn(t); err != nil {
		return s.fail(what, err, false)
	}
	if err := c.control(s.q.commit); err != nil {
		return s.fail(what, err, true)
	}
	finished = true
	if t.wrote {
		s.counts.commits.Add(1)
	}
	for id, no := range t.fresh {
		s.numbers.put(id, no)
	}
	if t.looked != nil {
		s.sightings.last = t.looked
	}
	s.tell(t.news)
	return nil
}

// undo leaves c without a transaction, or without a connection.
func (s *Store) undo(c *conn, err error) {
	if !c.raw.AutoCommit() {
		if c.control(s.q.rollback) != nil {
			c.drop()
			return
		}
	}
	if broken(err) {
		c.drop()
	}
}

func (t *tx) exec(q *query, args ...any) (changed, rowid int64, err error) {
	changed, rowid, err = t.db.exec(q, args...)
	t.wrote = t.wrote || changed > 0
	return changed, rowid, err
}

func (t *tx) query(q *query, each func(*cells) error, args ...any) error {
	return t.db.query(q, func(row []driver.Value) error { return each(&cells{row: row}) }, args...)
}

// number returns a run's number, and whether it came from the cache rather than
// the database. 0: no such run.
func (t *tx) number(id string) (no int64, remembered bool, err error) {
	if no, ok := t.fresh[id]; ok {
		return no, false, nil
	}
	if no, ok := t.numbers.get(id); ok {
		return no, true, nil
	}
	no, err = t.lookUp(id)
	return no, false, err
}

func (t *tx) lookUp(id string) (no int64, err error) {
	err = t.query(t.s.q.runNumber, func(c *cells) error { no = c.int(); return nil }, id)
	if err == nil && no != 0 {
		t.fresh[id] = no
	}
	return no, err
}

// update sets columns of a run's row.
func (t *tx) update(no int64, sets []sqlstore.Assignment) error {
	if len(sets) == 0 {
		return nil
	}
	args := make([]any, 0, len(sets)+1)
	for _, a := range sets {
		args = append(args, a.Value)
	}
	_, _, err := t.exec(t.updateQuery(sets), append(args, no)...)
	return err
}

// updateQuery returns the UPDATE that sets these columns.
func (t *tx) updateQuery(sets []sqlstore.Assignment) *query {
	key := make([]byte, 0, 128)
	for _, a := range sets {
		key = append(append(key, a.Column...), ',')
	}
	q, ok := t.updates[string(key)]
	if !ok {
		q = &query{t.s.q.updateText(sets)}
		t.updates[string(key)] = q
	}
	return q
}
