package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// unclaimedFor is after which time a run that anybody who serves it may claim
// counts as one that nobody serves.
const unclaimedFor = 5 * time.Second

// kinds returns what selects each kind of stuck runs. Kinds of which the store has
// none, mostly all, are left out: a listing that finds nothing may have looked at
// every run. What says that there are none counts no more runs than it must: those
// that have completed, mostly all, are in none of these counts.
func (l *stuckList) kinds(ctx context.Context) ([][]store.Filter, error) {
	count := l.eng.store.Count
	failed, err := count(ctx, quarantinedRuns, "")
	if err != nil {
		return nil, err
	}
	var kinds [][]store.Filter
	if failed[""] > 0 {
		kinds = append(kinds, []store.Filter{quarantinedRuns})
	}
	kinds = append(kinds, []store.Filter{{Orphaned: true, WithLast: true}})
	// An import of a completed run that did not finish: it looks as if it ran, and has no owner.
	importing := store.Filter{Statuses: []store.Status{store.Running}, Codes: []string{CodeImporting}}
	half, err := count(ctx, importing, "")
	if err != nil {
		return nil, err
	}
	if half[""] > 0 {
		kinds = append(kinds, []store.Filter{importing})
	}
	workflows, err := count(ctx, store.Filter{Statuses: restingStatuses}, store.ByWorkflow)
	if err != nil {
		return nil, err
	}
	if len(workflows) == 0 {
		return kinds, nil
	}
	unserved, err := l.unserved(ctx, workflows)
	if err != nil {
		return nil, err
	}
	kinds = append(kinds, append([]store.Filter{{Statuses: restingStatuses, Paused: true}}, unserved...))
	parked, err := count(ctx, store.Filter{Statuses: []store.Status{store.Interrupted}}, store.ByCode)
	if err != nil {
		return nil, err
	}
	if parked[""] > 0 {
		kinds = append(kinds, []store.Filter{{Statuses: []store.Status{store.Interrupted}, WithLast: true}})
	}
	delete(parked, "")
	if codes := slices.Sorted(maps.Keys(parked)); len(codes) > 0 {
		kinds = append(kinds, []store.Filter{{Statuses: []store.Status{store.Interrupted}, Codes: codes}})
	}
	return kinds, nil
}

// restingStatuses are those of runs that somebody who serves them is to claim,
// now or when their time has come.
var restingStatuses = []store.Status{store.Pending, store.Waiting, store.Interrupted}

// unserved returns filters for the resting runs whose code nobody alive has, of
// which there are so many by workflow. They are found by counting: a store in which
// 100,000 runs sleep soundly is not read row by row to find that none of them is
// stuck.
func (l *stuckList) unserved(ctx context.Context, workflows map[string]int64) ([]store.Filter, error) {
	present, err := l.eng.store.Count(ctx, store.Filter{Statuses: restingStatuses}, store.ByVersion)
	if err != nil {
		return nil, err
	}
	var nobody []string // serves any version of them
	var filters []store.Filter
	for _, w := range slices.Sorted(maps.Keys(workflows)) {
		served := l.versions(w)
		if len(served) == 0 {
			nobody = append(nobody, w)
			continue
		}
		var other []string
		for _, v := range slices.Sorted(maps.Keys(present)) {
			if !slices.Contains(served, v) {
				other = append(other, v)
			}
		}
		if len(other) > 0 {
			filters = append(filters, store.Filter{Statuses: restingStatuses, Workflows: []string{w}, Versions: other})
		}
	}
	if len(nobody) > 0 {
		filters = append(filters, store.Filter{Statuses: restingStatuses, Workflows: nobody})
	}
	return filters, nil
}

// versions returns those of a workflow that somebody alive serves.
func (l *stuckList) versions(workflow string) []string {
	var all []string
	for _, x := range l.live {
		if l.idle(x.ID) {
			continue
		}
		for _, s := range x.Serves {
			if s.Workflow == workflow {
				all = append(all, s.Versions...)
			}
		}
	}
	return all
}

// stuckList is a listing under way.
type stuckList struct {
	eng   *Engine
	limit int
	live  []store.Executor
	seen  map[string]bool
	later map[string]bool // go on here when there is room
	bulk  map[string]bool // likewise, of StartAll
	found []Stuck
}

