package durable

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/store"
)

// A run that only waits is unloaded: its goroutines end, and what is left of it
// in this process is a dormant. It stays owned, under the same epoch, so that
// waking it needs no claim: it is read again and replayed when its time comes or
// a message arrives. docs/adr/0010-unloading.md says why it is done like this.

// dormant is a run of this executor that is unloaded.
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

	silent bool // it was claimed and no execution has written since; see run.silent
	queued bool // to be loaded, or being loaded
	again  bool // something has happened since

	damage error // why it could not be read at the last try: the store calls it damaged
	tries  int   // in a row that ended so
}

// spanContext has what is known of the trace of d.
func (d *dormant) spanContext() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: d.trace})
}

// idle reports whether r only waits, for long enough that it is worth ending its
// goroutines, on goroutines that are all the engine's own. The committer's mutex
// is held.
func (r *run) idle() bool {
	after := r.eng.options.UnloadAfter
	if after < 0 || r.def.keepLoaded || r.dead.Load() != nil || r.ending.Load() || r.stopCause() != nil {
		return false
	}
	// The row must say that it waits: of a run that was handed a message it says,
	// rightly, that it runs, though its goroutine has not noticed yet.
	if len(r.parked) < r.branches || r.passes > 0 || r.flight != nil || len(r.pending) > 0 || r.rowSays.status != store.Waiting || r.wanted() != r.rowSays {
		return false
	}
	now, clock := r.eng.now(), time.Now()
	for p := range r.parked {
		switch {
		case !p.own, p.unsaid,
			p.until != 0 && p.until.Sub(now) <= after,
			p.open && clock.Sub(p.since) < after:
			return false
		}
	}
	return true
}

// unload ends the goroutines of r if it is idle. It is called by whoever may have
// been the last to begin waiting, and again by a wait that has become a long one.
func (r *run) unload() {
	if r.rehearsal != nil {
		r.allAtFrontier()
		return
	}
	c := r.eng.committer
	c.mu.Lock()
	if !r.idle() {
		c.mu.Unlock()
		return
	}
	if len(r.stashed) > 0 {
		// What would be lost with the memory is written first.
		c.mu.Unlock()
		if r.write(&write{}) == nil {
			r.unload()
		}
		return
	}
	// What has come later than the row says has not been looked at by any wait:
	// idle has compared the two. To ask the inbox again would count a message
	// that has come since, and that is handed to a wait which is about to end.
	r.unloadSeen = r.rowSays.seen
	// From here on nothing of this execution is recorded any more: admit looks
	// at this under the same mutex.
	died := r.dead.CompareAndSwap(nil, &death{kind: deathUnloaded, err: ErrUnloaded})
	c.mu.Unlock()
	if !died {
		return
	}
	r.cancel(ErrUnloaded) // goroutines of the user's that look at their context end first
	close(r.gone)
	// Between the look and the end another one may have come.
	r.eng.rouseFor(r.id, r.inbox.seen())
}

// layDown replaces r, all of whose goroutines have ended, by what is kept of it
// while it waits.
func (e *Engine) layDown(r *run) {
	d := &dormant{id: r.id, def: r.def, epoch: r.row.Epoch, later: r.row.Generation > 0, wake: r.rowSays.wake, seen: r.unloadSeen, trace: parseTrace(r.row.Trace).TraceID(), place: -1}
	defer e.forget(r)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing || e.runs[r.id] != r {
		return
	}
	// In one act: a start of the same id in between would take it for a free one.
	delete(e.runs, r.id)
	e.dormant[r.id] = d
	if d.wake != 0 {
		heap.Push(&e.sleepers, d)
		if d.place == 0 {
			nudge(e.roused)
		}
	}
	if r.wanting {
		e.rouseLocked(d)
	}
}

// rouseFor loads a run that is unloaded, or has it loaded again when it is being
// unloaded, because it has received this many messages, unless it has looked at
// them all before.
func (e *Engine) rouseFor(id string, inbox int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.dormant[id]; d != nil {
		if d.seen < inbox {
			e.rouseLocked(d)
		}
		return
	}
	if r := e.runs[id]; r != nil && r.unloaded() && r.unloadSeen < inbox {
		r.wanting = true
	}
}

