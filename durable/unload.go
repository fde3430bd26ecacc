package durable

import (
	"container/heap"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// A run that only waits is unloaded: its goroutines end, and this process keeps only a
// dormant of it. The run stays owned, under the same epoch, so that waking it needs no
// claim: it is read again and replayed when its time comes or a message arrives
// (reload.go). docs/adr/0010-unloading.md says why.

// idle reports whether the run only waits, on goroutines that are all the engine's
// own, for long enough that it is worth ending them. The log's mutex is held.
func (wt *runWaits) idle() bool {
	r := wt.run
	after := r.eng.options.UnloadAfter
	if after < 0 || r.def.keepLoaded || r.dead.Load() != nil || r.ending.Load() || r.stop.cause() != nil {
		return false
	}
	// If a message was handed to one of its waits, the run goes on, though the goroutine
	// has not noticed yet.
	if len(wt.parked) < wt.branches || wt.passes > 0 || r.log.Busy() || wt.wanted().status != store.Waiting {
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

// unload ends the goroutines of the run if it is idle. A goroutine that may have been
// the last to begin waiting calls it, and so does a wait that has become a long one.
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
	if r.log.StashesLocked() || wt.wanted() != wt.rowSays {
		// What would be lost with the memory is written first, and that no wait wants the
		// messages that have come since the last write.
		wt.mu.Unlock()
		if r.write(&commit.Write{}) == nil {
			wt.unload()
		}
		return
	}
	// No wait has looked at a message that is later than the row says: the two were
	// compared. Asking the inbox again would count a message that has come
	// since, and that is handed to a wait which is about to end.
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
	// Another message may have come in between.
	r.eng.dormitory.rouseFor(r.id, r.inbox.Seen())
}

// A dormitory has the unloaded runs of this executor, and loads them when their time
// comes or something happens to them.
type dormitory struct {
	eng    *Engine
	roused chan struct{} // there may be a run to be loaded

	// mu is the roster's: a run moves from one to the other in one step, so that a
	// start of the same id always finds it in one of them.
	mu      *sync.Mutex
	runs    map[string]*dormant
	timed   sleepers              // those of them that have a wake time
	waking  []*dormant            // to be loaded now, first come, first served
	loading map[*dormant]struct{} // being loaded
}

func (dorm *dormitory) open(e *Engine) {
	dorm.eng, dorm.mu, dorm.roused = e, &e.roster.mu, make(chan struct{}, 1)
	dorm.runs, dorm.loading = map[string]*dormant{}, map[*dormant]struct{}{}
}

// closeLocked forgets all of them. They go on waiting in the store, and the executor
// that finds them due claims them. The mutex is held.
func (dorm *dormitory) closeLocked() { dorm.runs, dorm.timed, dorm.waking = nil, nil, nil }

// dormant is an unloaded run of this executor.
type dormant struct {
	id    string
	def   *definition
	epoch int64
	later bool       // it is in a later generation than its first
	wake  store.Time // when it goes on by itself; 0: only by a message
	seen  int64      // number of the last message it has looked at
	trace trace.TraceID
	place int        // in the heap of those that have a time; -1: in none
	due   store.Time // when it was to go on, if loading it was put off since; 0: it was not

	silent bool // it was claimed and no execution has written since; see claimedAs.silent
	queued bool // to be loaded, or being loaded
	again  bool // something has happened since

	damage error // why it could not be read at the last try: the store calls it damaged
	tries  int   // consecutive tries that ended so
}

// spanContext returns what is known of the trace of d.
func (d *dormant) spanContext() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: d.trace})
}

// makeDormant replaces r, all of whose goroutines have ended, by what is kept of it
// while it waits.
func (dorm *dormitory) makeDormant(r *run) {
	d := &dormant{id: r.id, def: r.def, epoch: r.row.Epoch, later: r.row.Generation > 0, wake: r.waits.rowSays.wake, seen: r.waits.unloadSeen, trace: telemetry.Parse(r.row.Trace).TraceID(), place: -1}
	ros := &dorm.eng.roster
	defer ros.forget(r)
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	if ros.closing || ros.runs[r.id] != r {
		return
	}
	delete(ros.runs, r.id)
	dorm.runs[r.id] = d
	if d.wake != 0 {
		heap.Push(&dorm.timed, d)
		if d.place == 0 {
			nudge.Send(dorm.roused)
		}
	}
	if r.wanting {
		dorm.rouseLocked(d)
	}
}

// drop forgets the run with this id if it is dormant under an epoch before this one:
// another executor has it, or it was claimed again. A late answer of the store about
// an earlier epoch does not make it forget a later one.
func (dorm *dormitory) drop(id string, before int64) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	dorm.dropLocked(id, before)
}

// dropLocked is drop with the mutex held.
func (dorm *dormitory) dropLocked(id string, before int64) {
	if d := dorm.runs[id]; d != nil && d.epoch < before {
		delete(dorm.runs, id)
		dorm.eng.claims.Leave(id, d.epoch)
		if d.place >= 0 {
			heap.Remove(&dorm.timed, d.place)
		}
	}
}

// has reports whether a run of ours is unloaded, or about to be loaded
// again: nothing happens to it of which this engine would not know.
func (dorm *dormitory) has(id string) bool {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	return dorm.runs[id] != nil
}
