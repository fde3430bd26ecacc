package conformance

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var countCases = []Case{
	{Name: "runs are counted by each field", Clauses: "S16", run: countBy},
	{Name: "a count without a field has one number, also where nothing matches", Clauses: "S28", run: countNone},
	{Name: "a count takes the filter, and neither limit nor cursor", Clauses: "S16", run: countFilter},
}

func countBy(t *T) {
	s := t.open()
	shelf := t.shelf(s)
	for by, field := range map[string]func(*store.Run) string{
		"":               func(*store.Run) string { return "" },
		store.ByStatus:   func(r *store.Run) string { return string(r.Status) },
		store.ByWorkflow: func(r *store.Run) string { return r.Workflow },
		store.ByQueue:    func(r *store.Run) string { return r.Queue },
		store.ByCode:     func(r *store.Run) string { return r.Code },
		store.ByOwner:    func(r *store.Run) string { return r.Owner },
		store.ByVersion:  func(r *store.Run) string { return r.Version },
	} {
		want := make(map[string]int64)
		for i := range shelf {
			want[field(&shelf[i])]++
		}
		require.Equal(t, want, t.count(s, store.Filter{}, by), "S16: by %q", by)
	}
	for _, by := range []string{"id", "nonsense", "status; DROP TABLE runs"} {
		_, err := s.Count(t.Context(), store.Filter{}, by)
		require.ErrorIs(t, err, store.ErrInvalid, "by %q", by)
	}
}

func countFilter(t *T) {
	s := t.open()
	shelf := t.shelf(s)
	for _, c := range criteria(shelf) {
		f := store.Filter{Limit: 1, After: "nothing that List would take"}
		c.set(&f)
		want := make(map[string]int64)
		for i := range shelf {
			if c.match(&shelf[i]) {
				want[string(shelf[i].Status)]++
			}
		}
		require.Equal(t, want, t.count(s, f, store.ByStatus), "S16: %s", c.name)
	}
	none := t.count(s, store.Filter{IDs: []string{"absent"}}, "")
	require.Empty(t, none)
}

func countNone(t *T) {
	s := t.open()
	for range 2 {
		n, err := s.Count(t.Context(), store.Filter{IDs: []string{"absent"}}, "")
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"": 0}, n, "S28: the only key is the empty one")
		n, err = s.Count(t.Context(), store.Filter{IDs: []string{"absent"}}, store.ByStatus)
		require.NoError(t, err)
		for value, n := range n {
			require.Zero(t, n, "S28: no run has %q", value)
		}
		t.run(s, fmt.Sprint("r", t.now()))
	}
}
