package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/cleaner"
	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// CleanOptions say what Clean deletes. The zero value applies the engine's
// durable.Options.Retention, which by default keeps everything.
type CleanOptions struct {
	// DryRun: say what would be deleted, and delete nothing.
	DryRun bool
	// Retention to apply instead of the engine's; nil: that.
	Retention *durable.Retention
	// All deletes every ended run, whatever its age and number. What an archive
	// is still to get stays all the same, as under a Retention: with
	// Options.Archive, and where the Retention that would apply says OnlyArchived.
	All bool
	// Idle, with All, deletes also runs that have not ended, if no live executor
	// has them: pending, waiting, interrupted ones, and those whose process is
	// gone. An archive gets a run when it waits or ends, so that most others stay
	// where there is one.
	Idle bool
	// Force deletes also what is not archived yet: its log is then nowhere. And it
	// deletes, with Idle, what an archive has a copy of that says that the run has
	// not ended: archive.RestoreWaiting then brings it back.
	Force bool
	// Statuses of the runs that are looked at; empty: completed, failed and
	// cancelled, and with Idle all.
	Statuses []store.Status
	// Workflows that are looked at; empty: all.
	Workflows []string
	// Progress, if set, hears of each batch of runs that is gone.
	Progress func(runIDs []string)
}

// Cleaned is what Clean did, or with DryRun would do.
type Cleaned struct {
	// Runs that were deleted. Somebody else may have been faster with some.
	Runs int
	// Kept is how many runs were looked at and stay. Where age alone decides, the
	// younger ones are not looked at. Unarchived of them stay because an archive
	// is still to get them, or has a copy of them that says that they have not
	// ended. Cancel such a run, and Clean deletes it once the archive knows.
	Kept       int
	Unarchived int
	// IDs of the runs, and the epochs they have, with DryRun only. Together they
	// make a store.Deletion of what was looked at and of nothing else.
	IDs    []string
	Epochs []int64
}

// Clean deletes runs that have ended, each as a whole with its events, inbox and
// branches; no event is ever deleted singly, a run that has not ended only with
// CleanOptions.Idle, and one that has a live owner never. A child is kept as long as its parent is: it is deleted
// with it, or later when its own time has come. After many deletions the
// store is given some care (store.Maintainer).
//
// It may be called at any time by any number of processes, killed at any moment
// and called again. An id that is free again can be used for a new run, which is
// never taken for the old one; neither is a run that somebody has resumed since,
// however that has ended. The error says that the store could not be reached; what
// Cleaned counts is gone by then.
func (op *Operator) Clean(ctx context.Context, o CleanOptions) (Cleaned, error) {
	did, err := op.desk.Clean(ctx, cleaner.Options{
		DryRun: o.DryRun, All: o.All, Idle: o.Idle, Force: o.Force, Statuses: o.Statuses, Workflows: o.Workflows, Progress: o.Progress,
	}, o.Retention)
	return Cleaned(did), err
}

// KeyUse says how much of a store is encrypted with one key.
type KeyUse struct {
	// KeyID as Keys has it; empty: what is stored in clear.
	KeyID string
	// Runs that hold payloads under this key, and how many of them have not
	// ended and need it to go on.
	Runs, Unfinished int
	// Payloads of events and messages, on all branches and in all generations.
	Payloads int
}

// KeysInUse reads the runs that match and says with which keys their payloads
// are encrypted, sorted by id. No recorded payload is ever encrypted anew, so a
// key that was rotated out stays needed until the last run that has used it is
// deleted (Clean): it may be taken out of Options.Encrypt once it is in no KeyUse
// of a call with an empty filter, and no engine has it as its current key any more.
//
// It needs no key, since it decrypts nothing; it changes nothing; and it reads
// every payload, which takes as long as VerifyAll. Payloads that are damaged
// beyond telling are not counted: Verify tells of them. A run that is deleted
// meanwhile is passed over. The error is about the reading.
func (op *Operator) KeysInUse(ctx context.Context, f store.Filter) ([]KeyUse, error) {
	use := map[string]*KeyUse{}
	for row, err := range op.desk.Runs(ctx, f) {
		if err != nil {
			return nil, fmt.Errorf("durable: looking for keys: listing runs: %w", storeError(err))
		}
		counts, err := op.keysOf(ctx, row.ID)
		if err != nil {
			return nil, fmt.Errorf("durable: looking for keys: run %s: %w", row.ID, storeError(err))
		}
		for id, n := range counts {
			if use[id] == nil {
				use[id] = &KeyUse{KeyID: id}
			}
			use[id].Runs++
			use[id].Payloads += n
			if !row.Status.Terminal() {
				use[id].Unfinished++
			}
		}
	}
	list := make([]KeyUse, 0, len(use))
	for _, u := range use {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b KeyUse) int { return cmp.Compare(a.KeyID, b.KeyID) })
	return list, nil
}

// keysOf counts the payloads of a run by the id of their key.
func (op *Operator) keysOf(ctx context.Context, id string) (map[string]int, error) {
	counts := map[string]int{}
	h, err := op.store.Load(ctx, id, store.Cursor{All: true})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) {
		return counts, nil
	}
	if err != nil {
		return nil, err
	}
	look := func(payload []byte) {
		if len(payload) == 0 {
			return
		}
		if env, err := envelope.Open(payload); err == nil {
			counts[env.KeyID]++
		}
	}
	for i := range h.Inbox {
		look(h.Inbox[i].Payload)
	}
	for ev, err := range h.Events {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			return counts, nil
		case err != nil:
			return nil, err
		}
		look(ev.Payload)
	}
	return counts, nil
}
