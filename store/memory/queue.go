package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
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
		return fmt.Errorf("store: queue %q: revision %d was expected, it is at %d: %w", q.Name, q.Revision, stored.Revision, store.ErrFenced)
	}
	s.counts.Commits++
	q.Revision++
	q.UpdatedAt = d.now()
	stored.Queue = q
	d.notify()
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
	if q.Rate == 0 {
		q.begun = nil
	}
	for i, at := range q.begun {
		q.begun[i] = min(at, now)
	}
	q.begun = slices.DeleteFunc(q.begun, func(at store.Time) bool { return at <= gate.Window(q.Queue, now) })
	u.Begun = q.begun
	return u
}

// line is the runs that are in line for a place in a queue, during one claim.
type line struct {
	queue *queue
	gate  *gate.Gate
	now   store.Time
	parts map[string][]*run // by partition, in order
	names []string          // of the partitions, sorted
}

// line returns the line of a queue, and adds it to lines.
func (d *data) line(lines map[string]*line, name string, c *store.Claim, now store.Time) *line {
	l := lines[name]
	if l != nil {
		return l
	}
	room, _ := c.Room(name)
	q := d.queue(name)
	l = &line{queue: q, gate: gate.New(q.Queue, room, now, d.use(q, now)), now: now, parts: make(map[string][]*run)}
	lines[name] = l
	return l
}

func (l *line) add(r *run) { l.parts[r.row.Partition] = append(l.parts[r.row.Partition], r) }

func (l *line) sort() {
	l.names = slices.Sorted(maps.Keys(l.parts))
	for _, runs := range l.parts {
		slices.SortFunc(runs, func(a, b *run) int {
			return cmp.Or(cmp.Compare(a.rank(l.now), b.rank(l.now)), cmp.Compare(a.no, b.no))
		})
	}
}

// next returns the run that gets the next place; nil: none can be let in.
func (l *line) next() *run {
	if l.gate.Closed() {
		return nil
	}
	first := sort.SearchStrings(l.names, l.queue.turn)
	if first < len(l.names) && l.names[first] == l.queue.turn {
		first++
	}
	for i := range l.names {
		name := l.names[(first+i)%len(l.names)]
		for _, r := range l.parts[name] {
			if l.gate.Fits(name, r.row.Status == store.Pending) {
				return r
			}
		}
	}
	return nil
}

// enter takes r out of the line and gives it a place.
func (l *line) enter(r *run) {
	name, begins := r.row.Partition, r.row.Status == store.Pending
	l.parts[name] = slices.DeleteFunc(l.parts[name], func(o *run) bool { return o == r })
	l.gate.Enter(name, begins)
	l.queue.turn = name
	if begins && l.queue.Rate > 0 {
		l.queue.begun = append(l.queue.begun, l.now)
	}
}

// report tells a claim that took what it could that runs were left.
func (l *line) report(name string, held func(string, store.Time)) {
	if held == nil {
		return
	}
	for _, runs := range l.parts {
		if len(runs) > 0 {
			held(name, l.gate.NextAt())
			return
		}
	}
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
		for _, p := range parts[name] {
			st.Partitions = append(st.Partitions, *p)
		}
		slices.SortFunc(st.Partitions, func(a, b store.PartitionState) int {
			return cmp.Or(cmp.Compare(b.InLine, a.InLine), cmp.Compare(b.Placed, a.Placed), cmp.Compare(a.Name, b.Name))
		})
		st.Partitions = st.Partitions[:min(len(st.Partitions), store.MaxPartitionsShown)]
		if st.Rate > 0 {
			q := d.queue(name)
			g := gate.New(q.Queue, -1, now, d.use(q, now))
			st.Begun, st.NextAt = int64(len(q.begun)), g.NextAt()
		}
		list = append(list, *st)
	}
	slices.SortFunc(list, func(a, b store.QueueState) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
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
	case inLine(r, now):
		st.InLine++
		p.InLine++
		if since := r.row.Since(now); st.Oldest == 0 || since < st.Oldest {
			st.Oldest = since
		}
	case r.row.Status == store.Pending && r.row.WakeAt > now && !r.row.Paused:
		st.Delayed++
	}
}

// inLine reports whether r is due and needs a place.
func inLine(r *run, now store.Time) bool { return r.row.NeedsPlace() && r.row.Due(now) }

// Ahead implements store.Queues.
func (s *Store) Ahead(ctx context.Context, runID string) (n int64, waits bool, err error) {
	if err := s.read(ctx); err != nil {
		return 0, false, err
	}
	d := s.data
	defer d.mu.Unlock()
	r := d.runs[runID]
	if r == nil {
		return 0, false, fmt.Errorf("store: run %q: %w", runID, store.ErrNotFound)
	}
	now := d.now()
	if !inLine(r, now) {
		return 0, false, nil
	}
	for o := range d.unfinished {
		if o != r && o.row.Queue == r.row.Queue && o.row.Partition == r.row.Partition && inLine(o, now) && before(o, r, now) {
			n++
		}
	}
	return n, true, nil
}
