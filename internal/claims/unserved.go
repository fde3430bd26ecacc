package claims

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// unservedRuns is what this engine knows of runs that no live executor serves. It
// looks when the set of live executors has changed: the last executor that serves
// such runs strands them when it leaves, after every Recover has said that nothing
// is stuck.
type unservedRuns struct {
	o       *Options
	looking atomic.Bool // only one look at a time
	live    string      // the executors at the last look that was completed

	mu    sync.Mutex
	found map[code]*strandedRuns
}

// each calls report for each workflow and version that has such runs.
func (u *unservedRuns) each(report func(workflow, version string, runs int64)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c, r := range u.found {
		report(c.workflow, c.version, r.runs)
	}
}

// code is a version of a workflow.
type code struct{ workflow, version string }

type strandedRuns struct {
	runs    int64
	example store.Run
	coded   bool // its code is served, and nobody who does takes runs from its queue
}

// look compares the live executors with those of the last look and, if they have
// changed, logs which runs have lost the last executor that serves them, once for
// each workflow and version, and which are served again. It does so in the
// background, since a heartbeat may come meanwhile.
func (u *unservedRuns) look() {
	if !u.looking.CompareAndSwap(false, true) {
		return
	}
	compare := func(ctx context.Context) {
		defer u.looking.Store(false)
		executors, err := u.o.Store.Executors(ctx)
		if err != nil {
			return // the heartbeats log that; a later one looks again
		}
		live := stuck.LiveOf(executors, "")
		ids := strings.Join(live.IDs(), " ")
		if ids == u.live {
			return
		}
		found, err := u.count(ctx, live)
		if err != nil {
			return
		}
		u.live = ids
		u.report(found)
	}
	if !u.o.Runs.Background(compare) {
		u.looking.Store(false)
	}
}

// count finds the runs that no live executor serves, by their code. It reads those
// of dead executors first: a run that a recovery parks meanwhile is then found
// among the resting ones, and counted once.
func (u *unservedRuns) count(ctx context.Context, live *stuck.Live) (map[code]*strandedRuns, error) {
	found := map[code]*strandedRuns{}
	counted := map[string]bool{}
	add := func(f store.Filter) error {
		f.OldestFirst = true
		for row, err := range u.o.List(ctx, f) {
			if err != nil {
				return err
			}
			if counted[row.ID] || row.Paused || row.Status == store.Interrupted && row.Code != "" && row.Code != store.CodeNotRegistered || live.Serves(row) {
				continue // it waits for something else, or for nothing
			}
			counted[row.ID] = true
			c := code{row.Workflow, row.Version}
			if found[c] == nil {
				found[c] = &strandedRuns{example: *row}
			}
			if row.CreatedAt < found[c].example.CreatedAt {
				found[c].example = *row
			}
			found[c].runs++
			found[c].coded = live.HasCode(&found[c].example)
		}
		return nil
	}
	orphans, err := u.o.Store.Count(ctx, store.Filter{Orphaned: true}, "")
	if err == nil && orphans[""] > 0 {
		err = add(store.Filter{Orphaned: true, Statuses: []store.Status{store.Running, store.Resuming}})
	}
	if err != nil {
		return nil, err
	}
	filters, err := u.unserved(ctx, live)
	if err != nil {
		return found, err
	}
	for _, f := range filters {
		if err := add(f); err != nil {
			return found, err
		}
	}
	return found, nil
}

// unserved returns what selects the resting runs that no live executor takes.
func (u *unservedRuns) unserved(ctx context.Context, live *stuck.Live) ([]store.Filter, error) {
	kinds, err := stuck.KindsOf(ctx, u.o.Store)
	return live.Unserved(kinds), err
}

// report logs what has changed since the last look.
func (u *unservedRuns) report(found map[code]*strandedRuns) {
	u.mu.Lock()
	before := u.found
	u.found = found
	u.mu.Unlock()
	for c, r := range found {
		if before[c] == nil {
			if r.coded {
				u.o.Log.Warn("durable: runs are stuck: no live executor takes runs from their queue any more", "executor", u.o.Executor,
					"workflow", c.workflow, "version", c.version, "queue", r.example.Queue, "runs", r.runs, "oldest", r.example.ID, "next", stuck.OfQueue(&r.example).Next)
				continue
			}
			u.o.Log.Warn("durable: runs are stuck: no live executor serves their workflow and version any more", "executor", u.o.Executor,
				"workflow", c.workflow, "version", c.version, "runs", r.runs, "oldest", r.example.ID, "next", stuck.Of(&r.example, store.CodeNotRegistered, "").Next)
		}
	}
	for c := range before {
		if found[c] == nil {
			u.o.Log.Info("durable: runs that were stuck are served again, or have ended", "executor", u.o.Executor, "workflow", c.workflow, "version", c.version)
		}
	}
}