// rouseForMail is rouseFor when it is not known what has come.
func (e *Engine) rouseForMail(ids ...string) {
	e.background(func() { e.lookForMail(e.loop, store.Filter{IDs: ids, Mail: true, Limit: 500}) })
}

// rouseLocked queues d to be loaded. The engine's mutex is held.
func (e *Engine) rouseLocked(d *dormant) {
	if d.queued {
		d.again = true // its history may have been read before this happened
		return
	}
	d.queued = true
	if d.place >= 0 {
		heap.Remove(&e.sleepers, d.place)
	}
	e.waking = append(e.waking, d)
	nudge(e.roused)
}

// drop forgets the run with this id if it is dormant under an epoch before this
// one: somebody else has it, or it was claimed anew. What a late answer of the store
// says of an earlier epoch is no reason to forget a later one.
func (e *Engine) drop(id string, before int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropLocked(id, before)
}

// dropLocked is drop with the engine's mutex held.
func (e *Engine) dropLocked(id string, before int64) {
	if d := e.dormant[id]; d != nil && d.epoch < before {
		delete(e.dormant, id)
		if d.place >= 0 {
			heap.Remove(&e.sleepers, d.place)
		}
	}
}

// isDormant reports whether a run of ours is unloaded, or about to be loaded
// again: nothing happens to it of which this engine would not know.
func (e *Engine) isDormant(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dormant[id] != nil
}

// loaders is how many runs are read at a time when many are to be loaded.
const loaders = 16

// sleeperLoop loads dormant runs whose time has come, and those that something
// has happened to.
func (e *Engine) sleeperLoop(ctx context.Context) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	free := make(chan struct{}, loaders)
	var loading sync.WaitGroup
	defer loading.Wait()
	for {
		d, wait := e.nextSleeper()
		if d != nil {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			loading.Go(func() {
				defer func() { <-free }()
				e.load(ctx, d)
			})
			continue
		}
		t.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-e.roused:
		case <-t.C:
		}
	}
}

// nextSleeper takes the next run that is to be loaded, or says how long there
// will be none.
func (e *Engine) nextSleeper() (*dormant, time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for now := e.now(); len(e.sleepers) > 0; {
		d := e.sleepers[0]
		if wait := d.wake.Sub(now); wait > 0 {
			if len(e.waking) == 0 {
				return nil, wait
			}
			break
		}
		e.rouseLocked(d)
	}
	if len(e.waking) == 0 {
		return nil, time.Hour
	}
	d := e.waking[0]
	e.waking[0] = nil
	e.waking = e.waking[1:]
	e.loading[d] = struct{}{}
	return d, 0
}

// load begins the next execution of a dormant run, and returns once its history
// is read. One that is no longer ours is let go.
func (e *Engine) load(ctx context.Context, d *dormant) {
	defer e.loadingEnds(d)
	// What earlier generations had is passed over by the run itself.
	from := store.Cursor{}
	if d.later {
		from = store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64}
	}
	whole := !d.later
	h, err := e.store.Load(ctx, d.id, from)
	if whole && errors.Is(err, store.ErrCorrupt) {
		// If the row can be read, the execution finds the damage, and parks it.
		whole = false
		h, err = e.store.Load(ctx, d.id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrClosed):
		return // whoever claims it next goes on with it
	case errors.Is(err, store.ErrNotFound):
	case errors.Is(err, store.ErrCorrupt):
		e.keepDamaged(d, err)
		return
	case err != nil:
		e.logAbout(slog.LevelWarn, d.id, d.def.name, d.spanContext(), "durable: a waiting run could not be loaded; it is tried again", slog.Any("error", err))
		e.postpone(d, loadPause)
		return
	case h.Run.Owner == e.id && h.Run.Epoch == d.epoch && !h.Run.Status.Terminal():
		r := e.newRun(h.Run, d.def)
		r.silent.Store(d.silent)
		if whole {
			r.preloaded = h
		}
		again, err := e.loadedAnew(d, r)
		if err != nil {
			r.cancel(nil)
			e.postpone(d, loadPause) // unless the engine closes, or it was claimed anew
			return
		}
		r.launch()
		if again {
			e.background(r.fetchMail)
		}
		e.watchers.notify([]string{d.id})
		select {
		case <-r.loaded:
		case <-r.ended:
		}
		return
	}
	e.logAbout(slog.LevelDebug, d.id, d.def.name, d.spanContext(), "durable: a waiting run is no longer ours")
	e.drop(d.id, d.epoch+1)
	e.watchers.notify([]string{d.id})
}

