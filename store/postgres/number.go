package postgres

import "sync"

// numbers caches the run numbers of run ids. A number that is out of date,
// because the run was deleted and created again, does no harm: the fence of an
// append never finds an event of a deleted run.
type numbers struct {
	mu       sync.Mutex
	new, old map[string]int64
}

// maxNumbers is the size of each of the two halves.
const maxNumbers = 1 << 15

func (n *numbers) get(id string) (int64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if no, ok := n.new[id]; ok {
		return no, true
	}
	no, ok := n.old[id]
	if ok {
		n.add(id, no)
	}
	return no, ok
}

func (n *numbers) put(id string, no int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.add(id, no)
}

func (n *numbers) forget(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.new, id)
	delete(n.old, id)
}

// add drops the older half when the younger one is full.
func (n *numbers) add(id string, no int64) {
	if n.new == nil || len(n.new) >= maxNumbers {
		n.new, n.old = make(map[string]int64), n.new
	}
	n.new[id] = no
}
