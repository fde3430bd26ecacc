package durable

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/cleaner"
	"github.com/holdfast-dev/holdfast/store"
)

// CleanOptions say what Clean deletes. The zero value applies the engine's
// Options.Retention, which by default keeps everything.
type CleanOptions struct {
	// DryRun: say what would be deleted, and delete nothing.
	DryRun bool
	// Retention to apply instead of the engine's; nil: that.
	Retention *Retention
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
func (e *Engine) Clean(ctx context.Context, o CleanOptions) (Cleaned, error) {
	own := cleaner.Options{
		DryRun: o.DryRun, All: o.All, Idle: o.Idle, Force: o.Force, Statuses: o.Statuses, Workflows: o.Workflows, Progress: o.Progress,
	}
	if o.Retention != nil {
		own.Retention = o.Retention.rules()
	}
	did, err := newCleaner(e).Clean(ctx, own)
	return Cleaned(did), err
}

// newCleaner returns what deletes the ended runs of the engine's store.
func newCleaner(e *Engine) *cleaner.Cleaner {
	return &cleaner.Cleaner{
		Store: e.store, Log: e.log.Logger, Now: e.now, RunsOf: e.runsOf, StoreError: storeError,
		Retention: e.options.Retention.rules(), Archives: e.options.Archive != nil,
	}
}
