package durable

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// An act is what an operator, or recovery, does to a run that nobody executes:
// one event and what goes with it, in one change.
type act struct {
	from    []store.Status // the run is in one of these
	event   store.Event    // without number, time and sum
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
	steps  int32 // done in what is kept
}

// operate carries out an act: it takes the epoch and gives it up again in the
// same change, so that of two at once one wins. row needs its Last, and branches
// all that the run has when there is a cut. It returns the branch the run is on.
func (e *Engine) operate(ctx context.Context, row *store.Run, branches []store.Branch, a act) (int32, error) {
	if row.Last == nil {
		return row.Branch, &DamagedError{RunID: row.ID, Err: errors.New("it has no event")}
	}
	change := store.Change{
		RunID:  row.ID,
		Expect: store.Expect{Epoch: row.Epoch, TakeEpoch: true, Statuses: a.from},
		Row:    a.row, Release: a.release, Hold: a.hold, Send: a.send, Yield: true,
	}
	last, ev, on := row.Last, a.event, row.Branch
	ev.Steps, ev.Active = last.Steps, last.Active
	if a.cut != nil {
		on = nextBranch(branches)
		change.Branch = &store.Branch{
			N: on, Parent: row.Branch, Generation: row.Generation, Cutoff: a.cut.after, CutScope: a.cut.scope,
			Reason: a.cut.reason, CreatedAt: e.now(),
		}
		change.Row = (&store.RowPatch{Branch: &on}).Over(a.row)
		ev.Steps = a.cut.steps
	}
	ev.Seq, ev.Branch, ev.At = last.Seq+1, on, max(last.At, e.now())
	ev.Payload = e.seal(placeOf(row.ID, &ev), ev.Payload)
	ev.Sum = store.Seal(row.ID, last.Sum, &ev)
	change.Events = []store.Event{ev}
	for i := range change.Send {
		e.sealMessage(&change.Send[i])
	}
	for tries := 0; ; tries++ {
		err := e.store.Commit(ctx, []store.Change{change})[0]
		if !errors.Is(err, store.ErrUnknown) || ctx.Err() != nil || tries == 20 {
			return on, err
		}
		sleep(ctx, 50*time.Millisecond)
	}
}

// nextBranch returns the number of a run's next branch.
func nextBranch(branches []store.Branch) int32 {
	n := int32(0)
	for i := range branches {
		n = max(n, branches[i].N)
	}
	return n + 1
}
