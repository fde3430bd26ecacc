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

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// An unloaded run is loaded again when its time comes, a message arrives, or this
// engine finds that it owns a run that it does not execute: dormitory.loop reads it
// and launches an execution, which replays it.

// takeUp loads a run that this engine owns and does not execute.
func (dorm *dormitory) takeUp(row *store.Run, def *definition) {
	dorm.drop(row.ID, row.Epoch)
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	if ros := &dorm.eng.roster; ros.closing || ros.runs[row.ID] != nil || dorm.runs[row.ID] != nil {
		return
	}
	d := &dormant{
		id: row.ID, def: def, epoch: row.Epoch, later: row.Generation > 0, seen: row.Seen, place: -1,
		trace: telemetry.Parse(row.Trace).TraceID(), silent: row.Status != store.Running,
	}
	dorm.runs[row.ID] = d
	dorm.rouseLocked(d)
}

// rouseFor is called when a run has received this many messages. Unless the run has
// looked at them all, it is loaded if it is unloaded, or loaded again if it is being
// unloaded. If it is loaded and has not read them all, rouseFor returns its
// execution, which must read them itself.
func (dorm *dormitory) rouseFor(id string, inbox int64) (behind *run) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	if d := dorm.runs[id]; d != nil {
		if d.seen < inbox {
			dorm.rouseLocked(d)
		}
		return nil
	}
	switch r := dorm.eng.roster.runs[id]; {
	case r == nil:
		dorm.eng.roster.missLocked(id)
	case !r.unloaded():
		if r.inbox.Seen() < inbox {
			return r
		}
	case r.waits.unloadSeen < inbox:
		r.wanting = true
	}
	return nil
}

// rouseLocked queues d to be loaded. The mutex is held.
func (dorm *dormitory) rouseLocked(d *dormant) {
	if d.queued {
		d.again = true // its history may have been read before this happened
		return
	}
	d.queued = true
	if d.place >= 0 {
		heap.Remove(&dorm.timed, d.place)
	}
	dorm.waking = append(dorm.waking, d)
	nudge.Send(dorm.roused)
}

// loaders is how many runs are read at a time when many are to be loaded.
const loaders = 16

// loop loads dormant runs whose time has come, and those that something
// has happened to.
func (dorm *dormitory) loop(ctx context.Context) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	free := make(chan struct{}, loaders)
	var loading sync.WaitGroup
	defer loading.Wait()
	for {
		leapt := dorm.eng.heart.Clock.Leap().Done()
		d, wait := dorm.next()
		if d != nil {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			loading.Go(func() {
				defer func() { <-free }()
				dorm.load(ctx, d)
			})
			continue
		}
		t.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-dorm.roused:
		case <-leapt:
		case <-t.C:
		}
	}
}

// next takes the next run that is to be loaded, or says how long there
// will be none.
func (dorm *dormitory) next() (*dormant, time.Duration) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	for now := dorm.eng.now(); len(dorm.timed) > 0; {
		d := dorm.timed[0]
		if wait := d.wake.Sub(now); wait > 0 {
			if len(dorm.waking) == 0 {
				return nil, wait
			}
			break
		}
		dorm.rouseLocked(d)
	}
	if len(dorm.waking) == 0 {
		return nil, time.Hour
	}
	d := dorm.waking[0]
	dorm.waking[0] = nil
	dorm.waking = dorm.waking[1:]
	dorm.loading[d] = struct{}{}
	return d, 0
}

// load begins the next execution of a dormant run, and returns once its history
// is read. A run that is no longer ours is dropped.
func (dorm *dormitory) load(ctx context.Context, d *dormant) {
	defer dorm.loadingEnds(d)
	// The run itself passes over what earlier generations had.
	from := store.Cursor{}
	if d.later {
		from = store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64}
	}
	whole := !d.later
	h, err := dorm.eng.loads.Load(ctx, d.id, from)
	if whole && errors.Is(err, store.ErrCorrupt) {
		// If the row can be read, the execution finds the damage, and parks the run.
		whole = false
		h, err = dorm.eng.loads.Load(ctx, d.id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	}
	switch {
	case ctx.Err() != nil, errors.Is(err, store.ErrClosed):
		return // the next executor that claims it goes on with it
	case errors.Is(err, store.ErrNotFound):
	case errors.Is(err, store.ErrCorrupt):
		dorm.keepDamaged(d, err)
		return
	case err != nil:
		dorm.eng.log.About(slog.LevelWarn, d.id, d.def.name, d.spanContext(), "durable: a waiting run could not be loaded; it is tried again", slog.Any("error", err))
		dorm.postpone(d, loadPause)
		return
	case h.Run.Owner == dorm.eng.id && h.Run.Epoch == d.epoch && !h.Run.Status.Terminal():
		r := newRun(dorm.eng, h.Run, d.def)
		r.claimed.silent.Store(d.silent)
		if whole {
			r.source.loaded = h
		}
		again, err := dorm.loadedAnew(d, r)
		if err != nil {
			r.cancel(nil)
			dorm.postpone(d, loadPause) // unless the engine is closing, or the run was claimed again
			return
		}
		r.launch()
		if again {
			r.inbox.fetchLater()
		}
		dorm.eng.watchers.notify([]string{d.id})
		select {
		case <-r.loaded:
		case <-r.ended:
		}
		return
	}
	dorm.eng.log.About(slog.LevelDebug, d.id, d.def.name, d.spanContext(), "durable: a waiting run is no longer ours")
	dorm.drop(d.id, d.epoch+1)
	dorm.eng.watchers.notify([]string{d.id})
}

