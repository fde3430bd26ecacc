package commit

import (
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// An Act is what an operator, or recovery, does to a run that is not executed: one event or
// a few, and everything that goes with them, in one change.
type Act struct {
	From     []store.Status // the run is in one of these
	Event    store.Event    // without number, time and sum
	Then     []store.Event  // what follows it in the same change
	Undone   int32          // steps that no longer count as done, without a cut
	Row      *store.RowPatch
	Hold     []string // exclusive keys to take
	Release  bool     // free all of them
	Send     []store.Message
	NoCancel bool // it is refused with store.ErrCancelAsked once a cancel was requested

	// Cut, if set, leaves part of the history behind: the event is the first on
	// a new branch, which becomes the current one.
	Cut *history.BranchCut
}

// Change forms the change that carries out the act at a time. It takes the epoch and
// gives it up again, so that one of two simultaneous acts wins. row needs its Last; if
// there is a cut, branches must be all of the run's. The returned branch is the one that
// the run is on afterwards. For a run without a last event the error is a
// *history.Damage.
func (a Act) Change(row *store.Run, branches []store.Branch, now store.Time, sealer *payload.Sealer) (change store.Change, branch int32, err error) {
	if row.Last == nil {
		return change, row.Branch, &history.Damage{RunID: row.ID, Err: history.ErrNoHistory}
	}
	change = store.Change{
		RunID:  row.ID,
		Expect: store.Expect{Epoch: row.Epoch, TakeEpoch: true, NoCancel: a.NoCancel, Statuses: a.From},
		Row:    a.Row, Release: a.Release, Hold: a.Hold, Send: a.Send, Yield: true,
	}
	last, branch, steps := row.Last, row.Branch, row.Last.Steps-a.Undone
	if a.Cut != nil {
		branch = max(history.NextBranch(branches), a.Cut.Least)
		change.Branch = &store.Branch{
			N: branch, Parent: row.Branch, Generation: row.Generation, Cutoff: a.Cut.After, CutScope: a.Cut.Scope,
			Reason: a.Cut.Reason, CreatedAt: now,
		}
		change.Row = (&store.RowPatch{Branch: &branch}).Over(a.Row)
		steps = a.Cut.Steps
	}
	head, at := Head{Seq: last.Seq, Sum: last.Sum, Branch: branch}, max(last.At, now)
	change.Row = EndsAt(change.Row, at)
	if change.Branch != nil {
		data, err := history.WithCut(a.Event.Data, change.Branch, last.Sum)
		if err != nil {
			return change, row.Branch, err
		}
		a.Event.Data = data
	}
	for _, ev := range append([]store.Event{a.Event}, a.Then...) {
		if history.IsStepOutcome(&ev) {
			steps++
		}
		ev.At, ev.Steps, ev.Active = at, steps, last.Active
		head.AppendSealed(sealer, row.ID, &ev)
		change.Events = append(change.Events, ev)
	}
	for i := range change.Send {
		SealMessage(sealer, &change.Send[i])
	}
	return change, branch, nil
}

// SealMessage seals the payload of a message that is about to be sent, and then the
// message.
func SealMessage(sealer *payload.Sealer, m *store.Message) {
	m.Payload = sealer.Seal(payload.PlaceOfMessage(m.To, m), m.Payload)
	m.Data = history.WithSum(m)
}

// Claimable returns the patch of a run that any executor serving it may continue.
func Claimable() *store.RowPatch {
	interrupted, none, no := store.Interrupted, "", false
	return &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none, Recoverable: &no, EndedAt: new(store.Time), WakeAt: new(store.Time), Strikes: new(int32)}
}
