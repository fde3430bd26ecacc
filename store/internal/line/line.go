// Package line says in which order the runs in line for places in queues get them (S34),
// from as much of each line as a store has read.
package line

import (
	"cmp"
	"maps"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/gate"
)

// Run is a run that a claim may take.
type Run struct {
	No        int64
	Queue     string
	Partition string
	Status    store.Status
	Rank      store.Time // store.Rank
	Place     bool       // it needs a place in its queue
}

// Begins reports whether a claim of r would begin it, rather than resume it.
func (r *Run) Begins() bool { return r.Status == store.Pending }

// Compare compares two runs by their place in line.
func Compare(a, b Run) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.No, b.No)) }

func before(a, b *Run) bool { return Compare(*a, *b) < 0 }

// kind tells runs that would begin, 0, from those that would resume, 1: a rate is for
// the first alone.
func (r *Run) kind() int {
	if r.Begins() {
		return 0
	}
	return 1
}

// Line is the runs in line for places in a queue.
type Line struct {
	Queue store.Queue
	Room  int // how many the claim may give a place; negative: any number
	Now   store.Time
	Use   gate.Use
	View  *View // what was read of it; nil: nothing, because no run can be let in
	left  []kept
}

// kept is runs of a partition that cannot be let in.
type kept struct {
	partition string
	begins    bool
}

// Leave says that runs in line, that would begin or resume, were not read, because
// they cannot be let in.
func (l *Line) Leave(partition string, begins bool) {
	l.left = append(l.left, kept{partition, begins})
}

// Forget forgets what was read of the line.
func (l *Line) Forget() { l.View, l.left = nil, nil }

// Gate returns the gate of the queue, before the claim lets anything in.
func (l *Line) Gate() *gate.Gate {
	u := l.Use
	u.Parts = maps.Clone(u.Parts)
	return gate.New(l.Queue, l.Room, l.Now, u)
}

// Full reports whether a partition has no place left.
func (l *Line) Full(partition string) bool {
	return l.Queue.MaxPerPartition > 0 && l.Use.Parts[partition] >= l.Queue.MaxPerPartition
}
