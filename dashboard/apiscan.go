package dashboard

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
)

// scanPage is how many rows are read at a time where most of them are looked at
// in vain.
const scanPage = 500

// matching reads a page of rows. A filter that the store has no index for makes it
// look at maxScanned rows, and return what it found, with the store's cursor,
// however little that is: so one request never reads a whole store.
func (h *handler) matching(ctx context.Context, l *listing) (rows []store.Run, next string, err error) {
	if err := l.searchable(h.redact); err != nil {
		return nil, "", err
	}
	if !l.scans() {
		p, err := h.eng.List(ctx, l.filter)
		return p.Runs, p.Next, err
	}
	f := l.filter
	f.WithLast = l.key != "" // else only those that are found need it
	for scanned := 0; ; {
		f.Limit = scanPage
		p, err := h.eng.List(ctx, f)
		if err != nil {
			return nil, "", err
		}
		if enough := l.enough(p.Runs, l.filter.Limit-len(rows), h.redact); enough < len(p.Runs) {
			// The cursor leads behind the page, so the page must end here.
			f.Limit = enough
			if p, err = h.eng.List(ctx, f); err != nil {
				return nil, "", err
			}
		}
		for i := range p.Runs {
			if l.match(&p.Runs[i], h.redact) {
				rows = append(rows, p.Runs[i])
			}
		}
		scanned += len(p.Runs)
		if f.After = p.Next; p.Next == "" || len(rows) >= l.filter.Limit || scanned >= maxScanned {
			rows, err = h.withLast(ctx, l, f.WithLast, rows)
			return rows, p.Next, err
		}
	}
}

// enough returns how many of rows hold the first n that match; len(rows) if all
// are needed.
func (l *listing) enough(rows []store.Run, n int, shown func(string) string) int {
	for i := range rows {
		if l.match(&rows[i], shown) {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	return len(rows)
}

// withLast reads the rows that were found once more, with their last events,
// unless they have them or need none. One that is gone meanwhile is left out.
func (h *handler) withLast(ctx context.Context, l *listing, have bool, rows []store.Run) ([]store.Run, error) {
	if have || !l.filter.WithLast || len(rows) == 0 {
		return rows, nil
	}
	f := store.Filter{Limit: len(rows), WithLast: true, OldestFirst: l.filter.OldestFirst}
	for i := range rows {
		f.IDs = append(f.IDs, rows[i].ID)
	}
	p, err := h.eng.List(ctx, f)
	return p.Runs, err
}