// add looks at the runs of one kind, which filters together select. Of those that
// only lack somebody to claim them it looks at the oldest: more of them may wait for
// room, and none that nobody can claim stays young.
func (l *stuckList) add(ctx context.Context, kind []store.Filter) error {
	n, seen := 0, 0
	for _, f := range kind {
		f.OldestFirst = true
		claimable := f.WithLast && !f.Orphaned
		if l.limit > 0 {
			f.Limit = min(l.limit+1, scanPage) // as many as are wanted, mostly
		}
		for row, err := range l.eng.runsOf(ctx, f) {
			if err != nil {
				return err
			}
			if seen++; l.limit > 0 && n >= l.limit || claimable && seen > scanPage {
				return nil
			}
			if f.WithLast && row.Last == nil && row.Code == "" {
				// It cannot be claimed: there is nothing to go on behind.
				row.Status, row.Code, row.Reason = store.Interrupted, CodeDamaged, ErrNoHistory.Error()
			}
			if s, stuck := l.look(row); stuck && !l.seen[row.ID] {
				l.seen[row.ID] = true
				l.found = append(l.found, s)
				n++
			}
		}
	}
	return nil
}

// addUnheard looks for runs that wait for a child of which they will not hear.
func (l *stuckList) addUnheard(ctx context.Context) error {
	waiting := store.Filter{Statuses: []store.Status{store.Waiting}, OldestFirst: true, WithLast: true}
	if l.limit > 0 {
		n, err := l.eng.store.Count(ctx, waiting, "")
		if err != nil || n[""] > int64(l.limit) {
			return err
		}
	}
	parents := unheardLook{eng: l.eng, found: func(row *store.Run, lost *unheard) {
		if l.seen[row.ID] || l.limit > 0 && len(l.seen) >= l.limit {
			return
		}
		l.seen[row.ID] = true
		l.found = append(l.found, lost.stuck(row))
	}}
	for row, err := range l.eng.runsOf(ctx, waiting) {
		if err == nil && !l.seen[row.ID] && l.eng.now().Sub(row.UpdatedAt) >= unclaimedFor {
			err = parents.add(ctx, row)
		}
		if err != nil {
			return err
		}
	}
	return parents.flush(ctx)
}

// unheardLook finds, among runs that wait, those that will not hear of the child that
// their last event has started. Children are looked up many at a time.
type unheardLook struct {
	eng   *Engine
	rows  []*store.Run
	kids  []string // of the rows
	found func(*store.Run, *unheard)
}

func (u *unheardLook) add(ctx context.Context, row *store.Run) error {
	if row.Last == nil || row.Last.Type != store.ChildStarted {
		return nil
	}
	d, err := history.DataOf(row.Last)
	if err != nil || d.Child == "" {
		return nil // its execution finds that it is damaged
	}
	u.rows, u.kids = append(u.rows, row), append(u.kids, d.Child)
	if len(u.rows) < scanPage/2 {
		return nil
	}
	return u.flush(ctx)
}

func (u *unheardLook) flush(ctx context.Context) error {
	if len(u.rows) == 0 {
		return nil
	}
	live := make(map[string]bool, len(u.kids))
	for row, err := range u.eng.runsOf(ctx, store.Filter{IDs: u.kids}) {
		if err != nil {
			return err
		}
		live[row.ID] = !row.Status.Terminal()
	}
	for i, row := range u.rows {
		if live[u.kids[i]] {
			continue
		}
		lost, err := u.eng.families.unheardOf(ctx, row, u.kids[i])
		if errors.Is(err, store.ErrNotFound) {
			continue // the parent has gone, too
		}
		if err != nil {
			return err
		}
		if lost != nil {
			u.found(row, lost)
		}
	}
	u.rows, u.kids = nil, nil
	return nil
}

// look says whether a run is stuck, as far as its row tells.
func (l *stuckList) look(row *store.Run) (Stuck, bool) {
	owned := slices.ContainsFunc(l.live, func(x store.Executor) bool { return x.ID == row.Owner })
	switch {
	case row.Code == CodeImporting && l.eng.now().Sub(row.UpdatedAt) < unclaimedFor:
		return Stuck{}, false // it is being imported
	case row.Code == CodeImporting:
		return stuckOf(row, row.Code, row.Reason), true
	case row.Paused:
		return stuckOf(row, CodePaused, pausedReason(row)), true
	case row.Status == store.Failed, row.Status == store.Interrupted && row.Code != "":
		return stuckOf(row, row.Code, row.Reason), true
	case owned, l.later[row.ID], l.bulk[row.ID]:
		return Stuck{}, false
	case l.eng.now().Sub(row.UpdatedAt) < unclaimedFor:
		return Stuck{}, false // whoever serves it is about to claim it
	case !l.served(row):
		return l.unservedOf(row), true
	case row.Status == store.Running || row.Status == store.Resuming:
		return stuckOf(row, CodeOrphaned, orphanedReason), true
	}
	return Stuck{}, false
}

func (l *stuckList) served(row *store.Run) bool {
	return slices.ContainsFunc(l.live, func(x store.Executor) bool {
		return !l.idle(x.ID) && store.Serves(x.Serves, row.Workflow, row.Version)
	})
}

// idle reports whether an executor is this one and takes up no run that it was not told
// to, because Recover was not called: the engine of a command, say, which has the code
// and is gone in a moment.
func (l *stuckList) idle(executor string) bool {
	return executor == l.eng.id && !l.eng.claims.recovered.Load()
}

