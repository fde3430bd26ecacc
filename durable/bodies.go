package durable

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
)

// bodies are the running step bodies of a run.
type bodies struct {
	run   *run
	count atomic.Int32 // steps that are being performed
	// resting gets a value when there is none left and the run is dead.
	resting chan struct{}
	under   underWay
	asking  atomic.Int32           // waits of the run and its bodies for the store; see asks
	exited  atomic.Pointer[string] // key of the step whose body has ended a goroutine of the run's

	mu    sync.Mutex
	local locals // of bodies of this execution; see stepbody.Body
}

// begin adds a step to the count.
func (b *bodies) begin() { b.count.Add(1) }

// end takes a step out of the count.
func (b *bodies) end() {
	if b.count.Add(-1) == 0 && b.run.dead.Load() != nil {
		nudge.Send(b.resting)
	}
}

// await waits, in a run that stops here without an outcome, for the running steps of
// branches that the function has not waited for: their bodies go on as one of its own
// would, and their outcomes are recorded. What stops the run ends their contexts;
// await does not.
func (b *bodies) await() {
	r := b.run
	d := r.dead.Load()
	if d == nil || d.kind == deathLost || d.kind == deathUnloaded {
		return
	}
	for b.count.Load() > 0 {
		select {
		case <-b.resting:
		case <-r.ctx.Done():
			// A body gets a moment to return, as in Close.
			t := time.NewTimer(afterGrace)
			select {
			case <-b.resting:
			case <-t.C:
				t.Stop()
				return
			}
			t.Stop()
		}
	}
}

// underWay has the keys of the running bodies, in the order in which they began.
type underWay struct {
	// alone is a body that began while no other was running: without branches, that is
	// each of them, which needs no lock then.
	alone  atomic.Pointer[string]
	others atomic.Int32 // length of keys

	mu   sync.Mutex
	keys []*string // of bodies that began after alone
}

func (u *underWay) begin(key *string) {
	if u.others.Load() == 0 && u.alone.CompareAndSwap(nil, key) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = append(u.keys, key)
	u.others.Add(1)
}

func (u *underWay) end(key *string) {
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

// last returns the key of the body that began last, nil if there is none.
func (u *underWay) last() *string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == 0 {
		return u.alone.Load()
	}
	return u.keys[len(u.keys)-1]
}

// asks says that the run waits for the store, which may not answer, until over is called: Close
// does not blame its code meanwhile.
func (b *bodies) asks() (over func()) {
	b.asking.Add(1)
	return func() { b.asking.Add(-1) }
}
