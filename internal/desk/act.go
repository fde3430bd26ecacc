package desk

import (
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// An Act is what an operator, or recovery, does to a run that nobody executes:
// one event, or a few, and what goes with it, in one change.
type Act struct {
	From    []store.Status // the run is in one of these
	Event   store.Event    // without number, time and sum
	Then    []store.Event  // what follows it in the same change
	Undone  int32          // steps that count as done no more, without a cut
	Row     *store.RowPatch
	Hold    []string // exclusive keys to take
	Release bool     // free all of them
	Send    []store.Message

	// Cut, if set, leaves part of the history behind: the event is the first on
	// a new branch, which becomes the current one.
	Cut *history.BranchCut
}
