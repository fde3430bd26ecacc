package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Claim implements store.Store. Among runs of one priority, the run that has
// waited longest is the one whose WakeAt came first; without a WakeAt, the one
// that was created first.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	d := s.data
	defer d.mu.Unlock()
	s.counts.Statements++
	now := d.now()
	if !d.live(c.Executor, now) {
		return nil, fmt.Errorf("store: executor %q is not live, it must beat before it claims: %w", c.Executor, store.ErrNotFound)
	}
	next := d.named(&c, now)
	if len(c.IDs) == 0 {
		next = d.due(&c, now)
	}
	var taken []store.Run
	for len(taken) < c.Max {
		r := next()
		if r == nil {
			break
		}
		d.claim(r, &c, now)
		taken = append(taken, r.view(true))
	}
	if len(taken) > 0 {
		s.counts.Commits++
	}
	return taken, nil
}

// claim makes c.Executor the owner of r.
func (d *data) claim(r *run, c *store.Claim, now store.Time) {
	row := c.Take(&r.row, r.log.Last(), now)
	r.log.Append(row.Last, row.Epoch)
	r.row, r.row.Last = row, nil
}

// due returns the runs that a Claim without IDs takes, one at a call; nil after the last.
func (d *data) due(c *store.Claim, now store.Time) (next func() *run) {
	var free []*run
	lines := make(map[string]*line)
	for r := range d.unfinished {
		switch {
		case !d.may(c, r, now):
		case r.row.NeedsPlace():
			d.line(lines, r.row.Queue, c, now).add(r)
		default:
			free = append(free, r)
		}
	}
	slices.SortFunc(free, func(a, b *run) int {
		return cmp.Or(cmp.Compare(b.row.Priority, a.row.Priority), cmp.Compare(a.row.Since(now), b.row.Since(now)), cmp.Compare(a.no, b.no))
	})
	for _, l := range lines {
		l.sort()
	}
	return func() *run {
		var best *run
		var of *line
		if len(free) > 0 {
			best = free[0]
		}
		for _, l := range lines {
			if r := l.next(); r != nil && (best == nil || before(r, best, now)) {
				best, of = r, l
			}
		}
		switch {
		case of != nil:
			of.enter(best, true)
		case best != nil:
			free = free[1:]
		case c.Max > 0:
			for name, l := range lines {
				l.report(name, c.Held)
			}
		}
		return best
	}
}

// before reports whether a comes before b in line (S34).
func before(a, b *run, now store.Time) bool {
	return cmp.Or(cmp.Compare(a.rank(now), b.rank(now)), cmp.Compare(a.no, b.no)) < 0
}

func (r *run) rank(now store.Time) store.Time { return store.Rank(r.row.Since(now), r.row.Priority) }

// named returns the runs that a Claim with IDs takes, in the order given, one at a call; nil
// after the last.
func (d *data) named(c *store.Claim, now store.Time) (next func() *run) {
	lines := make(map[string]*line)
	ids := c.IDs
	return func() *run {
		for len(ids) > 0 {
			r := d.runs[ids[0]]
			ids = ids[1:]
			if r == nil || !d.may(c, r, now) {
				continue
			}
			if r.row.NeedsPlace() {
				l := d.line(lines, r.row.Queue, c, now)
				if !l.gate.Fits(r.row.Partition, r.row.Status == store.Pending) {
					continue
				}
				l.enter(r, false)
			}
			return r
		}
		return nil
	}
}

// may reports whether c takes r, if its queue has a place for it.
func (d *data) may(c *store.Claim, r *run, now store.Time) bool {
	return c.MayTake(&r.row, now, !d.free(r, now)) && (c.Spare == nil || !c.Spares(&r.row, r.log.Last()))
}

// free reports whether r has no live owner (S20).
func (d *data) free(r *run, now store.Time) bool {
	return r.row.Owner == "" || !d.live(r.row.Owner, now)
}
