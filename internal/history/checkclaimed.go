package history

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// CheckRow returns why an execution, or other code that acts on the run, must not
// trust this row; nil if it may. The fields that decide what the run does must be
// those that its history has. born is what began the generation, and branches are
// those of the same moment or later.
//
// The version is not among them: Reconcile mends it (E2), and an execution compares it
// with the code it is about to run; see CheckVersion.
func (p *Past) CheckRow(row *store.Run, branches []store.Branch, born *Beginning) error {
	no := func(what string, have, want any) error {
		return &Damage{RunID: row.ID, Err: fmt.Errorf("its row was changed: its %s is %v there, and %v in its history", what, have, want)}
	}
	if row.Branch != 0 && !slices.ContainsFunc(branches, func(b store.Branch) bool { return b.N == row.Branch }) {
		return &Damage{RunID: row.ID, Err: fmt.Errorf("its row was changed: it is on branch %d, of which there is no record", row.Branch)}
	}
	if err := p.checkBranches(row.ID, branches); err != nil {
		return err
	}
	if row.Generation != born.Generation {
		return no("generation", row.Generation, born.Generation)
	}
	if paused, known := p.pausedNow(); known && paused && !row.Paused && !row.Status.Terminal() {
		return &Damage{RunID: row.ID, Err: errors.New("its row was changed: it is not paused there, and its history says that it is")}
	}
	if id := born.Run; id != nil {
		switch {
		case row.Workflow != id.Workflow:
			return no("workflow", quoted(row.Workflow), quoted(id.Workflow))
		case row.InitialVersion != id.Version:
			return no("initial version", quoted(row.InitialVersion), quoted(id.Version))
		case row.Parent != id.Parent:
			return no("parent", quoted(row.Parent), quoted(id.Parent))
		case row.ParentKey != id.ParentKey:
			return no("parent key", quoted(row.ParentKey), quoted(id.ParentKey))
		}
	}
	return nil
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// CheckVersion returns why code of this version must not execute the run; nil if it
// may. A run that is pinned to no version goes with any.
func (p *Past) CheckVersion(id, version string, born *Beginning) error {
	if born.Run == nil {
		return nil // an earlier version of this library has begun it
	}
	want := born.Run.pinned()
	if p.Repinned != "" {
		want = p.Repinned
	}
	if want == "" || want == version {
		return nil
	}
	return &Damage{RunID: id, Err: fmt.Errorf("its row was changed: its version is %q there, and %q in its history", version, want)}
}

// CheckCancel returns why the row must not be believed when it says that a cancel was
// asked for; nil if it may. Row and inbox are of one moment, and the inbox lacks
// nothing that the generation has to look at.
//
// A row that denies a cancel does no harm, because the message is there and is read.
func (p *Past) CheckCancel(row *store.Run, inbox []store.Message) error {
	if !row.CancelAsked || p.cancelAsked(inbox) {
		return nil
	}
	return &Damage{RunID: row.ID, Err: errors.New("its row was changed: it says that a cancel was asked for, and its inbox has none")}
}

// checkBranches returns why the records of branches must not be believed; nil if they
// may. They decide of which events a history consists.
func (p *Past) checkBranches(id string, branches []store.Branch) error {
	for _, b := range p.cuts {
		if err := checkCut(branches, b); err != nil {
			return &Damage{RunID: id, Err: err}
		}
	}
	return nil
}
