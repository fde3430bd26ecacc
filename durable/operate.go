package durable

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/desk"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// operate carries out an act: it takes the epoch and gives it up again in the
// same change, so that of two at once one wins. row needs its Last, and branches
// all that the run has when there is a cut. It returns the branch the run is on.
func (e *Engine) operate(ctx context.Context, row *store.Run, branches []store.Branch, a desk.Act) (int32, error) {
	if row.Last == nil {
		return row.Branch, &DamagedError{RunID: row.ID, Err: ErrNoHistory}
	}
	change := store.Change{
		RunID:  row.ID,
		Expect: store.Expect{Epoch: row.Epoch, TakeEpoch: true, Statuses: a.From},
		Row:    a.Row, Release: a.Release, Hold: a.Hold, Send: a.Send, Yield: true,
	}
	last, on, steps := row.Last, row.Branch, row.Last.Steps-a.Undone
	if a.Cut != nil {
		on = max(history.NextBranch(branches), a.Cut.Least)
		change.Branch = &store.Branch{
			N: on, Parent: row.Branch, Generation: row.Generation, Cutoff: a.Cut.After, CutScope: a.Cut.Scope,
			Reason: a.Cut.Reason, CreatedAt: e.now(),
		}
		change.Row = (&store.RowPatch{Branch: &on}).Over(a.Row)
		steps = a.Cut.Steps
	}
	head, at := commit.Head{Seq: last.Seq, Sum: last.Sum, Branch: on}, max(last.At, e.now())
	change.Row = commit.EndsAt(change.Row, at)
	if change.Branch != nil {
		data, err := history.WithCut(a.Event.Data, change.Branch, last.Sum)
		if err != nil {
			return row.Branch, err
		}
		a.Event.Data = data
	}
	for _, ev := range append([]store.Event{a.Event}, a.Then...) {
		if history.IsStepOutcome(&ev) {
			steps++
		}
		ev.At, ev.Steps, ev.Active = at, steps, last.Active
		head.AppendSealed(e.sealer, row.ID, &ev)
		change.Events = append(change.Events, ev)
	}
	for i := range change.Send {
		e.mailroom.seal(&change.Send[i])
	}
	err := e.commitOne(ctx, change)
	if err == nil && change.Row != nil && change.Row.Status != nil {
		e.archiver.Want(row.ID, *change.Row.Status)
		if status := *change.Row.Status; status.Terminal() && !row.Status.Terminal() {
			e.metrics.OrphanEnded(row, status, at)
		}
	}
	return on, err
}
