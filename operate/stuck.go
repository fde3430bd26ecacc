package operate

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// CodeOrphaned is the code in Stuck of a run whose process is gone. It is no code
// of a run: its row says what it said when the process ended.
const CodeOrphaned = stuck.CodeOrphaned

// unclaimedFor is after which time a run that anybody who serves it may claim
// counts as one that nobody serves. Where no live executor serves it that is known at once.
const unclaimedFor = 5 * time.Second

// stuckPage is how many rows are read at a time.
const stuckPage = 1000

// Stuck lists the runs that cannot go on by themselves, with the reason and what
// to do: those that were parked, paused or quarantined, those whose executor is
// gone, those whose code nobody alive has, those of this executor whose row the store
// cannot read, and those that wait for a child of which they will not hear. It changes nothing, and returns at most limit of each kind; 0: all.
//
// The last kind takes a look at every waiting run, of which there may be very many, and
// finds those whose last event has started the child; Verify finds the others. With a
// limit it is left out while more runs wait than that.
//
// Error: durable.ErrUnavailable.
func (op *Operator) Stuck(ctx context.Context, limit int) ([]durable.Stuck, error) {
	l, err := op.listStuck(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("durable: listing stuck runs: %w", storeError(err))
	}
	return l.found, nil
}

// stuckList is a listing under way.
type stuckList struct {
	op       *Operator
	limit    int
	live     *stuck.Live
	seen     map[string]bool
	deferred map[string]bool // go on here when there is room
	found    []durable.Stuck
}

func (op *Operator) listStuck(ctx context.Context, limit int) (*stuckList, error) {
	live, err := op.live(ctx)
	if err != nil {
		return nil, err
	}
	l := &stuckList{op: op, limit: limit, live: live, seen: map[string]bool{}, deferred: op.desk.Deferred()}
	kinds, err := l.kinds(ctx)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if err := l.add(ctx, kind); err != nil {
			return nil, err
		}
	}
	for _, s := range op.desk.Unreadable() {
		if !l.seen[s.RunID] && (limit == 0 || len(l.found) < limit) {
			l.take(s)
		}
	}
	return l, l.addUnheard(ctx)
}

// take puts a run on the list.
func (l *stuckList) take(s stuck.Run) {
	l.seen[s.RunID] = true
	l.found = append(l.found, durable.Stuck(s))
}

// kinds returns what selects each kind of stuck runs. Kinds of which the store has
// none, mostly all, are left out: a listing that finds nothing may have looked at
// every run. What says that there are none counts no more runs than it must: those
// that have completed, mostly all, are in none of these counts.
func (l *stuckList) kinds(ctx context.Context) ([][]store.Filter, error) {
	count := l.op.store.Count
	quarantined := store.Filter{Statuses: []store.Status{store.Failed}, Codes: []string{durable.CodeQuarantined}}
	failed, err := count(ctx, quarantined, "")
	if err != nil {
		return nil, err
	}
	var kinds [][]store.Filter
	if failed[""] > 0 {
		kinds = append(kinds, []store.Filter{quarantined})
	}
	// Those that rest are mostly about to be claimed.
	kinds = append(kinds, []store.Filter{{Statuses: []store.Status{store.Running, store.Resuming}, Orphaned: true, WithLast: true}},
		[]store.Filter{{Statuses: stuck.Resting, Orphaned: true, WithLast: true}})
	// An import of a completed run that did not finish: it looks as if it ran, and has no owner.
	importing := store.Filter{Statuses: []store.Status{store.Running}, Codes: []string{durable.CodeImporting}}
	half, err := count(ctx, importing, "")
	if err != nil {
		return nil, err
	}
	if half[""] > 0 {
		kinds = append(kinds, []store.Filter{importing})
	}
	all, err := stuck.KindsOf(ctx, l.op.store)
	if err != nil || len(all) == 0 {
		return kinds, err
	}
	kinds = append(kinds, []store.Filter{{Statuses: stuck.Resting, Paused: true}})
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
	// Last: of a run that has another reason, too, that one is told.
	return append(kinds, l.live.Unserved(all)), nil
}

