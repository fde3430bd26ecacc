//go:build cgo

package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// Claim implements store.Store. All runs are taken in one transaction, which no
// other write overlaps, so it is exact for any number of processes. Among runs
// of one priority, the run that has waited longest is the one whose WakeAt came
// first; without a WakeAt, the one that was created first.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	var taken []store.Run
	var created []claimRow
	err := s.write(ctx, "claim", func(t *tx) error {
		taken, created = nil, nil
		live, err := t.liveSet()
		if err != nil {
			return err
		}
		if !live[c.Executor] {
			return fmt.Errorf("sqlite: executor %q is not live, it must beat before it claims: %w", c.Executor, store.ErrNotFound)
		}
		if c.Max <= 0 {
			return nil
		}
		claim := claiming{tx: t, c: c, live: live, queues: make(map[string]*admission)}
		if len(c.IDs) > 0 {
			err = claim.named()
		} else {
			err = claim.due()
		}
		taken, created = claim.taken, claim.created
		if err != nil {
			return err
		}
		return claim.settle()
	})
	if err != nil {
		return nil, err
	}
	for i := range created {
		c.Created(created[i].ID, created[i].last)
	}
	return taken, nil
}

// claiming is one Claim in its transaction.
type claiming struct {
	*tx
	c      store.Claim
	live   map[string]bool
	queues map[string]*admission // those that this claim has looked at
	taken  []store.Run
	// created are those taken runs whose whole history is known.
	created []claimRow
}

// left is how many runs the claim may still take.
func (cl *claiming) left() int { return cl.c.Max - len(cl.taken) }

// settle stores what the claim has changed of queues.
func (cl *claiming) settle() error {
	for _, a := range cl.queues {
		if err := a.settle(); err != nil {
			return err
		}
	}
	return nil
}

// named takes the requested runs, in the order given.
func (cl *claiming) named() error {
	for _, id := range cl.c.IDs {
		if cl.left() <= 0 {
			return nil
		}
		row, ok, err := cl.row(cl.s.q.claimByID, id)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := cl.one(row); err != nil {
			return err
		}
	}
	return nil
}

// one takes a requested run, if it is free and its queue lets it in.
func (cl *claiming) one(row claimRow) error {
	r := row.Run()
	if !r.NeedsPlace() || !cl.c.MayTake(&r, cl.now, cl.live[r.Owner]) {
		_, err := cl.claim(row)
		return err
	}
	a, err := cl.admission(r.Queue)
	if err != nil {
		return err
	}
	if err := a.count(r.Partition); err != nil {
		return err
	}
	begins := r.Status == store.Pending
	if !a.gate.Fits(r.Partition, begins) {
		return nil
	}
	taken, err := cl.claim(row)
	if taken {
		a.admit(r.Partition, begins)
	}
	return err
}

// due takes what is ready, and what is in line as far as the queues let it in: each time the run
// with the lowest rank among those that are next.
func (cl *claiming) due() error {
	free, err := cl.free()
	if err != nil {
		return err
	}
	lines, err := cl.queued()
	if err != nil {
		return err
	}
	for cl.left() > 0 {
		best, err := free.peek()
		if err != nil {
			return err
		}
		var from *line
		for _, l := range lines {
			s, err := l.peek()
			if err != nil {
				return err
			}
			if s != nil && (best == nil || s.before(*best)) {
				best, from = &s.candidate, l
			}
		}
		if best == nil {
			return held(lines)
		}
		row, ok, err := cl.row(cl.s.q.claimByNumber, best.no)
		if err != nil {
			return err
		}
		taken := false
		if ok {
			if taken, err = cl.claim(row); err != nil {
				return err
			}
		}
		if from == nil {
			free.next(taken)
		} else if err := from.enter(taken); err != nil {
			return err
		}
	}
	return nil
}

func held(lines []*line) error {
	for _, l := range lines {
		if err := l.held(); err != nil {
			return err
		}
	}
	return nil
}

// queued returns the lines of the queues that the claim takes runs from.
func (cl *claiming) queued() (lines []*line, err error) {
	aisles := make(map[string][]aisle)
	var names []string
	err = cl.lines(cl.c.Serves, cl.live, func(a aisle) error {
		if _, takes := cl.c.Room(a.queue); takes {
			if aisles[a.queue] == nil {
				names = append(names, a.queue)
			}
			aisles[a.queue] = append(aisles[a.queue], a)
		}
		return nil
	})
	for _, name := range names {
		l, err := cl.line(aisles[name])
		if err != nil {
			return nil, err
		}
		lines = append(lines, l)
	}
	return lines, err
}

