package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// List implements store.Store.
func (s *Store) List(ctx context.Context, f store.Filter) (store.Page, error) {
	after, further, err := f.Place()
	if err != nil {
		return store.Page{}, err
	}
	if err := s.read(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.data.mu.Unlock()
	order := comparePlaces
	if !f.OldestFirst {
		order = func(a, b store.Place) int { return comparePlaces(b, a) }
	}
	runs := s.data.matching(f)
	if further {
		runs = slices.DeleteFunc(runs, func(r *run) bool { return order(r.place(), after) <= 0 })
	}
	slices.SortFunc(runs, func(a, b *run) int { return order(a.place(), b.place()) })
	limit := f.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	var page store.Page
	if len(runs) > limit {
		runs = runs[:limit]
		page.Next = f.Next(runs[limit-1].place())
	}
	for _, r := range runs {
		page.Runs = append(page.Runs, r.view(f.WithLast))
	}
	return page, nil
}

// Count implements store.Store.
func (s *Store) Count(ctx context.Context, f store.Filter, by string) (map[string]int64, error) {
	field := func(*store.Run) string { return "" }
	switch by {
	case "":
	case store.ByStatus:
		field = func(r *store.Run) string { return string(r.Status) }
	case store.ByWorkflow:
		field = func(r *store.Run) string { return r.Workflow }
	case store.ByQueue:
		field = func(r *store.Run) string { return r.Queue }
	case store.ByCode:
		field = func(r *store.Run) string { return r.Code }
	case store.ByOwner:
		field = func(r *store.Run) string { return r.Owner }
	case store.ByVersion:
		field = func(r *store.Run) string { return r.Version }
	default:
		return nil, fmt.Errorf("store: count by %q: no such field: %w", by, store.ErrInvalid)
	}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.data.mu.Unlock()
	counts := make(map[string]int64)
	if by == "" {
		counts[""] = 0
	}
	for _, r := range s.data.matching(f) {
		counts[field(&r.row)]++
	}
	return counts, nil
}

// RunKinds implements store.RunKinds.
func (s *Store) RunKinds(ctx context.Context) (kinds []store.RunKind, err error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	defer s.data.mu.Unlock()
	seen := map[store.RunKind]bool{}
	for _, r := range s.data.runs {
		k := store.RunKind{Workflow: r.row.Workflow, Version: r.row.Version, Queue: r.row.Queue}
		if !r.row.Status.Terminal() && !seen[k] {
			seen[k] = true
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// matching returns the runs that f selects, in no order.
func (d *data) matching(f store.Filter) []*run {
	now := d.now()
	var runs []*run
	for _, r := range d.runs {
		if f.Matches(&r.row, r.log.Len(), !d.live(r.row.Owner, now)) {
			runs = append(runs, r)
		}
	}
	return runs
}

func (r *run) place() store.Place { return store.Place{CreatedAt: r.row.CreatedAt, No: r.no} }

func comparePlaces(a, b store.Place) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.No, b.No))
}
