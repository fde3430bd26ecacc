package claims

import (
	"sync"
	"sync/atomic"
)

// places are the places of MaxRuns.
type places struct {
	max   int
	taken atomic.Int64 // by running runs that count

	// reserved is how many are set aside for claims in progress: the loop and a recovery
	// may claim at the same time, and neither waits while the other asks the store.
	mu       sync.Mutex
	reserved int
}

// reserve sets aside up to n of the free places, and returns how many. The caller gives
// them back once the runs that were claimed for them have occupied theirs.
func (p *places) reserve(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = max(min(n, p.max-int(p.taken.Load())-p.reserved), 0)
	p.reserved += n
	return n
}

// giveBack ends a reservation.
func (p *places) giveBack(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved -= n
}

func (p *places) occupy() { p.taken.Add(1) }

// vacate frees a place, and reports whether all were taken before.
func (p *places) vacate() (full bool) { return p.taken.Add(-1) == int64(p.max)-1 }

// queue is a queue of run ids.
type queue struct {
	mu  sync.Mutex
	ids []string
}

func (q *queue) add(ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = append(q.ids, ids...)
}

// addMissing adds those of the ids that are not in the queue.
func (q *queue) addMissing(ids []string) {
	if len(ids) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	there := q.set()
	for _, id := range ids {
		if !there[id] {
			q.ids = append(q.ids, id)
		}
	}
}

// all returns the ids as a set.
func (q *queue) all() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.set()
}

// set is all with the mutex held.
func (q *queue) set() map[string]bool {
	all := make(map[string]bool, len(q.ids))
	for _, id := range q.ids {
		all[id] = true
	}
	return all
}

func (q *queue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ids) > 0
}

func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = nil
}

// first returns up to n ids, which stay in the queue until they are dropped.
func (q *queue) first(n int) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = max(min(n, len(q.ids)), 0)
	return q.ids[:n:n]
}

func (q *queue) drop(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = q.ids[min(n, len(q.ids)):]
}
