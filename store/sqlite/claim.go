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
	err := s.write(ctx, "claim", func(t *tx) error {
		taken = nil
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
		claim := claiming{tx: t, c: c, live: live, room: make(map[string]int64)}
		if len(c.IDs) > 0 {
			err = claim.named()
		} else {
			err = claim.due()
		}
		taken = claim.taken
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// claiming is one Claim in its transaction.
type claiming struct {
	*tx
	c     store.Claim
	live  map[string]bool
	room  map[string]int64 // how many runs a limited queue may still start
	taken []store.Run
}

func (cl *claiming) full() bool { return len(cl.taken) >= cl.c.Max }

// named takes the requested runs, in the order given.
func (cl *claiming) named() error {
	for _, id := range cl.c.IDs {
		if cl.full() {
			return nil
		}
		row, ok, err := cl.row(cl.s.q.runByID, id)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := cl.claim(row); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a run at the head of a lane.
type candidate struct {
	no    int64
	since int64
	lane  *lane
}

// due takes what is ready: priority by priority, and within one priority in
// order of waiting time across all lanes.
func (cl *claiming) due() error {
	lanes, err := cl.lanes(cl.c.Serves, cl.live)
	if err != nil {
		return err
	}
	lanes = slices.DeleteFunc(lanes, func(l lane) bool {
		_, takes := cl.c.Room(l.queue)
		return !takes
	})
	if err := cl.limits(lanes); err != nil {
		return err
	}
	for len(lanes) > 0 && !cl.full() {
		n := slices.IndexFunc(lanes, func(l lane) bool { return l.priority != lanes[0].priority })
		if n < 0 {
			n = len(lanes)
		}
		if err := cl.level(lanes[:n]); err != nil {
			return err
		}
		lanes = lanes[n:]
	}
	return nil
}

// limits finds out how much room the limited queues have.
func (cl *claiming) limits(lanes []lane) error {
	for _, q := range cl.c.Queues {
		if q.Max <= 0 || !slices.ContainsFunc(lanes, func(l lane) bool { return l.queue == q.Queue }) {
			continue
		}
		err := cl.query(cl.s.q.queueExecuting, func(c *cells) error {
			cl.room[q.Queue] = int64(q.Max) - c.int()
			return nil
		}, q.Queue)
		if err != nil {
			return err
		}
	}
	return nil
}

// level takes runs from the lanes of one priority.
func (cl *claiming) level(lanes []lane) error {
	var heads []candidate
	for i := range lanes {
		l := &lanes[i]
		most := int64(cl.c.Max - len(cl.taken))
		if room, limited := cl.room[l.queue]; limited && !l.waits() {
			most = min(most, room)
		}
		if most <= 0 {
			continue
		}
		err := cl.query(cl.s.q.laneHeads, func(c *cells) error {
			no, wakeAt, createdAt := c.int(), c.int(), c.int()
			if wakeAt == 0 || wakeAt > int64(cl.now) {
				wakeAt = createdAt
			}
			heads = append(heads, candidate{no: no, since: wakeAt, lane: l})
			return nil
		}, l.owner, l.queue, l.workflow, l.version, l.priority, l.ready, int64(cl.now), most)
		if err != nil {
			return err
		}
	}
	slices.SortFunc(heads, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.no, b.no)) })
	for _, h := range heads {
		if cl.full() {
			return nil
		}
		room, limited := cl.room[h.lane.queue]
		if limited = limited && !h.lane.waits(); limited && room <= 0 {
			continue
		}
		row, ok, err := cl.row(cl.s.q.runByNumber, h.no)
		if err != nil || !ok {
			return err
		}
		if limited {
			cl.room[h.lane.queue] = room - 1
		}
		if err := cl.claim(row); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) row(q *query, key any) (row sqlstore.RunRow, ok bool, err error) {
	err = t.query(q, func(c *cells) error {
		row, ok = c.run(), true
		return nil
	}, key)
	return row, ok, err
}

// claim takes one run, if it is free for this executor.
func (cl *claiming) claim(row sqlstore.RunRow) (err error) {
	r := row.Run()
	if !cl.c.MayTake(&r, cl.now, cl.live[r.Owner]) {
		return nil
	}
	if r.Last, err = cl.last(row.No); err != nil {
		return err
	}
	if r.Last == nil {
		return fmt.Errorf("run %q has no events: %w", r.ID, store.ErrCorrupt)
	}
	if err := checkSeq(r.ID, "event", r.Last.Seq+1); err != nil {
		return err
	}
	event, sets := sqlstore.TakeClaim(&r, cl.c, max(cl.now, r.UpdatedAt))
	if err := cl.update(row.No, sets); err != nil {
		return err
	}
	if _, _, err := cl.exec(cl.s.q.appendChecked, eventArgs(row.No, event.Epoch, event)...); err != nil {
		return err
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
			return err
		}
	}
	cl.fresh[r.ID] = row.No
	cl.taken = append(cl.taken, r)
	return nil
}
