package postgres

import (
	"context"
	"encoding/json"
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
	some := matchable(&f)
	l, err := s.dialect().List(f, gone)
	if err != nil || !some {
		return store.Page{}, err
	}
	var rows []listedRow
	err = s.readAgain(ctx, func() error {
		rows = nil
		return s.selectRows(ctx, s.db, &rows, whole(l, qualified(s.schema), f.WithLast), l.Args...)
	})
	if err != nil {
		return store.Page{}, described("list runs", err)
	}
	var page store.Page
	if len(rows) > l.Limit {
		rows = rows[:l.Limit]
		page.Next = l.Next(&rows[len(rows)-1].RunRow)
	}
	page.Runs = make([]store.Run, len(rows))
	for i := range rows {
		if page.Runs[i], err = rows[i].run(); err != nil {
			return store.Page{}, described("list runs", err)
		}
	}
	return page, nil
}

// listedRow is a row of a page, with what belongs to it.
type listedRow struct {
	sqlstore.RunRow
	Named []byte            `db:"named"` // the attributes, as an object of JSON; nil: none
	Last  sqlstore.EventRow `db:"last"`  // Seq 0: it was not asked for
}

func (r *listedRow) run() (store.Run, error) {
	run := r.Run()
	if r.Last.Seq > 0 {
		e := r.Last.Event()
		run.Last = &e
	}
	if r.Named == nil {
		return run, nil
	}
	return run, json.Unmarshal(r.Named, &run.Attributes)
}

// whole returns the statement of a page with what belongs to its runs, as of one moment.
func whole(l *sqlstore.Listing, rename func(string) string, withLast bool) string {
	columns, join := "", ""
	if withLast {
		columns = `, COALESCE(e.seq, 0) AS "last.seq", COALESCE(e.epoch, 0) AS "last.epoch", COALESCE(e.branch, 0) AS "last.branch", COALESCE(e.type, '') AS "last.type", ` +
			`COALESCE(e.key, '') AS "last.key", COALESCE(e.attempt, 0) AS "last.attempt", COALESCE(e.ordinal, 0) AS "last.ordinal", COALESCE(e.at, 0) AS "last.at", ` +
			`COALESCE(e.took, 0) AS "last.took", COALESCE(e.active, 0) AS "last.active", COALESCE(e.steps, 0) AS "last.steps", e.data AS "last.data", ` +
			`e.payload AS "last.payload", COALESCE(e.sum, 0) AS "last.sum"`
		join = " LEFT JOIN LATERAL (SELECT * FROM " + rename("durable_events") + " AS d WHERE d.run_no = r.no ORDER BY d.seq DESC LIMIT 1) AS e ON true"
	}
	return "SELECT r.*, CASE WHEN r.attributes > 0 THEN (SELECT CAST(pg_catalog.json_object_agg(a.name, a.value) AS text) FROM " + rename("durable_attributes") +
		" AS a WHERE a.run_no = r.no) END AS named" + columns + " FROM (" + l.SQL + ") AS r" + join + " ORDER BY r.created_at " + l.Direction + ", r.no " + l.Direction
}

// matchable reports whether any run can match f: no run has a text that a column
// cannot hold. It reduces lists that also have other texts to those.
func matchable(f *store.Filter) bool {
	for name, value := range f.Attributes {
		if !holdable(name) || !holdable(value) {
			return false
		}
	}
	return holdable(f.IDPrefix) && reduced(&f.Statuses) && reduced(&f.IDs) && reduced(&f.Workflows) && reduced(&f.Versions) &&
		reduced(&f.Codes) && reduced(&f.Queues) && reduced(&f.Owners) && reduced(&f.Parents)
}

func reduced[T ~string](list *[]T) (some bool) {
	all := *list
	*list = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !holdable(string(v)) })
	return len(all) == 0 || len(*list) > 0
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
	some := matchable(&f)
	sql, args, err := s.dialect().Count(f, by, gone)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Name string `db:"name"`
		N    int64  `db:"n"`
	}
	switch {
	case !some && by != "":
		return map[string]int64{}, nil
	case !some:
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
