package read

import (
	"context"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/dashboard/internal/web"
	"github.com/holdfast-dev/holdfast/store"
)

// List reads a page of runs.
func (rd *Reader) List(ctx context.Context, l *Listing) (client.Runs, error) {
	page := client.Runs{Runs: []client.Run{}}
	rows, next, err := rd.Matching(ctx, l)
	if err != nil {
		return page, err
	}
	room := web.Quota(web.ListBytes)
	for i := range rows {
		run := rd.Wire.Run(&rows[i])
		if !room.Take(run) {
			break
		}
		page.Runs = append(page.Runs, run)
	}
	if len(page.Runs) < len(rows) { // the cursor points past the last row, so the page has to end with it
		short := *l
		short.Filter.Limit = len(page.Runs)
		if rows, next, err = rd.Matching(ctx, &short); err != nil {
			return page, err
		}
		page.Runs = page.Runs[:0]
		for i := range rows {
			page.Runs = append(page.Runs, rd.Wire.Run(&rows[i]))
		}
	}
	page.Next = l.CursorBehind(next)
	if l.counts {
		all := l.Filter
		all.Statuses, all.After = nil, ""
		counts, err := rd.Engine.Store().Count(ctx, all, store.ByStatus)
		if err != nil {
			return page, err
		}
		page.Counts = counts
	}
	return page, nil
}

// scanPage is how many rows are read at a time in a search, where most of them do not
// match.
const scanPage = 500

// Matching reads a page of rows. For a filter that the store has no index for it reads at
// most MaxScanned rows and returns what it has found, however little, with the store's
// cursor: one request never reads a whole store.
func (rd *Reader) Matching(ctx context.Context, l *Listing) (rows []store.Run, next string, err error) {
	if err := l.Searchable(rd.Redact.Text); err != nil {
		return nil, "", err
	}
	if !l.Scans() {
		p, err := rd.Engine.List(ctx, l.Filter)
		return p.Runs, p.Next, err
	}
	f := l.Filter
	f.WithLast = l.Key != "" // else only those that are found need it
	for scanned := 0; ; {
		f.Limit = scanPage
		p, err := rd.Engine.List(ctx, f)
		if err != nil {
			return nil, "", err
		}
		if enough := l.enough(p.Runs, l.Filter.Limit-len(rows), rd.Redact.Text); enough < len(p.Runs) {
			// The cursor points past the last row, so the page has to end with it.
			f.Limit = enough
			if p, err = rd.Engine.List(ctx, f); err != nil {
				return nil, "", err
			}
		}
		for i := range p.Runs {
			if l.Match(&p.Runs[i], rd.Redact.Text) {
				rows = append(rows, p.Runs[i])
			}
		}
		scanned += len(p.Runs)
		if f.After = p.Next; p.Next == "" || len(rows) >= l.Filter.Limit || scanned >= MaxScanned {
			rows, err = rd.withLast(ctx, l, f.WithLast, rows)
			return rows, p.Next, err
		}
	}
}

// enough returns how many of the rows it takes to have n that match; len(rows) if all are
// needed.
func (l *Listing) enough(rows []store.Run, n int, shown func(string) string) int {
	for i := range rows {
		if l.Match(&rows[i], shown) {
			if n--; n == 0 {
				return i + 1
			}
		}
	}
	return len(rows)
}

// withLast reads the rows that were found again, with their last events, unless they have
// them or need none. A run that was deleted in the meantime is left out.
func (rd *Reader) withLast(ctx context.Context, l *Listing, have bool, rows []store.Run) ([]store.Run, error) {
	if have || !l.Filter.WithLast || len(rows) == 0 {
		return rows, nil
	}
	f := store.Filter{Limit: len(rows), WithLast: true, OldestFirst: l.Filter.OldestFirst}
	for i := range rows {
		f.IDs = append(f.IDs, rows[i].ID)
	}
	p, err := rd.Engine.List(ctx, f)
	return p.Runs, err
}
