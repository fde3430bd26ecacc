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
	// Retention to apply instead of the engine's; nil: the engine's.
	Retention *durable.Retention
	// All deletes every ended run, whatever its age and number. Runs that an
	// archive has yet to get still stay, as under a Retention: with
	// Options.Archive, and where the Retention that would apply says OnlyArchived.
	All bool
	// Idle, with All, also deletes runs that have not ended, if no live executor
	// has them: pending, waiting and interrupted ones, and those whose process is
	// gone. An archive gets a run when it waits or ends, so if there is an archive
	// most other runs stay.
	Idle bool
	// Force also deletes runs that are not archived yet: their logs are then lost.
	// With Idle it also deletes runs whose archived copy says that they have not
	// ended: archive.RestoreWaiting then brings them back.
	Force bool
	// Statuses of the runs to consider; empty: completed, failed and cancelled, and
	// with Idle all.
	Statuses []store.Status
	// Workflows to consider; empty: all.
	Workflows []string
	// Progress, if set, is called with each deleted batch of runs.
	Progress func(runIDs []string)
}

// Cleaned is what Clean did, or with DryRun would do.
type Cleaned struct {
	// Runs is how many runs this call deleted. Another caller may have deleted some
	// first.
	Runs int
	// Kept is how many of the considered runs stay. If age alone decides, younger
	// runs are not considered. Unarchived of them stay because an archive has yet
	// to get them, or has a copy that says that they have not ended. Cancel such a
	// run, and Clean deletes it once the archive has the new state.
	Kept       int
	Unarchived int
	// IDs of the runs, and their epochs, with DryRun only. Together they make a
	// store.Deletion of exactly the runs that were considered.
	IDs    []string
	Epochs []int64
}

// Clean deletes runs that have ended, each as a whole with its events, inbox and
// branches; it never deletes a single event, it deletes a run that has not ended only
// with CleanOptions.Idle, and it never deletes a run with a live owner. A child is
// kept as long as its parent: it is deleted with the parent, or later when it expires
// itself. After many deletions Clean runs the store's maintenance (store.Maintainer).
//
// It may be called at any time by any number of processes, killed at any moment
// and called again. A freed id can be used for a new run, which is never taken for
// the old one; neither is a run that was resumed since, however that ended. The
// error is durable.ErrUnavailable; the runs that Cleaned counts are gone by then.
func (op *Operator) Clean(ctx context.Context, o CleanOptions) (Cleaned, error) {
	if err := op.desk.OutsideFunction(ctx, "Clean"); err != nil {
		return Cleaned{}, err
	}
	did, err := op.desk.Clean(ctx, cleaner.Options{
		DryRun: o.DryRun, All: o.All, Idle: o.Idle, Force: o.Force, Statuses: o.Statuses, Workflows: o.Workflows, Progress: o.Progress,
	}, o.Retention)
	return Cleaned(did), err
}

// KeyUse says how much of a store is encrypted with one key.
type KeyUse struct {
	// KeyID is the id in Keys; empty: payloads stored in clear.
	KeyID string
	// Runs that hold payloads under this key, and how many of them have not
	// ended and need it to go on.
	Runs, Unfinished int
	// Payloads of events and messages, on all branches and in all generations.
	Payloads int
	// Schedules whose input is stored under this key, whatever the filter says of runs. An
	// engine that declares one stores it under its current key when it opens.
	Schedules int
}

// KeysInUse reads the matching runs and says with which keys their payloads are
// encrypted, sorted by id. No recorded payload is ever re-encrypted, so a key that
// was rotated out stays needed until the last run that used it is deleted (Clean).
// It may be removed from Options.Encrypt once a call with an empty filter returns
// no KeyUse for it, and no engine has it as its current key any more.
//
// It needs no key, because it decrypts nothing, and it changes nothing. It reads
// every payload, which takes as long as VerifyAll. It does not count payloads that
// are too damaged to tell; Verify reports them. It skips a run that is deleted
// meanwhile. The error is about the reading.
//
// Error: durable.ErrUnavailable.
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
	scheduled, err := op.keysOfSchedules(ctx)
	if err != nil {
		return nil, err
	}
	for id, n := range scheduled {
		if use[id] == nil {
			use[id] = &KeyUse{KeyID: id}
		}
		use[id].Schedules = n
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
