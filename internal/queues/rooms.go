package queues

import (
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// Rooms counts the places that the runs of this executor hold in queues that limit them for each
// process. A run holds its place here as long as this executor has the run: while it waits and
// while it is unloaded, too. So a limit cannot be exceeded by runs that wake up.
//
// For example, with a limit of 2, an executor that has one run of the queue under way and
// another unloaded claims no third one; once one of the two has ended, or another executor
// has taken it, there is room for one.
type Rooms struct {
	limits map[string]int  // by queue
	only   map[string]bool // the queues that are served; nil: every one
	names  []string        // of limits and only, sorted
	freed  func()          // called when a queue that was full has room again

	mu   sync.Mutex
	held map[place]string // the queue of each run that holds a place here
	n    map[string]int   // how many of them each queue has, and how many are set aside
	owed map[string]int   // see Owe
}

// A place is held by a run under one epoch: an execution that has lost the run must not give up the
// place of the one that has it since.
type place struct {
	id    string
	epoch int64
}

// NewRooms returns Rooms with these limits, by queue, for an executor that serves these queues;
// none: every one.
func NewRooms(limits map[string]int, serves []string, freed func()) *Rooms {
	r := &Rooms{limits: limits, freed: freed, held: map[place]string{}, n: map[string]int{}}
	for name := range limits {
		r.names = append(r.names, name)
	}
	if len(serves) > 0 {
		r.only = map[string]bool{}
		for _, name := range serves {
			r.only[name] = true
		}
		r.names = append(r.names, serves...)
	}
	slices.Sort(r.names)
	r.names = slices.Compact(r.names)
	return r
}

// Serves reports whether this executor takes runs from a queue. Every executor takes those that
// are on none.
func (r *Rooms) Serves(queue string) bool { return queue == "" || r.only == nil || r.only[queue] }

// Picky reports whether this executor takes runs from some queues alone.
func (r *Rooms) Picky() bool { return r.only != nil }

// Limits reports whether any queue is limited in this process.
func (r *Rooms) Limits() bool { return len(r.limits) > 0 }

// Owe keeps places for runs that this executor is to take by name, and for which Admit had none: so
// many of each queue. Ask leaves them, so that runs in line do not come first for ever. owed reports
// whether places were kept before.
func (r *Rooms) Owe(runs map[string]int) (owed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owed = len(r.owed) > 0
	r.owed = runs
	return owed
}

// Ask sets aside all the room that there is, and makes c ask for no more. The caller calls
// giveBack when the runs that it got have entered. kept reports whether a place is free and was left
// for those to whom it is owed.
func (r *Rooms) Ask(c *store.Claim) (giveBack func(), kept bool) {
	c.AnyQueue = r.only == nil
	if len(r.names) == 0 {
		return func() {}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var aside []store.QueueRoom
	for _, name := range r.names {
		room := -1
		if limit, limited := r.limits[name]; limited {
			room = max(limit-r.n[name], 0)
			owed := min(r.owed[name], room)
			room -= owed
			kept = kept || owed > 0
			r.n[name] += room
			aside = append(aside, store.QueueRoom{Queue: name, Max: room})
		}
		if r.Serves(name) {
			c.Queues = append(c.Queues, store.QueueRoom{Queue: name, Max: room})
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, a := range aside {
			r.n[a.Queue] -= a.Max
		}
	}, kept
}

// Admit sets aside a place for a run that is about to be claimed by name, and reports whether there
// is one. The caller calls giveBack once the run has entered, or was not claimed.
func (r *Rooms) Admit(row *store.Run) (giveBack func(), ok bool) {
	limit, limited := r.limits[row.Queue]
	if !limited {
		return func() {}, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n[row.Queue] >= limit {
		return nil, false
	}
	r.n[row.Queue]++
	return func() { r.leave(row.Queue, 1) }, true
}

// Enter notes that this executor has a run.
func (r *Rooms) Enter(row *store.Run) {
	if _, limited := r.limits[row.Queue]; !limited {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := place{row.ID, row.Epoch}
	if _, here := r.held[p]; !here {
		r.held[p] = row.Queue
		r.n[row.Queue]++
	}
}

// Leave notes that this executor no longer has a run that it had under this epoch.
func (r *Rooms) Leave(id string, epoch int64) {
	if len(r.limits) == 0 {
		return
	}
	r.mu.Lock()
	p := place{id, epoch}
	queue, here := r.held[p]
	delete(r.held, p)
	r.mu.Unlock()
	if here {
		r.leave(queue, 1)
	}
}

func (r *Rooms) leave(queue string, n int) {
	r.mu.Lock()
	full := r.n[queue] >= r.limits[queue]
	r.n[queue] -= n
	r.mu.Unlock()
	if full {
		r.freed()
	}
}