// live returns the executors that take up runs.
func (op *Operator) live(ctx context.Context) (*stuck.Live, error) {
	executors, err := op.store.Executors(ctx)
	if err != nil {
		return nil, err
	}
	idle := ""
	if !op.desk.Recovered() {
		idle = op.desk.ID()
	}
	return stuck.LiveOf(executors, idle), nil
}

// add looks at the runs of one kind, which filters together select. Of those that
// only lack somebody to claim them it looks at the oldest: more of them may wait for
// room, and none that nobody can claim stays young.
func (l *stuckList) add(ctx context.Context, kind []store.Filter) error {
	n, seen := 0, 0
	for _, f := range kind {
		f.OldestFirst = true
		claimable := f.WithLast && !f.Orphaned || f.Orphaned && l.limit > 0 && !slices.Contains(f.Statuses, store.Running)
		if l.limit > 0 {
			f.Limit = min(l.limit+1, stuckPage) // as many as are wanted, mostly
		}
		for row, err := range l.op.desk.Runs(ctx, f) {
			if err != nil {
				return err
			}
			if seen++; l.limit > 0 && n >= l.limit || claimable && seen > stuckPage {
				return nil
			}
			if f.WithLast && row.Last == nil && row.Code == "" {
				// It cannot be claimed: there is nothing to go on after.
				row.Status, row.Code, row.Reason = store.Interrupted, durable.CodeDamaged, durable.ErrNoHistory.Error()
			}
			if s, yes := l.look(row); yes && !l.seen[row.ID] {
				l.take(s)
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
		some := waiting
		some.Limit, some.WithLast = l.limit, false
		page, err := l.op.store.List(ctx, some)
		if err != nil || page.Next != "" {
			return err
		}
	}
	return l.op.desk.EachUnheard(ctx, l.resting(l.op.desk.Runs(ctx, waiting)), func(row *store.Run, lost *desk.Unheard) {
		if l.seen[row.ID] || l.limit > 0 && len(l.seen) >= l.limit {
			return
		}
		l.take(stuck.Unheard(row, lost.Child == nil, lost.Text, lost.Advice))
	})
}

// resting yields those of the runs that are not on the list and that nothing has
// happened to of late.
func (l *stuckList) resting(runs iter.Seq2[*store.Run, error]) iter.Seq2[*store.Run, error] {
	return func(yield func(*store.Run, error) bool) {
		for row, err := range runs {
			if err == nil && (l.seen[row.ID] || l.op.desk.Now().Sub(row.UpdatedAt) < unclaimedFor) {
				continue
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// look says whether a run is stuck, as far as its row tells.
func (l *stuckList) look(row *store.Run) (s stuck.Run, yes bool) {
	young := l.op.desk.Now().Sub(row.UpdatedAt) < unclaimedFor
	switch {
	case row.Code == durable.CodeImporting && young:
		return s, false // it is being imported
	case row.Code == durable.CodeImporting:
		return stuck.Of(row, row.Code, row.Reason), true
	case row.Paused:
		return stuck.Paused(row), true
	case row.Status == store.Failed, row.Status == store.Interrupted && row.Code != "":
		return stuck.Of(row, row.Code, row.Reason), true
	case l.live.Has(row.Owner), l.deferred[row.ID]:
		return s, false
	case young && l.live.Serves(row):
		return s, false // an executor that serves it is about to claim it
	case !l.live.Serves(row):
		return l.unserved(row), true
	case row.Status == store.Running || row.Status == store.Resuming:
		return stuck.Orphaned(row), true
	}
	return s, false
}

// unserved says of a run that nobody alive serves it.
func (l *stuckList) unserved(row *store.Run) stuck.Run {
	_, here := l.op.desk.Steps(row)
	switch {
	case l.live.HasCode(row):
		return l.live.OfQueue(row)
	case !here:
		return stuck.Of(row, durable.CodeNotRegistered, l.op.desk.NotServed(row))
	case row.Status == store.Running || row.Status == store.Resuming:
		return stuck.Orphaned(row)
	}
	s := stuck.Of(row, durable.CodeNotRegistered, fmt.Sprintf("nobody alive takes up runs of workflow %s: this program has its code, but Recover was not called in it", row.Workflow))
	s.Next = fmt.Sprintf("start the program that calls Recover, or take up this run alone with Engine.Adopt(ctx, %q)", row.ID)
	return s
}
