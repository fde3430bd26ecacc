package durable

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// An act is what an operator, or recovery, does to a run that nobody executes:
// one event, or a few, and what goes with it, in one change.
type act struct {
	from    []store.Status // the run is in one of these
	event   store.Event    // without number, time and sum
	then    []store.Event  // what follows it in the same change
	undone  int32          // steps that count as done no more, without a cut
	row     *store.RowPatch
	hold    []string // exclusive keys to take
	release bool     // free all of them
	send    []store.Message

	// cut, if set, leaves part of the history behind: the event is the first on
	// a new branch, which becomes the current one.
	cut *branchCut
}

// branchCut is where a new branch begins.
type branchCut struct {
	after  int64  // the last event that is kept
	scope  string // only what is in this scope is left behind; empty: everything
	reason string
	least  int32 // that the branch's number is; 0: the next one
	steps  int32 // done in what is kept
}

// operate carries out an act: it takes the epoch and gives it up again in the
// same change, so that of two at once one wins. row needs its Last, and branches
// all that the run has when there is a cut. It returns the branch the run is on.
func (e *Engine) operate(ctx context.Context, row *store.Run, branches []store.Branch, a act) (int32, error) {
	if row.Last == nil {
		return row.Branch, &DamagedError{RunID: row.ID, Err: ErrNoHistory}
	}
	change := store.Change{
		RunID:  row.ID,
		Expect: store.Expect{Epoch: row.Epoch, TakeEpoch: true, Statuses: a.from},
		Row:    a.row, Release: a.release, Hold: a.hold, Send: a.send, Yield: true,
	}
	last, on, steps := row.Last, row.Branch, row.Last.Steps-a.undone
	if a.cut != nil {
		on = max(nextBranch(branches), a.cut.least)
		change.Branch = &store.Branch{
			N: on, Parent: row.Branch, Generation: row.Generation, Cutoff: a.cut.after, CutScope: a.cut.scope,
			Reason: a.cut.reason, CreatedAt: e.now(),
		}
		change.Row = (&store.RowPatch{Branch: &on}).Over(a.row)
		steps = a.cut.steps
	}
	head, at := logHead{seq: last.Seq, sum: last.Sum, branch: on}, max(last.At, e.now())
	change.Row = endsAt(change.Row, at)
	if change.Branch != nil {
		data, err := history.WithCut(a.event.Data, change.Branch, last.Sum)
		if err != nil {
			return row.Branch, err
		}
		a.event.Data = data
	}
	for _, ev := range append([]store.Event{a.event}, a.then...) {
		if history.IsStepOutcome(&ev) {
			steps++
		}
		ev.At, ev.Steps, ev.Active = at, steps, last.Active
		head.appendSealed(e.sealer, row.ID, &ev)
		change.Events = append(change.Events, ev)
	}
	for i := range change.Send {
		e.sealMessage(&change.Send[i])
	}
	err := e.commitOne(ctx, change)
	if err == nil && change.Row != nil && change.Row.Status != nil {
		e.archiver.want(row.ID, *change.Row.Status)
		if status := *change.Row.Status; status.Terminal() && !row.Status.Terminal() {
			e.metrics.countEnd(startContext(row), row, status, at)
		}
	}
	return on, err
}

// nextBranch returns the number of a run's next branch.
func nextBranch(branches []store.Branch) int32 {
	n := int32(0)
	for i := range branches {
		n = max(n, branches[i].N)
	}
	return n + 1
}
