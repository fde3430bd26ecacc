//go:build cgo

package sqlite

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// shut keeps the only writer of an in-memory database out during a read:
// without a WAL, a reader and a writer lock each other out.
func (s *Store) shut(ctx context.Context) (open func(), err error) {
	if !s.memory {
		return func() {}, nil
	}
	c, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	return func() { s.give(c) }, nil
}

// read runs fn in a read transaction, so everything it reads is as of one moment.
func (s *Store) read(ctx context.Context, what string, fn func(*sqlx.Tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	open, err := s.shut(ctx)
	if err != nil {
		return err
	}
	defer open()
	tx, err := s.readers.BeginTxx(ctx, nil)
	if err != nil {
		return s.fail(what, err, false)
	}
	// It has written nothing, so it only has to end; if the context ended
	// first, it already has.
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.fail(what, err, false)
	}
	return s.files.Gone()
}

// selectAll reads all rows of a query into *dest.
func (s *Store) selectAll(ctx context.Context, tx *sqlx.Tx, dest any, q *query, args ...any) error {
	return s.selectText(ctx, tx, dest, q.text, args...)
}

func (s *Store) selectText(ctx context.Context, tx *sqlx.Tx, dest any, text string, args ...any) error {
	s.counts.statements.Add(1)
	s.counts.reads.Add(1)
	return tx.SelectContext(ctx, dest, text, args...)
}

// complete turns rows into records, with their attributes and, if requested,
// their last events.
func (s *Store) complete(ctx context.Context, tx *sqlx.Tx, rows []sqlstore.RunRow, withLast bool) ([]store.Run, error) {
	runs := make([]store.Run, len(rows))
	at := make(map[int64]*store.Run, len(rows))
	var all, rich []int64
	for i := range rows {
		runs[i] = rows[i].Run()
		at[rows[i].No] = &runs[i]
		all = append(all, rows[i].No)
		if rows[i].Attributes > 0 {
			rich = append(rich, rows[i].No)
			runs[i].Attributes = make(map[string]string, rows[i].Attributes)
		}
	}
	if len(rich) > 0 {
		var list []struct {
			RunNo int64  `db:"run_no"`
			Name  string `db:"name"`
			Value string `db:"value"`
		}
		if err := s.selectAll(ctx, tx, &list, s.q.attributesOf, jsonNumbers(rich)); err != nil {
			return nil, err
		}
		for _, a := range list {
			at[a.RunNo].Attributes[a.Name] = a.Value
		}
	}
	if withLast && len(all) > 0 {
		var last []sqlstore.EventRow
		if err := s.selectAll(ctx, tx, &last, s.q.eventsLastOf, jsonNumbers(all)); err != nil {
			return nil, err
		}
		for i := range last {
			e := last[i].Event()
			at[last[i].No].Last = &e
		}
	}
	return runs, nil
}
