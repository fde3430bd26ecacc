package durable

import (
	"sync"
	"sync/atomic"
	"time"
)

// bodies are the step bodies of a run that are under way.
type bodies struct {
	run   *run
	count atomic.Int32 // steps that are being performed
	// resting gets a value when there is none left and the run is dead.
	resting chan struct{}
	current atomic.Pointer[string] // key of the body under way, for messages
	exited  atomic.Pointer[string] // key of the step whose body has ended a goroutine of the run's

	mu    sync.Mutex
	local locals // of bodies of this execution; see stepbody.Body
}

// begin counts a step in.
func (b *bodies) begin() { b.count.Add(1) }

// end counts a step out.
func (b *bodies) end() {
	if b.count.Add(-1) == 0 && b.run.dead.Load() != nil {
		nudge(b.resting)
	}
}

// await waits, in a run that stops here without an outcome, for the steps
// under way in branches that the function has not waited for: their bodies go on
// as one of its own would, and what they come to is recorded. Their contexts end
// by what stops the run, not by this.
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
			// A body has a moment for its last words, as Close gives it.
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
