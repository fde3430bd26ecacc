//go:build cgo

package sqlite

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Commit implements store.Store.
//
// A single plain checkpoint of one event is one statement in autocommit; any
// other batch is one transaction. After an I/O error during the commit it is
// unknown what is on the disk, and the error wraps store.ErrUnknown.
func (s *Store) Commit(ctx context.Context, batch []store.Change) []error {
	if len(batch) == 0 {
		return nil
	}
	return s.CommitLate(ctx, func() []store.Change { return batch })
}

// CommitLate implements store.LateCommitter: form is called when this handle has its writer, and
// its turn at the file if it shares that with other processes.
func (s *Store) CommitLate(ctx context.Context, form func() []store.Change) []error {
	if err := s.enter(ctx); err != nil {
		return unwritten(form(), s.limits, err)
	}
	defer s.leave()
	c, err := s.take(ctx)
	if err != nil {
		return unwritten(form(), s.limits, err)
	}
	defer s.give(c)
	batch := form()
	errs, ok := sqlstore.Screen(batch, s.limits)
	if len(batch) == 0 {
		return errs
	}
	if len(batch) == 1 && ok && batch[0].Plain() && len(batch[0].Events) == 1 {
		errs[0] = s.checkpoint(ctx, c, &batch[0])
		return errs
	}
	todo := make([]*store.Change, 0, len(batch))
	for i := range batch {
		if errs[i] == nil {
			todo = append(todo, &batch[i])
		}
	}
	if len(todo) == 0 {
		return errs
	}
	done := sqlstore.Bisect(todo, func(part []*store.Change) ([]error, error) { return s.attempt(ctx, c, part) }, memberFault)
	for i := range errs {
		if errs[i] == nil {
			errs[i], done = done[0], done[1:]
		}
	}
	return errs
}

// unwritten returns the answers to a batch that was not written because of err.
func unwritten(batch []store.Change, l store.Limits, err error) []error {
	errs, _ := sqlstore.Screen(batch, l)
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

// checkpoint appends one event in autocommit. The usual case needs only that
// statement; in any other case a transaction finds out the reason.
func (s *Store) checkpoint(ctx context.Context, c *conn, ch *store.Change) error {
	no, ok := s.numbers.get(ch.RunID)
	if ok && ch.Events[0].Seq <= maxSeq {
		var changed int64
		err := s.whileBusy(ctx, func() (err error) {
			changed, err = s.appendFenced(c, no, ch.Expect.Epoch, ch.Expect.Epoch, &ch.Events[0])
			return err
		})
		switch {
		case err == nil && changed == 1:
			s.counts.commits.Add(1)
			return nil
		case err != nil:
			s.undo(c, err)
			return s.fail("commit", err, true)
		}
	}
	errs, err := s.attempt(ctx, c, []*store.Change{ch})
	if err != nil {
		return err
	}
	return errs[0]
}

// appendFenced is the plain checkpoint: it appends e if the event before e has
// the epoch before.
func (s *Store) appendFenced(db session, no, epoch, before int64, e *store.Event) (changed int64, err error) {
	changed, _, err = db.exec(s.q.append, eventArgs(db, no, epoch, before, e)...)
	return changed, err
}

// eventArgs returns the arguments of append; append_checked takes all but the last. They are
// valid until the next ones are made on this connection.
func eventArgs(db session, no, epoch, before int64, e *store.Event) []any {
	c, ours := db.(*conn)
	if !ours {
		c = &conn{}
	}
	c.events = sqlstore.AppendEventValues(append(c.events[:0], place(no, e.Seq), c.epoch.Of(epoch)), e)
	c.events = append(c.events, c.epoch.Of(before))
	return c.events
}

// errUndo ends a transaction whose only Change was refused.
var errUndo = errors.New("sqlite: refused")

// attempt carries out part of a batch in one transaction. It returns one error
// per Change, or one error for all of them, in which case nothing is written.
func (s *Store) attempt(ctx context.Context, c *conn, part []*store.Change) ([]error, error) {
	errs := make([]error, len(part))
	err := s.transact(ctx, c, "commit", func(t *tx) error { return t.members(part, errs) })
	if errors.Is(err, errUndo) {
		err = nil
	}
	return errs, err
}

// members carries out Changes. A Change that the contract refuses gets its reason
// in errs and leaves nothing behind; an error of the database ends the whole batch.
func (t *tx) members(part []*store.Change, errs []error) (err error) {
	if len(part) == 1 {
		if errs[0], err = t.change(part[0]); err == nil && errs[0] != nil {
			err = errUndo
		}
		return err
	}
	for i, c := range part {
		// Only these can be refused after their first write.
		if len(c.Start) > 0 || len(c.Send) > 0 || len(c.Hold) > 0 {
			errs[i], err = t.guarded(c)
		} else {
			errs[i], err = t.change(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// guarded carries out a Change that can be undone without the others.
func (t *tx) guarded(c *store.Change) (refused, err error) {
	q := t.s.q
	if err := t.db.control(q.savepoint); err != nil {
		return nil, err
	}
	told := t.news
	if refused, err = t.change(c); err != nil {
		return nil, err
	}
	if refused != nil {
		t.news = told
		// The run numbers assigned here will be assigned again.
		clear(t.fresh)
		if err := t.db.control(q.rollbackTo); err != nil {
			return nil, err
		}
	}
	return refused, t.db.control(q.release)
}