// loadPause is when a run that could not be loaded is tried again, and damagedPause
// the most that lies between two tries with one whose row the store calls damaged.
const (
	loadPause    = time.Second
	damagedPause = time.Hour
)

// keepDamaged keeps a run whose row cannot be read: nothing can be recorded of it, so
// it is not parked but listed by Stuck. It is told once, and tried again less and less
// often, should the store be mended meanwhile.
func (e *Engine) keepDamaged(d *dormant, err error) {
	e.mu.Lock()
	first := d.damage == nil
	d.damage = err
	d.tries++
	pause := min(time.Minute<<min(d.tries-1, 10), damagedPause)
	e.mu.Unlock()
	if first {
		e.logAbout(slog.LevelWarn, d.id, d.def.name, d.spanContext(), "durable: a waiting run cannot be loaded: the store calls its row damaged", slog.Any("error", err), slog.String("next", d.stuck().Next))
	}
	e.postpone(d, pause)
}

// stuck is what Stuck says of a run whose row cannot be read.
func (d *dormant) stuck() Stuck {
	row := store.Run{ID: d.id, Workflow: d.def.name, Version: d.def.version}
	reason := "its row cannot be read"
	if d.damage != nil {
		reason += ": " + safeMessage(d.damage)
	}
	return stuckOf(&row, CodeDamaged, reason)
}

// damagedHere lists the runs of this executor whose rows cannot be read.
func (e *Engine) damagedHere() (list []Stuck) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range e.dormant {
		if d.damage != nil {
			list = append(list, d.stuck())
		}
	}
	slices.SortFunc(list, func(a, b Stuck) int { return strings.Compare(a.RunID, b.RunID) })
	return list
}

// loadingEnds says that nobody is about to load d any more.
func (e *Engine) loadingEnds(d *dormant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.loading, d)
}

// postpone tries to load d later.
func (e *Engine) postpone(d *dormant, pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dormant[d.id] != d {
		return
	}
	now := e.now()
	if d.due == 0 && d.wake <= now {
		d.due = d.wake
	}
	d.queued, d.again, d.wake = false, false, now.Add(pause)
	heap.Push(&e.sleepers, d)
	nudge(e.roused)
}

// loadedAnew puts r, which is to be launched, in the place of d. It reports whether
// something happened after its history may have been read: what happens from here
// on is for r.
func (e *Engine) loadedAnew(d *dormant, r *run) (again bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dormant[d.id] != d {
		return false, fmt.Errorf("durable: run %s was claimed anew, or is let go: %w", d.id, store.ErrOwned)
	}
	if err := e.addLocked(r); err != nil {
		return false, err
	}
	delete(e.dormant, d.id)
	return d.again, nil
}

// stuckUnload is how long an unloading may take before it is worth a warning.
const stuckUnload = 10 * time.Second

// awaitGoroutines waits until the goroutines of r's branches have ended, whose
// deferred calls are the user's.
func (r *run) awaitGoroutines() {
	t := time.AfterFunc(stuckUnload, func() {
		r.log(slog.LevelWarn, "durable: a waiting run does not unload: a deferred call of its code does not return; see KeepLoaded")
	})
	defer t.Stop()
	r.goroutines.Wait()
}

// sleepers is a heap of dormant runs, the one that is due first at its root.
type sleepers []*dormant

func (s sleepers) Len() int           { return len(s) }
func (s sleepers) Less(i, j int) bool { return s[i].wake < s[j].wake }
func (s sleepers) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push and Pop are those of container/heap.
func (s *sleepers) Push(x any) {
	d := x.(*dormant)
	d.place = len(*s)
	*s = append(*s, d)
}

func (s *sleepers) Pop() any {
	old := *s
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	d.place = -1
	return d
}
