package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// queue is what is kept of a queue that was put or that claims have taken runs from.
type queue struct {
	store.Queue              // Revision is 0 if it was never put
	turn        string       // the partition that had the last turn
	begun       []store.Time // claims that began a run, within the last Per
}

var _ store.Queues = (*Store)(nil)

// PutQueue implements store.Queues.
func (s *Store) PutQueue(ctx context.Context, q store.Queue) error {
	if err := q.Check(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	d := s.data
	defer d.mu.Unlock()
	s.counts.Statements++
	stored := d.queue(q.Name)
	if stored.Revision != q.Revision {
		return fmt.Errorf("store: queue %q: revision %d was expected, it is at %d: %w", q.Name, q.Revision, stored.Revision, store.ErrRevision)
	}
	s.counts.Commits++
	q.Revision++
	q.UpdatedAt = d.now()
	q.Reason, q.Per = store.CleanText(q.Reason), q.Per.Truncate(time.Microsecond)
	stored.Queue = q
	if q.Rate == 0 {
		stored.begun = nil
	}
	d.notify(notice.Everything())
	return nil
}

// queue returns a queue, and begins to keep it.
func (d *data) queue(name string) *queue {
	q := d.queues[name]
	if q == nil {
		q = &queue{Queue: store.Queue{Name: name}}
		d.queues[name] = q
	}
	return q
}

// use says what is in use of q.
func (d *data) use(q *queue, now store.Time) gate.Use {
	u := gate.Use{Parts: make(map[string]int)}
	for r := range d.unfinished {
		if r.row.Queue == q.Name && r.row.Placed() {
			u.Placed++
			u.Parts[r.row.Partition]++
		}
	}
	u.Begun = q.begun
	return u
}

// settle takes what is remembered for later as of now, and forgets what no longer counts.
func (q *queue) settle(now store.Time) {
	for i, at := range q.begun {
		q.begun[i] = min(at, now)
	}
	q.begun = slices.DeleteFunc(q.begun, func(at store.Time) bool { return at <= gate.Window(q.Queue, now) })
}

// Queue implements store.Queues.
func (s *Store) Queue(ctx context.Context, name string) (store.Queue, error) {
	if err := s.read(ctx); err != nil {
		return store.Queue{}, err
	}
	defer s.data.mu.Unlock()
	if q := s.data.queues[name]; q != nil {
		return q.Queue, nil
	}
	return store.Queue{Name: name}, nil
}

// Queues implements store.Queues.
func (s *Store) Queues(ctx context.Context, names ...string) ([]store.QueueState, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	d := s.data
	defer d.mu.Unlock()
	now := d.now()
	states := make(map[string]*store.QueueState)
	for name, q := range d.queues {
		if q.Revision > 0 {
			states[name] = &store.QueueState{Queue: q.Queue}
		}
	}
	parts := make(map[string]map[string]*store.PartitionState)
	for r := range d.unfinished {
		if r.row.Queue != "" {
			d.count(states, parts, r, now)
		}
	}
	var list []store.QueueState
	for name, st := range states {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		st.Partitions = longest(parts[name])
		if st.Rate > 0 {
			q := d.queue(name)
			g := gate.New(q.Queue, -1, now, d.use(q, now))
			st.Begun, st.NextAt = g.Begun(), g.NextAt()
		}
		list = append(list, *st)
	}
	slices.SortFunc(list, func(a, b store.QueueState) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// longest returns the partitions to show.
func longest(parts map[string]*store.PartitionState) (list []store.PartitionState) {
	for _, p := range parts {
		if p.InLine > 0 || p.Placed > 0 {
			list = append(list, *p)
		}
	}
	slices.SortFunc(list, func(a, b store.PartitionState) int {
		return cmp.Or(cmp.Compare(b.InLine, a.InLine), cmp.Compare(b.Placed, a.Placed), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), store.MaxPartitionsShown)]
}

// count adds a run to the state of its queue.
func (d *data) count(states map[string]*store.QueueState, parts map[string]map[string]*store.PartitionState, r *run, now store.Time) {
	name := r.row.Queue
	st := states[name]
	if st == nil {
		st = &store.QueueState{Queue: store.Queue{Name: name}}
		states[name] = st
	}
	if parts[name] == nil {
		parts[name] = make(map[string]*store.PartitionState)
	}
	p := parts[name][r.row.Partition]
	if p == nil {
		p = &store.PartitionState{Name: r.row.Partition}
		parts[name][r.row.Partition] = p
	}
	switch {
	case r.row.Placed():
		st.Placed++
		p.Placed++
	case waitsInLine(r, now):
		st.InLine++
		p.InLine++
		if since := r.row.Since(now); st.Oldest == 0 || since < st.Oldest {
			st.Oldest = since
		}
	case r.row.NeedsPlace() && r.row.Status == store.Pending && r.row.WakeAt > now && !r.row.Paused:
		st.Delayed++
	}
}

// waitsInLine reports whether r is due and needs a place.
func waitsInLine(r *run, now store.Time) bool { return r.row.NeedsPlace() && r.row.Due(now) }

// Ahead implements store.Queues.
func (s *Store) Ahead(ctx context.Context, runID string) (n int64, inLine bool, err error) {
	if err := s.read(ctx); err != nil {
		return 0, false, err
	}
	d := s.data
	defer d.mu.Unlock()
	r := d.runs[runID]
	if r == nil {
		return 0, false, &store.NotFoundError{RunID: runID}
	}
	now := d.now()
	if !waitsInLine(r, now) {
		return 0, false, nil
	}
	for o := range d.unfinished {
		if o != r && o.row.Queue == r.row.Queue && o.row.Partition == r.row.Partition && waitsInLine(o, now) && before(o, r, now) {
			n++
		}
	}
	return n, true, nil
}
