package postgres

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// List implements store.Store. A page has at most sqlstore.MaxPage runs.
func (s *Store) List(ctx context.Context, f store.Filter) (store.Page, error) {
	if err := s.enter(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.calls.Done()
	gone, err := s.goneFor(ctx, f)
	if err != nil {
		return store.Page{}, err
	}
	l, err := s.dialect().List(f, gone)
	if err != nil {
		return store.Page{}, err
	}
	var page store.Page
	if !matchable(&f) {
		return page, nil
	}
	err = s.moment(ctx, func(tx *sqlx.Tx) error {
		page = store.Page{}
		var rows []sqlstore.RunRow
		if err := s.selectRows(ctx, tx, &rows, l.SQL, l.Args...); err != nil {
			return err
		}
		if len(rows) > l.Limit {
			rows = rows[:l.Limit]
			page.Next = l.Next(&rows[len(rows)-1])
		}
		var err error
		page.Runs, err = s.runs(ctx, tx, rows, f.WithLast)
		return err
	})
	if err != nil {
		return store.Page{}, described("list runs", err)
	}
	return page, nil
}

// matchable reports whether any run can match f: no run has a text that a column
// cannot hold. A list that also has other texts is reduced to those.
func matchable(f *store.Filter) bool {
	for name, value := range f.Attributes {
		if !holdable(name) || !holdable(value) {
			return false
		}
	}
	for _, list := range [][]string{f.IDs, f.Workflows, f.Versions, f.Codes, f.Queues, f.Owners, f.Parents} {
		if len(list) > 0 && !slices.ContainsFunc(list, holdable) {
			return false
		}
	}
	statuses := len(f.Statuses) == 0 || slices.ContainsFunc(f.Statuses, func(s store.Status) bool { return holdable(string(s)) })
	return statuses && holdable(f.IDPrefix)
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	gone, err := s.goneFor(ctx, f)
	if err != nil {
		return nil, err
	}
	sql, args, err := s.dialect().Count(f, by, gone)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Name string `db:"name"`
		N    int64  `db:"n"`
	}
	switch {
	case !matchable(&f) && by != "":
		return map[string]int64{}, nil
	case !matchable(&f):
		return map[string]int64{"": 0}, nil
	}
	if err := s.selectRows(ctx, s.db, &rows, sql, args...); err != nil {
		return nil, described("count runs", err)
	}
	counts := make(map[string]int64, len(rows))
	for _, r := range rows {
		counts[r.Name] = r.N
	}
	return counts, nil
}

// RunKinds implements store.RunKinds.
func (s *Store) RunKinds(ctx context.Context) (kinds []store.RunKind, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	return kinds, described("list kinds of runs", s.selectRows(ctx, s.db, &kinds, s.sql.Text("kinds")))
}

// goneFor returns the executors that own runs and are not live, where the filter needs them.
func (s *Store) goneFor(ctx context.Context, f store.Filter) ([]string, error) {
	if !f.Orphaned {
		return nil, nil
	}
	var all *census
	err := s.again(ctx, func(w *wire) (err error) {
		w.ctx = ctx
		all, err = s.census(w)
		return err
	})
	if err != nil {
		return nil, described("list executors", err)
	}
	return all.gone, nil
}

// selectRows reads into a slice of structs. Reading twice does no harm, so
// database/sql may repeat it when a connection was lost.
func (s *Store) selectRows(ctx context.Context, q sqlx.QueryerContext, dest any, sql string, args ...any) error {
	s.counts.statements.Add(1)
	s.counts.reads.Add(1)
	return sqlx.SelectContext(ctx, q, dest, sql, args...)
}

// runs turns rows into records, with their attributes and, if requested, their
// last events.
func (s *Store) runs(ctx context.Context, tx *sqlx.Tx, rows []sqlstore.RunRow, withLast bool) ([]store.Run, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	list := make([]store.Run, len(rows))
	byNo := make(map[int64]*store.Run, len(rows))
	var all, attributed []int64
	for i := range rows {
		list[i] = rows[i].Run()
		byNo[rows[i].No] = &list[i]
		all = append(all, rows[i].No)
		if rows[i].Attributes > 0 {
			attributed = append(attributed, rows[i].No)
		}
	}
	if len(attributed) > 0 {
		var attributes []struct {
			No    int64  `db:"no"`
			Name  string `db:"name"`
			Value string `db:"value"`
		}
		if err := s.selectRows(ctx, tx, &attributes, s.sql.Text("attributes_of"), ints(attributed...)); err != nil {
			return nil, err
		}
		for _, a := range attributes {
			setAttribute(byNo[a.No], a.Name, a.Value)
		}
	}
	if !withLast {
		return list, nil
	}
	var events []sqlstore.EventRow
	if err := s.selectRows(ctx, tx, &events, s.sql.Text("events_last_of"), ints(all...)); err != nil {
		return nil, err
	}
	for i := range events {
		e := events[i].Event()
		byNo[events[i].No].Last = &e
	}
	return list, nil
}
