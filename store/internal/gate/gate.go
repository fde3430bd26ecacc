// Package gate decides which runs the limits of a queue let in. It is shared by the stores;
// each finds the runs in its own way.
package gate

import (
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// Gate is a queue during one claim. The zero Gate of a queue lets every run in.
type Gate struct {
	queue  store.Queue
	room   int // how many more the claim may give a place; negative: any number
	placed int
	parts  map[string]int // places held per partition
	begun  int            // claims of the current window that began a run
	next   store.Time     // when the rate lets another run begin, if begun is at its limit now
}

// Use is what is in use of a queue when a claim looks at it.
type Use struct {
	Placed int            // runs that hold a place; needed if the queue has a Max
	Parts  map[string]int // the same by partition; needed if it has a MaxPerPartition
	// Begun is when claims began runs, in any order; needed if it has a Rate. A store that
	// counts them itself leaves it nil and gives, of those after Window, their number
	// and the time of the one that has to leave the window before the next can begin: the
	// oldest, or, if there are more than Rate, the newest but Rate-1.
	Begun []store.Time
	Count int
	First store.Time
}

// New returns the gate of q for a claim with this room at now. It keeps u.Parts.
func New(q store.Queue, room int, now store.Time, u Use) *Gate {
	g := &Gate{queue: q, room: room, placed: u.Placed, parts: u.Parts, begun: u.Count, next: u.First}
	if q.Rate > 0 && u.Begun != nil {
		g.begun, g.next = count(q, now, u.Begun)
	}
	if g.begun == 0 {
		g.next = now
	}
	g.next += per(q)
	return g
}

func per(q store.Queue) store.Time { return store.Time(q.Per.Microseconds()) }

// count returns Use.Count and Use.First.
func count(q store.Queue, now store.Time, begun []store.Time) (n int, first store.Time) {
	var in []store.Time
	for _, at := range begun {
		if at = min(at, now); at > Window(q, now) {
			in = append(in, at)
		}
	}
	if len(in) == 0 {
		return 0, 0
	}
	slices.Sort(in)
	return len(in), in[max(0, len(in)-q.Rate)]
}

// Window returns the time after which claims count against the rate of q.
func Window(q store.Queue, now store.Time) store.Time {
	return now - per(q)
}

// Closed reports whether no run at all can be let in.
func (g *Gate) Closed() bool { return g.room == 0 || g.full() }

// full reports whether the queue itself lets no run in.
func (g *Gate) full() bool {
	return g.queue.Paused || g.queue.Max > 0 && g.placed >= g.queue.Max
}

// Full reports whether a partition is at its limit.
func (g *Gate) Full(partition string) bool {
	return g.queue.MaxPerPartition > 0 && g.parts[partition] >= g.queue.MaxPerPartition
}

// Fits reports whether a run of the partition can be let in; begins says that it would begin
// rather than resume.
func (g *Gate) Fits(partition string, begins bool) bool {
	return !g.Closed() && !g.Full(partition) && (!begins || g.Begins())
}

// Holds reports whether a limit of the queue keeps a run out that the claim has room for,
// and, if it is the rate alone, until when (Claim.Held).
func (g *Gate) Holds(partition string, begins bool) (until store.Time, holds bool) {
	switch {
	case g.room == 0:
		return 0, false
	case g.full() || g.Full(partition):
		return 0, true
	case begins && !g.Begins():
		return g.next, true
	}
	return 0, false
}

// Begins reports whether the rate lets another run begin.
func (g *Gate) Begins() bool { return g.queue.Rate == 0 || g.begun < g.queue.Rate }

// Enter counts a run that was let in.
func (g *Gate) Enter(partition string, begins bool) {
	g.placed++
	if g.room > 0 {
		g.room--
	}
	if g.parts == nil {
		g.parts = make(map[string]int)
	}
	g.parts[partition]++
	if begins {
		g.begun++
	}
}

// NextAt returns when the rate lets the next run begin; 0: now.
func (g *Gate) NextAt() store.Time {
	if g.Begins() {
		return 0
	}
	return g.next
}

// Begun returns how many claims of the current window began a run.
func (g *Gate) Begun() int64 { return int64(g.begun) }
