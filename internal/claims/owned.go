package claims

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A live engine must execute what it owns, because no other executor takes such a
// run. A lost answer of the store, or an end that could not be recorded, can leave a
// run that is owned here and not executed. So after every second heartbeat the
// engine compares the runs that it owns in the store with those that it executes or
// keeps unloaded; an engine that owned nothing, and has begun nothing since, hardly
// looks. A run that is not executed at two looks, a while apart and under the same
// epoch, is taken up like one that was unloaded.

// owned is what the comparison remembers from one look to the next.
type owned struct {
	o    *Options
	busy atomic.Bool

	// Used only by the goroutine that has set busy.
	lookedAt time.Time
	after    string            // where the listing goes on
	missing  map[string]orphan // by run id
	taken    map[string]orphan // runs that were taken up
	none     int64             // began at the last look that found nothing owned; -1: it found something

	began atomic.Int64 // executions and claims that have begun here: each may own more

	mu     sync.Mutex
	claims map[*time.Time]struct{} // when the claims in progress began
}

// orphan is a run that this engine owns but was not seen to execute.
type orphan struct {
	epoch int64
	since time.Time
	times int // how often it was taken up
}

const (
	// auditPage is how many runs are compared at a look. The next look goes on
	// after them, so that the cost of a look does not grow with the number of
	// waiting runs.
	auditPage = 500
	// auditAgain limits for how long a run is left alone that was taken up and is
	// again not executed, for example because the store refuses its end for good.
	auditAgain = 10 * time.Minute
	// auditIdle is how many leases pass between two looks of an engine that owned
	// nothing at the last one and has begun nothing since. It can own then only what
	// a store carried out long after it was asked.
	auditIdle = 4
)

// claiming notes that a claim begins; the function that it returns notes that the
// claimed runs are executed.
func (ow *owned) claiming() (done func()) {
	ow.began.Add(1)
	began := time.Now()
	ow.mu.Lock()
	defer ow.mu.Unlock()
	if ow.claims == nil {
		ow.claims = map[*time.Time]struct{}{}
	}
	ow.claims[&began] = struct{}{}
	return func() {
		ow.mu.Lock()
		defer ow.mu.Unlock()
		delete(ow.claims, &began)
	}
}

// claimedBefore reports whether a claim is in progress that may have taken a run
// that was seen at this moment.
func (ow *owned) claimedBefore(seen time.Time) bool {
	ow.mu.Lock()
	defer ow.mu.Unlock()
	for began := range ow.claims {
		if !began.After(seen) {
			return true
		}
	}
	return false
}

// audit compares what the engine owns with what it executes, in the background, at
// most four times in the length of a lease, or once in four leases while the engine
// owns nothing.
func (ow *owned) audit() {
	if !ow.busy.CompareAndSwap(false, true) {
		return
	}
	wait := ow.o.Lease / 4 // the heartbeats may come more often
	if ow.none == ow.began.Load() {
		wait = auditIdle * ow.o.Lease
	}
	if time.Since(ow.lookedAt) < wait {
		ow.busy.Store(false)
		return
	}
	ow.lookedAt = time.Now()
	if !ow.o.Runs.Background(func(ctx context.Context) { defer ow.busy.Store(false); ow.look(ctx) }) {
		ow.busy.Store(false)
	}
}

// look compares once: the runs that were missing at the last look, or else the next
// page.
func (ow *owned) look(ctx context.Context) {
	f := store.Filter{Owners: []string{ow.o.Executor}, Statuses: []store.Status{store.Running, store.Resuming, store.Waiting}, Limit: auditPage}
	again := len(ow.missing) > 0
	if again {
		f.IDs = slices.Sorted(maps.Keys(ow.missing))
	} else {
		f.After = ow.after
	}
	began := ow.began.Load()
	ow.none = -1
	before := ow.missing
	// A run that is executed now, or that a claim in progress may have taken, was not
	// missing, whatever becomes of it before the store answers. Claims are asked about
	// first: when one is over, its runs are executed.
	maps.DeleteFunc(before, func(id string, m orphan) bool {
		return ow.claimedBefore(m.since) || ow.o.Runs.Keeps(&store.Run{ID: id, Epoch: m.epoch})
	})
	page, err := ow.o.Store.List(ctx, f)
	if err != nil {
		ow.after = ""
		return // it is tried again after a later heartbeat
	}
	seen := time.Now() // by now: a claim that began while the store was slow may have taken what it lists
	if f.After == "" && !again && len(page.Runs) == 0 {
		ow.none = began
	}
	ow.missing = nil
	for i := range page.Runs {
		row := &page.Runs[i]
		if ow.o.Runs.Keeps(row) {
			continue
		}
		m, known := before[row.ID]
		switch {
		case !known || m.epoch != row.Epoch:
			m = orphan{epoch: row.Epoch, since: seen}
		case ow.due(row, seen):
			ow.takeUp(row)
			continue
		}
		ow.missing = put(ow.missing, row.ID, m)
	}
	if !again {
		ow.after = page.Next
	}
}

// due reports whether a run may be taken up, and counts how often it was: a run that
// is repeatedly missing is left alone for longer and longer.
func (ow *owned) due(row *store.Run, now time.Time) bool {
	maps.DeleteFunc(ow.taken, func(_ string, t orphan) bool { return now.Sub(t.since) > 2*auditAgain })
	t := ow.taken[row.ID]
	if t.epoch != row.Epoch {
		t = orphan{epoch: row.Epoch}
	}
	if t.times > 0 && now.Sub(t.since) < min(time.Second<<min(t.times, 20), auditAgain) {
		return false
	}
	t.times, t.since = t.times+1, now
	ow.taken = put(ow.taken, row.ID, t)
	return true
}

// takeUp begins to execute a run that this engine owns and does not execute.
func (ow *owned) takeUp(row *store.Run) {
	if !ow.o.hasCode(row) {
		return // no claim takes a run whose code is not here
	}
	ow.o.Log.AboutRun(slog.LevelWarn, row, "durable: this engine owns a run that it did not execute; it is taken up. An answer of the store was lost, or the end of the last execution could not be recorded",
		slog.String("status", string(row.Status)), slog.Int64("epoch", row.Epoch))
	ow.o.Runs.TakeUp(row)
}
