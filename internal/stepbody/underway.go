package stepbody

import (
	"slices"
	"sync"
	"sync/atomic"
)

// UnderWay has the keys of the running bodies of a run, in the order in which they began. The zero
// value has none.
type UnderWay struct {
	// alone is a body that began while no other was running: without branches, that is
	// each of them, which needs no lock then.
	alone  atomic.Pointer[string]
	others atomic.Int32 // length of keys

	mu   sync.Mutex
	keys []*string // of bodies that began after alone
}

// Begin adds the key of a body that begins. It is known by its address until End.
func (u *UnderWay) Begin(key *string) {
	if u.others.Load() == 0 && u.alone.CompareAndSwap(nil, key) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = append(u.keys, key)
	u.others.Add(1)
}

// End takes it out.
func (u *UnderWay) End(key *string) {
	if u.alone.CompareAndSwap(key, nil) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if i := slices.Index(u.keys, key); i >= 0 {
		u.keys = slices.Delete(u.keys, i, i+1)
		u.others.Add(-1)
	}
}

// Last returns the key of the body that began last, nil if there is none.
func (u *UnderWay) Last() *string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == 0 {
		return u.alone.Load()
	}
	return u.keys[len(u.keys)-1]
}