// loadPause is how long after a failed load a run is tried again, and damagedPause
// the longest pause between two tries of a run whose row the store calls damaged.
const (
	loadPause    = time.Second
	damagedPause = time.Hour
)

// keepDamaged keeps a run whose row cannot be read: nothing can be recorded of it, so
// it is not parked but listed by Stuck. That is logged once, and the run is tried
// again less and less often, in case the store is mended meanwhile.
func (dorm *dormitory) keepDamaged(d *dormant, err error) {
	dorm.mu.Lock()
	first := d.damage == nil
	d.damage = err
	d.tries++
	pause := min(time.Minute<<min(d.tries-1, 10), damagedPause)
	dorm.mu.Unlock()
	if first {
		dorm.eng.log.About(slog.LevelWarn, d.id, d.def.name, d.spanContext(), "durable: a waiting run cannot be loaded: the store calls its row damaged", slog.Any("error", err), slog.String("next", d.stuck().Next))
	}
	dorm.postpone(d, pause)
}

// stuck returns what operate.Operator.Stuck says of a run whose row cannot be read.
func (d *dormant) stuck() stuck.Run {
	row := store.Run{ID: d.id, Workflow: d.def.name, Version: d.def.version}
	reason := "its row cannot be read"
	if d.damage != nil {
		reason += ": " + faults.Message(d.damage)
	}
	return stuck.Of(&row, CodeDamaged, reason)
}

// damaged lists the runs of this executor whose rows cannot be read.
func (dorm *dormitory) damaged() (list []stuck.Run) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	for _, d := range dorm.runs {
		if d.damage != nil {
			list = append(list, d.stuck())
		}
	}
	slices.SortFunc(list, func(a, b stuck.Run) int { return strings.Compare(a.RunID, b.RunID) })
	return list
}

// loadingEnds notes that d is not being loaded any more.
func (dorm *dormitory) loadingEnds(d *dormant) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	delete(dorm.loading, d)
}

// postpone tries to load d later.
func (dorm *dormitory) postpone(d *dormant, pause time.Duration) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	if dorm.runs[d.id] != d {
		return
	}
	now := dorm.eng.now()
	if d.due == 0 && d.wake <= now {
		d.due = d.wake
	}
	d.queued, d.again, d.wake = false, false, now.Add(pause)
	heap.Push(&dorm.timed, d)
	nudge.Send(dorm.roused)
}

// loadedAnew puts r, which is to be launched, in the place of d. again reports
// whether something happened after the history may have been read. What happens from
// here on reaches r.
func (dorm *dormitory) loadedAnew(d *dormant, r *run) (again bool, err error) {
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	if dorm.runs[d.id] != d {
		return false, fmt.Errorf("durable: run %s was claimed anew, or is let go: %w", d.id, store.ErrOwned)
	}
	if err := dorm.eng.roster.addLocked(r); err != nil {
		return false, err
	}
	delete(dorm.runs, d.id)
	return d.again, nil
}

// timersLate returns how many unloaded runs of this engine wait for a moment that
// passed more than lateAfter ago: there are too many at once, or they cannot be
// read. A run that is loaded wakes by a timer of the runtime.
func (dorm *dormitory) timersLate() int {
	due := dorm.eng.now().Add(-lateAfter)
	dorm.mu.Lock()
	defer dorm.mu.Unlock()
	late := 0
	for d := range dorm.loading {
		late += one(dorm.runs[d.id] == d && d.late(due)) // else it is loaded
	}
	for _, d := range dorm.waking {
		late += one(d.late(due))
	}
	return late + dorm.timed.late(0, due)
}

// late reports whether d was to go on before due. The dormitory's mutex is held.
func (d *dormant) late(due store.Time) bool {
	at := d.wake
	if d.due != 0 {
		at = d.due
	}
	return at != 0 && at < due
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// lateAfter is how far behind a timer must be to be called late: what a slow
// commit or a busy machine costs is not worth a warning.
const lateAfter = time.Second

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

// late counts the late runs at and below place i. Below a run whose time has not come
// none is late, except those whose loading was put off: these are due within that
// pause.
func (s sleepers) late(i int, due store.Time) int {
	if i >= len(s) || s[i].wake > due.Add(lateAfter+loadPause) {
		return 0
	}
	return one(s[i].late(due)) + s.late(2*i+1, due) + s.late(2*i+2, due)
}
