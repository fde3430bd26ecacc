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
	candidates := d.named(&c, now)
	if len(c.IDs) == 0 {
		candidates = d.due(&c, now)
	}
	room := d.room(c.Queues)
	var taken []store.Run
	for _, r := range candidates {
		if len(taken) >= c.Max {
			break
		}
		if !d.free(r, now) { // an id given twice
			continue
		}
		if len(c.IDs) == 0 && !room.take(r) {
			continue
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
	row := c.Take(&r.row, r.log.last(), now)
	r.append(row.Last, row.Epoch)
	r.row, r.row.Last = row, nil
}

// due returns what a Claim without IDs may take, in order.
func (d *data) due(c *store.Claim, now store.Time) []*run {
	var due []*run
	for r := range d.unfinished {
		if c.MayTake(&r.row, now, !d.free(r, now)) {
			due = append(due, r)
		}
	}
	since := func(r *run) store.Time {
		if r.row.WakeAt != 0 && r.row.WakeAt <= now {
			return r.row.WakeAt
		}
		return r.row.CreatedAt
	}
	slices.SortFunc(due, func(a, b *run) int {
		return cmp.Or(cmp.Compare(b.row.Priority, a.row.Priority), cmp.Compare(since(a), since(b)), cmp.Compare(a.no, b.no))
	})
	return due
}

// named returns what a Claim with IDs may take, in the order given.
func (d *data) named(c *store.Claim, now store.Time) []*run {
	var runs []*run
	for _, id := range c.IDs {
		if r := d.runs[id]; r != nil && c.MayTake(&r.row, now, !d.free(r, now)) {
			runs = append(runs, r)
		}
	}
	return runs
}

// free reports whether r has no live owner (S20).
func (d *data) free(r *run, now store.Time) bool {
	return r.row.Owner == "" || !d.live(r.row.Owner, now)
}

// room holds how many runs of each limited queue may still be started.
type room map[string]int

func (d *data) room(limits []store.QueueLimit) room {
	m := make(room)
	for _, q := range limits {
		if q.Max > 0 {
			m[q.Queue] = q.Max
		}
	}
	if len(m) == 0 {
		return m
	}
	for r := range d.unfinished {
		if _, limited := m[r.row.Queue]; limited && r.row.Executing() {
			m[r.row.Queue]--
		}
	}
	return m
}

// take reports whether r may be claimed, and if so counts it. A waiting run
// stays waiting when it is claimed, so it needs no room.
func (m room) take(r *run) bool {
	left, limited := m[r.row.Queue]
	if !limited || r.row.Status == store.Waiting {
		return true
	}
	if left <= 0 {
		return false
	}
	m[r.row.Queue] = left - 1
	return true
}
