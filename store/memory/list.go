package memory

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// List implements store.Store.
func (s *Store) List(ctx context.Context, f store.Filter) (store.Page, error) {
	after, err := parseCursor(f)
	if err != nil {
		return store.Page{}, err
	}
	if err := s.read(ctx); err != nil {
		return store.Page{}, err
	}
	defer s.data.mu.Unlock()
	order := compareRuns
	if !f.OldestFirst {
		order = func(a, b cursor) int { return compareRuns(b, a) }
	}
	runs := s.data.matching(f)
	if after != nil {
		runs = slices.DeleteFunc(runs, func(r *run) bool { return order(place(r), *after) <= 0 })
	}
	slices.SortFunc(runs, func(a, b *run) int { return order(place(a), place(b)) })
	limit := f.Limit
	if limit <= 0 {
		limit = store.DefaultLimit
	}
	var page store.Page
	if len(runs) > limit {
		runs = runs[:limit]
		next := place(runs[limit-1])
		next.Filter = digest(f)
		page.Next = next.String()
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

// matching returns the runs that f selects, in no order.
func (d *data) matching(f store.Filter) []*run {
	now := d.now()
	var runs []*run
	for _, r := range d.runs {
		if matches(&r.row, &f) && (!f.Orphaned || d.orphaned(r, now)) && (!f.Unarchived || r.row.ArchivedSeq < int64(r.log.len())) {
			runs = append(runs, r)
		}
	}
	return runs
}

// orphaned reports that the owner of r is gone and has left it unfinished.
func (d *data) orphaned(r *run, now store.Time) bool {
	return !r.row.Status.Terminal() && r.row.Owner != "" && !d.live(r.row.Owner, now)
}

func matches(r *store.Run, f *store.Filter) bool {
	for name, value := range f.Attributes {
		if v, ok := r.Attributes[name]; !ok || v != value {
			return false
		}
	}
	return oneOf(f.IDs, r.ID) && strings.HasPrefix(r.ID, f.IDPrefix) &&
		oneOf(f.Workflows, r.Workflow) && oneOf(f.Versions, r.Version) &&
		oneOf(f.Statuses, r.Status) && oneOf(f.Codes, r.Code) &&
		oneOf(f.Queues, r.Queue) && oneOf(f.Owners, r.Owner) && oneOf(f.Parents, r.Parent) &&
		within(r.CreatedAt, f.CreatedFrom, f.CreatedTo) &&
		within(r.UpdatedAt, f.UpdatedFrom, f.UpdatedTo) &&
		within(r.EndedAt, f.EndedFrom, f.EndedTo) &&
		(!f.Mail || r.Inbox > r.Seen) && (!f.Paused || r.Paused)
}

func oneOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// within tests a half-open window. A moment that is not set is in no window.
func within(t, from, to store.Time) bool {
	if from == 0 && to == 0 {
		return true
	}
	return t != 0 && t >= from && (to == 0 || t < to)
}

// cursor is a place in a listing: behind a run, which need not exist any more.
type cursor struct {
	CreatedAt store.Time
	No        int64
	Filter    uint64 // digest of the filter it belongs to
}

func place(r *run) cursor { return cursor{CreatedAt: r.row.CreatedAt, No: r.no} }

func compareRuns(a, b cursor) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.No, b.No))
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d.%d", c.CreatedAt, c.No, c.Filter))
}

// parseCursor reads f.After, nil if it is empty.
func parseCursor(f store.Filter) (*cursor, error) {
	if f.After == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(f.After)
	var c cursor
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d.%d.%d", &c.CreatedAt, &c.No, &c.Filter)
	}
	if err != nil || c.String() != f.After || c.Filter != digest(f) {
		return nil, fmt.Errorf("store: After is not the Next of a page with this filter and order: %w", store.ErrInvalid)
	}
	return &c, nil
}

// digest tells filters apart by what they select and in which order.
func digest(f store.Filter) uint64 {
	f.After, f.Limit, f.WithLast = "", 0, false
	h := fnv.New64a()
	// A Filter holds strings, numbers and flags: encoding it cannot fail.
	_ = json.NewEncoder(h).Encode(f)
	return h.Sum64()
}
