package durable

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/store"
)

// A run that only waits is unloaded: its goroutines end, and what is left of it
// in this process is a dormant. It stays owned, under the same epoch, so that
// waking it needs no claim: it is read again and replayed when its time comes or
// a message arrives. docs/adr/0010-unloading.md says why it is done like this.

// idle reports whether the run only waits, for long enough that it is worth ending its
// goroutines, on goroutines that are all the engine's own. The log's mutex
// is held.
func (wt *runWaits) idle() bool {
	r := wt.run
	after := r.eng.options.UnloadAfter
	if after < 0 || r.def.keepLoaded || r.dead.Load() != nil || r.ending.Load() || r.stop.cause() != nil {
		return false
	}
	// The row must say that it waits: of a run that was handed a message it says,
	// rightly, that it runs, though its goroutine has not noticed yet.
	if len(wt.parked) < wt.branches || wt.passes > 0 || r.log.Busy() || wt.rowSays.status != store.Waiting || wt.wanted() != wt.rowSays {
		return false
	}
	now, clock := r.eng.now(), time.Now()
	for p := range wt.parked {
		switch {
		case !p.own, p.unsaid,
			p.until != 0 && p.until.Sub(now) <= after,
			p.open && clock.Sub(p.since) < after:
			return false
		}
	}
	return true
}

// unload ends the goroutines of the run if it is idle. It is called by whoever may have
// been the last to begin waiting, and again by a wait that has become a long one.
func (wt *runWaits) unload() {
	r := wt.run
	if r.rehearsal != nil {
		r.rehearsal.endIfIdle()
		return
	}
	wt.mu.Lock()
	if !wt.idle() {
		wt.mu.Unlock()
		return
	}
	if r.log.StashesLocked() {
		// What would be lost with the memory is written first.
		wt.mu.Unlock()
		if r.write(&commit.Write{}) == nil {
			wt.unload()
		}
		return
	}
	// What has come later than the row says has not been looked at by any wait:
	// idle has compared the two. To ask the inbox again would count a message
	// that has come since, and that is handed to a wait which is about to end.
	wt.unloadSeen = wt.rowSays.seen
	// From here on nothing of this execution is recorded any more: Admit looks
	// at this under the same mutex.
	died := r.dead.CompareAndSwap(nil, &death{kind: deathUnloaded, err: ErrUnloaded})
	wt.mu.Unlock()
	if !died {
		return
	}
	r.cancel(ErrUnloaded) // goroutines of the user's that look at their context end first
	close(r.gone)
	// Between the look and the end another one may have come.
	r.eng.dormitory.rouseFor(r.id, r.inbox.seen())
}
