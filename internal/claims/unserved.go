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
// is stuck. It looks, too, when a run was started here that others are to take, because they may
// not. As long as it knows of some, and they are not very many, it counts them anew now and then.
type unservedRuns struct {
	o       *Options
	claims  *Claims
	looking atomic.Bool // only one look at a time
	live    string      // the executors at the last look that was completed
	idly    int         // looks since then that had no reason to count

	mu    sync.Mutex
	found stuck.Unserved
}

// Runs are counted anew every recountAfter looks, ten minutes by default, if they are not more than
// recountUpTo: a count reads each of them.
const (
	recountAfter = 10
	recountUpTo  = 1000
)

// last returns what the last look has found. Nobody changes it.
func (u *unservedRuns) last() stuck.Unserved {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.found
}

// look compares the live executors with those of the last look and, if they have
// changed or there is another reason, logs which runs no executor serves, once for
// each kind, and which are served again. It does so in the
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
		idle := ""
		if !u.claims.Recovered() {
			idle = u.o.Executor
		}
		live, before := stuck.LiveOf(executors, idle), u.last()
		ids, started := strings.Join(live.IDs(), " "), u.claims.foreign.Look()
		if u.idly++; ids == u.live && !started && (u.idly < recountAfter || len(before) == 0 || before.Runs() > recountUpTo) {
			return
		}
		found, err := u.count(ctx, live)
		if err != nil {
			if started {
				u.claims.foreign.Relook()
			}
			return
		}
		u.live, u.idly = ids, 0
		u.mu.Lock()
		u.found = found
		u.mu.Unlock()
		found.Log(u.o.Log.Logger, u.o.Executor, before)
	}
	if !u.o.Runs.Background(compare) {
		u.looking.Store(false)
	}
}

// count finds the runs that no live executor serves. It reads those
// of dead executors first: a run that a recovery parks meanwhile is then found
// among the resting ones, and counted once.
func (u *unservedRuns) count(ctx context.Context, live *stuck.Live) (stuck.Unserved, error) {
	filters, err := u.unserved(ctx, live)
	if err != nil || len(filters) == 0 {
		return nil, err // somebody serves every kind of runs that there are, whoever owns them
	}
	found, counted := stuck.Unserved{}, map[string]bool{}
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
			found.Add(live, row)
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
