//go:build cgo

package sqlite

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// List implements store.Store. A page has at most sqlstore.MaxPage runs.
func (s *Store) List(ctx context.Context, f store.Filter) (page store.Page, err error) {
	err = s.read(ctx, "list runs", func(tx *sqlx.Tx) error {
		gone, err := s.goneFor(ctx, tx, f)
		if err != nil {
			return err
		}
		l, err := s.q.dialect.List(f, gone)
		if err != nil {
			return err
		}
		var rows []sqlstore.RunRow
		if err := s.selectText(ctx, tx, &rows, l.SQL, l.Args...); err != nil {
			return err
		}
		if len(rows) > l.Limit {
			rows = rows[:l.Limit]
			page.Next = l.Next(&rows[l.Limit-1])
		}
		page.Runs, err = s.complete(ctx, tx, rows, f.WithLast)
		return err
	})
	if err != nil {
		return store.Page{}, err
	}
	return page, nil
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	counts := make(map[string]int64)
	err := s.read(ctx, "count runs", func(tx *sqlx.Tx) error {
		gone, err := s.goneFor(ctx, tx, f)
		if err != nil {
			return err
		}
		sql, args, err := s.q.dialect.Count(f, by, gone)
		if err != nil {
			return err
		}
		var groups []struct {
			Name string `db:"name"`
			N    int64  `db:"n"`
		}
		if err := s.selectText(ctx, tx, &groups, sql, args...); err != nil {
			return err
		}
		for _, g := range groups {
			counts[g.Name] = g.N
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// RunKinds implements store.RunKinds.
func (s *Store) RunKinds(ctx context.Context) (kinds []store.RunKind, err error) {
	const noTimer = math.MaxInt64
	found := make(map[store.RunKind]struct{}) // lanes are by owner, too
	err = s.snapshot(ctx, "list kinds of runs", func(sn *snapshot) error {
		return sn.query(sn.s.q.ownedLanes, func(c *cells) error {
			c.next()
			found[store.RunKind{Workflow: c.text(), Version: c.text(), Queue: c.text()}] = struct{}{}
			return nil
		}, int64(noTimer))
	})
	return slices.Collect(maps.Keys(found)), err
}

// goneFor returns the executors that own runs and are not live, if f asks about them.
func (s *Store) goneFor(ctx context.Context, tx *sqlx.Tx, f store.Filter) (gone []string, err error) {
	if !f.Orphaned {
		return nil, nil
	}
	rows, err := s.executorRows(ctx, tx)
	if err != nil {
		return nil, err
	}
	now, live := s.opts.Clock(), map[string]bool{"": true}
	for i := range rows {
		live[rows[i].ID] = s.isLive(&rows[i], now)
	}
	if err := s.selectText(ctx, tx, &gone, s.q.owners.text); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(gone, func(id string) bool { return live[id] }), nil
}
