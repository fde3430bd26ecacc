//go:build cgo

package sqlite

// numbers caches the number of each run id. An entry may be out of date when
// another handle deleted the run and perhaps created it again under a new number;
// that does no harm. Numbers are never reused, so the log under an old number is
// empty, the fence of an append finds nothing, and the number is looked up again.
// This only holds if nothing but numbers of committed runs is cached.
//
// It keeps between half and all of numbersMax entries: when the younger half is
// full, the older half is dropped.
type numbers struct{ young, old map[string]int64 }

const numbersMax = 32768

func (n *numbers) get(id string) (int64, bool) {
	if no, ok := n.young[id]; ok {
		return no, true
	}
	no, ok := n.old[id]
	if ok {
		n.put(id, no)
	}
	return no, ok
}

func (n *numbers) put(id string, no int64) {
	if n.young == nil || len(n.young) >= numbersMax/2 {
		n.old, n.young = n.young, make(map[string]int64)
	}
	n.young[id] = no
}

func (n *numbers) forget(id string) {
	delete(n.young, id)
	delete(n.old, id)
}