// unservedOf says of a run that nobody alive serves it.
func (l *stuckList) unservedOf(row *store.Run) Stuck {
	here := l.eng.program.defs.find(row.Workflow, row.Version) != nil
	switch {
	case !here:
		return stuckOf(row, CodeNotRegistered, l.eng.program.defs.notServed(row))
	case row.Status == store.Running || row.Status == store.Resuming:
		return stuckOf(row, CodeOrphaned, orphanedReason)
	}
	s := stuckOf(row, CodeNotRegistered, fmt.Sprintf("nobody alive takes up runs of workflow %s: this program has its code, but Recover was not called in it", row.Workflow))
	s.Next = fmt.Sprintf("start the program that calls Recover, or take up this run alone with Engine.Adopt(ctx, %q)", row.ID)
	return s
}

// CodeOrphaned is the code in Stuck of a run whose process is gone. It is no code
// of a run: its row says what it said when the process ended.
const CodeOrphaned = "orphaned"

const orphanedReason = "its process is gone, and no other has taken it over"

// CodeStranded is the code in Stuck of a run that waits for a child which has ended
// without its being told, as Verify says it. It is no code of a run: Resume tells it.
const CodeStranded = "stranded"

// unservedRuns is what this engine knows of runs that nobody alive serves. It looks
// when the set of live executors has changed: it is the last one that leaves who
// strands them, after every Recover has said that nothing is stuck.
type unservedRuns struct {
	eng     *Engine
	looking atomic.Bool // one look at a time
	live    string      // the executors of the last look that came to its end

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
}

// look compares the live executors with those of the beat before and,
// if they are others, says which runs have lost the last executor that serves
// them, once for each workflow and version, and which are served again. It does
// so in the background: a beat may come meanwhile.
func (u *unservedRuns) look(ctx context.Context) {
	e := u.eng
	if !e.claims.recovered.Load() || !u.looking.CompareAndSwap(false, true) {
		return
	}
	compare := func() {
		defer u.looking.Store(false)
		executors, err := e.store.Executors(ctx)
		if err != nil {
			return // the beats say so; the next one looks again
		}
		l := &stuckList{eng: e}
		var ids []string
		for _, x := range executors {
			if x.Live {
				l.live, ids = append(l.live, x), append(ids, x.ID)
			}
		}
		live := strings.Join(ids, " ")
		if live == u.live {
			return
		}
		found, err := l.strandedNow(ctx)
		if err != nil {
			return
		}
		u.live = live
		u.report(found)
	}
	if !e.roster.background(compare) {
		u.looking.Store(false)
	}
}

// strandedNow finds the runs that nobody alive serves, by their code. Those of
// dead executors are read first: one that a recovery parks meanwhile is then found
// among those at rest, and counted once.
func (l *stuckList) strandedNow(ctx context.Context) (map[code]*strandedRuns, error) {
	found := map[code]*strandedRuns{}
	counted := map[string]bool{}
	add := func(f store.Filter) error {
		f.OldestFirst = true
		for row, err := range l.eng.runsOf(ctx, f) {
			if err != nil {
				return err
			}
			if counted[row.ID] || row.Paused || row.Status == store.Interrupted && row.Code != "" && row.Code != CodeNotRegistered || l.served(row) {
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
		}
		return nil
	}
	count := l.eng.store.Count
	orphans, err := count(ctx, store.Filter{Orphaned: true}, "")
	if err == nil && orphans[""] > 0 {
		err = add(store.Filter{Orphaned: true, Statuses: []store.Status{store.Running, store.Resuming}})
	}
	if err != nil {
		return nil, err
	}
	workflows, err := count(ctx, store.Filter{Statuses: restingStatuses}, store.ByWorkflow)
	if err != nil || len(workflows) == 0 {
		return found, err
	}
	filters, err := l.unserved(ctx, workflows)
	for i := range filters {
		if err == nil {
			err = add(filters[i])
		}
	}
	return found, err
}

// report says what has changed since the last look.
func (u *unservedRuns) report(found map[code]*strandedRuns) {
	e := u.eng
	u.mu.Lock()
	before := u.found
	u.found = found
	u.mu.Unlock()
	for c, r := range found {
		if before[c] == nil {
			next := stuckOf(&r.example, CodeNotRegistered, "").Next
			e.log.Warn("durable: runs are stuck: no live executor serves their workflow and version any more", "executor", e.id, "workflow", c.workflow, "version", c.version, "runs", r.runs, "oldest", r.example.ID, "next", next)
		}
	}
	for c := range before {
		if found[c] == nil {
			e.log.Info("durable: runs that were stuck are served again, or have ended", "executor", e.id, "workflow", c.workflow, "version", c.version)
		}
	}
}
