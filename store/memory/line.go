package memory

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
)

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
	q.settle(now)
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

// enter gives r a place, and takes it out of the line. turn says that it was the turn of its
// partition.
func (l *line) enter(r *run, turn bool) {
	name, begins := r.row.Partition, r.row.Status == store.Pending
	l.parts[name] = slices.DeleteFunc(l.parts[name], func(o *run) bool { return o == r })
	l.gate.Enter(name, begins)
	if turn {
		l.queue.turn = name
	}
	if begins && l.queue.Rate > 0 {
		l.queue.begun = append(l.queue.begun, l.now)
	}
}

// report tells a claim that took what it could that runs were left.
func (l *line) report(name string, held func(string, store.Time)) {
	if held == nil {
		return
	}
	until, any := store.Time(0), false
	for part, runs := range l.parts {
		for _, r := range runs {
			at, holds := l.gate.Holds(part, r.row.Status == store.Pending)
			until, any = max(until, at), any || holds
		}
	}
	if any {
		held(name, until)
	}
}
