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
	now    store.Time
	placed int
	parts  map[string]int // places held per partition
	begun  []store.Time   // when runs of the current window began, oldest first
}

// Use is what is in use of a queue when a claim looks at it.
type Use struct {
	Placed int            // runs that hold a place; needed if the queue has a Max
	Parts  map[string]int // the same by partition; needed if it has a MaxPerPartition
	Begun  []store.Time   // of the window, in any order; needed if it has a Rate
}

// New returns the gate of q for a claim with this room at now. It keeps u.Parts.
func New(q store.Queue, room int, now store.Time, u Use) *Gate {
	g := &Gate{queue: q, room: room, now: now, placed: u.Placed, parts: u.Parts}
	if q.Rate > 0 {
		for _, at := range u.Begun {
			if at = min(at, now); at > Window(q, now) {
				g.begun = append(g.begun, at)
			}
		}
		slices.Sort(g.begun)
	}
	return g
}

// Window returns the time after which claims count against the rate of q.
func Window(q store.Queue, now store.Time) store.Time {
	return now - store.Time(q.Per.Microseconds())
}

// Closed reports whether no run at all can be let in.
func (g *Gate) Closed() bool {
	return g.room == 0 || g.queue.Paused || g.queue.Max > 0 && g.placed >= g.queue.Max
}

// Fits reports whether a run of the partition can be let in; begins says that it would begin
// rather than resume.
func (g *Gate) Fits(partition string, begins bool) bool {
	switch {
	case g.Closed():
		return false
	case g.queue.MaxPerPartition > 0 && g.parts[partition] >= g.queue.MaxPerPartition:
		return false
	}
	return !begins || g.Begins()
}

// Begins reports whether the rate lets another run begin.
func (g *Gate) Begins() bool { return g.queue.Rate == 0 || len(g.begun) < g.queue.Rate }

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
	if begins && g.queue.Rate > 0 {
		g.begun = append(g.begun, g.now)
	}
}

// NextAt returns when the rate lets the next run begin; 0: now.
func (g *Gate) NextAt() store.Time {
	if g.Begins() {
		return 0
	}
	return g.begun[len(g.begun)-g.queue.Rate] + store.Time(g.queue.Per.Microseconds())
}