// free is the runs that are ready and need no place in a queue: priority by priority, and within
// one in order of waiting time across all lanes.
type free struct {
	cl    *claiming
	lanes []lane // of the priorities that were not read yet
	level []lane // those of the one that is read
	more  bool   // some of these have runs behind those that were read
	heads []candidate
	// passed are runs that were not taken, and so are still in their lanes (store.Claim.Spare).
	passed map[int64]bool
}

func (cl *claiming) free() (*free, error) {
	lanes, err := cl.lanes(cl.c.Serves, cl.live)
	lanes = slices.DeleteFunc(lanes, func(l lane) bool {
		_, takes := cl.c.Room(l.queue)
		return !takes
	})
	return &free{cl: cl, lanes: lanes, passed: map[int64]bool{}}, err
}

// peek returns the run that comes first, nil if there is none.
func (f *free) peek() (*candidate, error) {
	for len(f.heads) == 0 {
		if !f.more {
			if len(f.lanes) == 0 {
				return nil, nil
			}
			n := slices.IndexFunc(f.lanes, func(l lane) bool { return l.priority != f.lanes[0].priority })
			if n < 0 {
				n = len(f.lanes)
			}
			f.level, f.lanes = f.lanes[:n], f.lanes[n:]
		}
		if err := f.read(); err != nil {
			return nil, err
		}
	}
	return &f.heads[0], nil
}

// next leaves the run that peek has returned, and notes whether it was taken.
func (f *free) next(taken bool) {
	if !taken {
		f.passed[f.heads[0].no] = true
	}
	f.heads = f.heads[1:]
}

// read reads the first runs of the lanes of one priority, but for those that were passed over.
func (f *free) read() error {
	f.more = false
	most := f.cl.left() + 2*len(f.passed)
	for i := range f.level {
		l, n := &f.level[i], 0
		err := f.cl.query(f.cl.s.q.laneHeads, func(c *cells) error {
			no, wakeAt, since := c.int(), store.Time(c.int()), store.Time(c.int())
			if n++; f.passed[no] {
				return nil
			}
			if wakeAt != 0 && wakeAt <= f.cl.now && l.ready != readyInterrupted {
				since = wakeAt
			}
			f.heads = append(f.heads, candidate{no: no, rank: int64(store.Rank(since, int32(l.priority)))})
			return nil
		}, l.owner, l.queue, l.workflow, l.version, l.priority, l.ready, int64(f.cl.now), int64(most))
		if err != nil {
			return err
		}
		f.more = f.more || n == most
	}
	slices.SortFunc(f.heads, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.no, b.no)) })
	return nil
}

// claimRow is a run that a claim looks at.
type claimRow struct {
	sqlstore.RunRow
	last  store.Event // Seq is 0 if its log is empty
	whole bool        // last is its whole history, with data and payload
}

func (t *tx) row(q *query, key any) (row claimRow, ok bool, err error) {
	err = t.query(q, func(c *cells) error {
		row, ok = claimRow{RunRow: c.run(), last: c.event(), whole: c.bool()}, true
		return nil
	}, key)
	return row, ok, err
}

// claim takes one run, if it is free for this executor.
func (cl *claiming) claim(row claimRow) (taken bool, err error) {
	r := row.Run()
	if !cl.c.MayTake(&r, cl.now, cl.live[r.Owner]) {
		return false, nil
	}
	if row.last.Seq == 0 {
		return false, fmt.Errorf("run %q has no events: %w", r.ID, store.ErrCorrupt)
	}
	if err := checkSeq(r.ID, "event", row.last.Seq+1); err != nil {
		return false, err
	}
	if cl.c.Spares(&r, &row.last) {
		return false, nil
	}
	r.Last = &row.last
	event, sets := sqlstore.TakeClaim(&r, cl.c, max(cl.now, r.UpdatedAt))
	if err := cl.update(row.No, sets); err != nil {
		return false, err
	}
	if _, _, err := cl.exec(cl.s.q.appendChecked, eventArgs(cl.db, row.No, event.Epoch, event.Epoch, event)[:14]...); err != nil {
		return false, err
	}
	if row.Attributes > 0 {
		r.Attributes = make(map[string]string, row.Attributes)
		err := cl.query(cl.s.q.attributesOf, func(c *cells) error {
			c.next()
			name := c.text()
			r.Attributes[name] = c.text()
			return nil
		}, jsonNumbers([]int64{row.No}))
		if err != nil {
			return false, err
		}
	}
	if row.whole && cl.c.Created != nil {
		cl.created = append(cl.created, row)
	}
	cl.fresh[r.ID] = row.No
	cl.taken = append(cl.taken, r)
	return true, nil
}
