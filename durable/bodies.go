package durable

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/stepbody"
)

// bodies are the running step bodies of a run.
type bodies struct {
	run   *run
	count atomic.Int32 // steps that are being performed
	// resting gets a value when there is none left and the run is dead.
	resting chan struct{}
	under   stepbody.UnderWay
	asking  atomic.Int32           // waits of the run and its bodies for the store; see asks
	exited  atomic.Pointer[string] // key of the step whose body has ended a goroutine of the run's

	mu    sync.Mutex
	local stepbody.Locals // of bodies of this execution; see stepbody.Body
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

// asks says that the run waits for the store, which may not answer, until over is called: Close
// does not blame its code meanwhile.
func (b *bodies) asks() (over func()) {
	b.asking.Add(1)
	return func() { b.asking.Add(-1) }
}
