package durable

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// What recovery finds beyond Options.MaxRuns is left as it is, in the store, and
// its id in the queue Engine.later, which the claim loop empties as places become
// free. The queue is no truth: a process that dies with it leaves runs that look
// as they did before, and that any executor's recovery finds.

// toContinue are runs that recovery is to continue, oldest first.
type toContinue struct {
	roots    []string
	children []string
}

func (c *toContinue) add(row *store.Run) {
	if row.Parent != "" {
		c.children = append(c.children, row.ID)
		return
	}
	c.roots = append(c.roots, row.ID)
}

// places are those of Options.MaxRuns which somebody who claims has set aside: the
// claim loop and a recovery may claim at once, and none waits for the store of the
// other.
type places struct {
	mu  sync.Mutex
	set int
}

// reserve sets up to n of the free places aside, and returns how many. They are
// given back when the runs that were claimed for them count themselves.
func (e *Engine) reserve(n int) int {
	e.places.mu.Lock()
	defer e.places.mu.Unlock()
	n = max(min(n, e.options.MaxRuns-int(e.claimed.Load())-e.places.set), 0)
	e.places.set += n
	return n
}

func (e *Engine) giveBack(n int) {
	e.places.mu.Lock()
	defer e.places.mu.Unlock()
	e.places.set -= n
}

// continueAll continues runs as far as there is room, and leaves the others for
// later. Children go on at once, as they did when they were started: a parent that
// waits for one may hold the place it would wait for.
func (e *Engine) continueAll(ctx context.Context, c *toContinue, rep *Report) {
	e.continueRuns(ctx, c.children, rep)
	n := 0
	if !e.later.waits() { // else they stand behind those that do
		n = e.reserve(len(c.roots))
	}
	e.continueRuns(ctx, c.roots[:n], rep)
	e.giveBack(n)
	e.later.addMissing(c.roots[n:])
	rep.Deferred = append(rep.Deferred, c.roots[n:]...)
	nudge(e.wake) // the claim loop may have met places that were set aside
}

// addMissing puts those of the ids into the queue that are not in it.
func (q *bulkQueue) addMissing(ids []string) {
	if len(ids) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	there := q.set()
	for _, id := range ids {
		if !there[id] {
			q.ids = append(q.ids, id)
		}
	}
}

// all returns the ids as a set.
func (q *bulkQueue) all() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.set()
}

// set is all, for who holds mu.
func (q *bulkQueue) set() map[string]bool {
	all := make(map[string]bool, len(q.ids))
	for _, id := range q.ids {
		all[id] = true
	}
	return all
}

// claimLater takes up to n of the runs that recovery has left, as long as what was
// decided about them is still right. The claim loop alone calls it, with n
// places set aside.
func (e *Engine) claimLater(ctx context.Context, n int) error {
	ids := e.later.first(n)
	sound := make([]string, 0, len(ids))
	judge := judge{eng: e}
	for row, err := range e.runsOf(ctx, store.Filter{IDs: ids, WithLast: true, OldestFirst: true}) {
		if err != nil {
			return fmt.Errorf("durable: runs that recovery has left could not be read: %w", storeError(err))
		}
		if e.staysDecided(ctx, &judge, row) {
			sound = append(sound, row.ID)
		}
	}
	if len(sound) > 0 {
		runs, err := e.claimIDs(ctx, sound, &history.Data{Executor: e.id})
		for _, r := range runs {
			e.tellResumed(r)
		}
		if err != nil {
			return err // those it got are not free, and are passed over when it is tried again
		}
	}
	// Those it did not get are somebody else's, or no longer to be continued.
	e.later.drop(len(ids))
	return nil
}

// staysDecided reports whether a run that was to be continued still is. Meanwhile
// another executor may have taken it, and it may have ended that one's process: it
// is then for the recovery which that makes necessary, as a suspect.
func (e *Engine) staysDecided(ctx context.Context, judge *judge, row *store.Run) bool {
	switch row.Status {
	case store.Interrupted:
		return true // one that is parked or paused by now is not claimed
	case store.Running, store.Resuming:
		def := e.defs.find(row.Workflow, row.Version)
		ends, err := judge.strikes(ctx, row)
		return err == nil && fateOf(row, e.bootPolicy(def), def != nil, ends.N, e.options.QuarantineAfter) == fateResume
	}
	return false
}

// tellResumed says that recovery continues a run.
func (e *Engine) tellResumed(r *run) {
	e.metrics.count(r.ctx, e.metrics.recovered, 1, r.row.Workflow)
	r.log(slog.LevelInfo, "durable: run resumed")
}
