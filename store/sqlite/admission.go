//go:build cgo

package sqlite

import (
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
)

// admission is a queue during one claim: what it lets in, and what of it is in use.
type admission struct {
	store.Queue
	cl     *claiming
	gate   *gate.Gate
	placed map[string]int // runs that hold a place, by partition; shared with the gate
	turn   string         // the partition that had the last turn
	moved  bool           // the turn has gone on
	begun  int            // runs that this claim has begun
}

// admission returns a queue, read once in a claim.
func (cl *claiming) admission(name string) (*admission, error) {
	if a := cl.queues[name]; a != nil {
		return a, nil
	}
	a := &admission{Queue: store.Queue{Name: name}, cl: cl, placed: make(map[string]int)}
	err := cl.query(cl.s.q.queue, func(c *cells) error {
		a.Revision, a.Max, a.MaxPerPartition, a.Rate = c.int(), int(c.int()), int(c.int()), int(c.int())
		a.Per, a.Paused, a.turn = time.Duration(c.int())*time.Microsecond, c.bool(), c.text()
		return nil
	}, name)
	if err != nil {
		return nil, err
	}
	use := gate.Use{Parts: a.placed}
	if a.Max > 0 {
		if err := cl.query(cl.s.q.queuePlaced, func(c *cells) error { use.Placed = int(c.int()); return nil }, name, int64(a.Max)); err != nil {
			return nil, err
		}
	}
	if a.Rate > 0 {
		if use.Count, use.First, err = cl.begun(&a.Queue); err != nil {
			return nil, err
		}
	}
	room, _ := cl.c.Room(name)
	a.gate = gate.New(a.Queue, room, cl.now, use)
	cl.queues[name] = a
	return a, nil
}

// begun returns how many runs of q have begun within its window, and gate.Use.First. What has
// begun later than now, because the clock has gone back, counts as of now.
func (t *tx) begun(q *store.Queue) (n int, first store.Time, err error) {
	last := store.Time(0)
	look := func() error {
		return t.query(t.s.q.queueBegun, func(c *cells) error {
			n, first, last = int(c.int()), store.Time(c.int()), store.Time(c.int())
			return nil
		}, q.Name, int64(gate.Window(*q, t.now)), int64(q.Rate))
	}
	if err = look(); err != nil || last <= t.now {
		return n, first, err
	}
	if _, _, err = t.exec(t.s.q.queueBegunLater, q.Name, int64(t.now)); err != nil {
		return 0, 0, err
	}
	if _, _, err = t.exec(t.s.q.queueUnbegin, q.Name, int64(t.now)); err != nil {
		return 0, 0, err
	}
	return n, first, look()
}

// note takes down how many runs of a partition hold a place, unless it is known.
func (a *admission) note(partition string, placed int) {
	if _, known := a.placed[partition]; !known && a.MaxPerPartition > 0 {
		a.placed[partition] = placed
	}
}

// count finds out how many runs of a partition hold a place, unless it is known.
func (a *admission) count(partition string) error {
	if _, known := a.placed[partition]; known || a.MaxPerPartition == 0 {
		return nil
	}
	return a.cl.query(a.cl.s.q.queuePlacedIn, func(c *cells) error { a.placed[partition] = int(c.int()); return nil },
		a.Name, partition, int64(a.MaxPerPartition))
}

// admit counts a run that gets a place.
func (a *admission) admit(partition string, begins bool) {
	a.gate.Enter(partition, begins)
	if begins {
		a.begun++
	}
}

// settle stores what the claim has changed of the queue.
func (a *admission) settle() error {
	t := a.cl.tx
	if a.moved {
		if _, _, err := t.exec(t.s.q.queueTurn, a.Name, a.turn); err != nil {
			return err
		}
	}
	if a.begun == 0 || a.Rate == 0 {
		return nil
	}
	if _, _, err := t.exec(t.s.q.queueBegin, a.Name, int64(t.now), int64(a.begun)); err != nil {
		return err
	}
	_, _, err := t.exec(t.s.q.queueForget, a.Name, int64(gate.Window(a.Queue, t.now)))
	return err
}
