package durable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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

// cleanBatch is how many runs are deleted in one durable act. A batch is whole
// or not at all, and others write in between.
const cleanBatch = 100

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
	c := &cleaning{eng: e, options: o, now: e.now(), counted: map[string]int{}, gone: map[string]bool{}}
	c.keep = e.options.Retention
	if o.Retention != nil {
		c.keep = *o.Retention
		if err := c.keep.check(); err != nil {
			return Cleaned{}, err
		}
	}
	if o.Idle && !o.All {
		return Cleaned{}, fmt.Errorf("durable: CleanOptions.Idle is for All: a run that has not ended has no age: %w", ErrInvalid)
	}
	for _, s := range o.Statuses {
		if !s.Terminal() && !o.Idle {
			return Cleaned{}, fmt.Errorf("durable: Clean deletes runs that have ended, and %s ones have not: %w", s, ErrInvalid)
		}
	}
	if !o.All && !c.keep.active() {
		return Cleaned{}, nil
	}
	if err := c.run(ctx); err != nil {
		return c.did, fmt.Errorf("durable: cleaning up after %d runs: %w", c.did.Runs, storeError(err))
	}
	if c.did.Runs > 0 && !o.DryRun {
		e.log.Info("durable: ended runs deleted", "runs", c.did.Runs, "kept", c.did.Kept)
		if m := store.CapabilitiesOf(e.store).Maintainer; m != nil {
			if err := m.Maintain(ctx); err != nil {
				e.log.Warn("durable: the store could not be maintained after runs were deleted", "error", err)
			}
		}
	}
	return c.did, nil
}

// cleaning is one call of Clean.
type cleaning struct {
	eng     *Engine
	options CleanOptions
	keep    Retention
	now     store.Time
	counted map[string]int  // ended runs by workflow, newest first
	gone    map[string]bool // parents that are deleted, or would be
	orphans []family        // children whose time has come
	batch   []doomed
	live    map[string]bool // executors, with Idle
	did     Cleaned
}

// doomed is a run that is to be deleted as it was looked at.
type doomed struct {
	id    string
	epoch int64
}

// family is a child and its parent.
type family struct {
	child  doomed
	parent string
}

func (c *cleaning) run(ctx context.Context) error {
	f := store.Filter{Statuses: c.options.Statuses, Workflows: c.options.Workflows, WithLast: !c.options.Force && (c.keep.archived() || c.eng.options.Archive != nil)}
	if !c.options.All && c.keep.KeepCount == 0 && len(c.keep.PerWorkflow) == 0 {
		f.EndedTo = c.now.Add(-c.keep.KeepFor) // nobody needs to look at the others
	}
	if len(f.Statuses) == 0 {
		f.Statuses = []store.Status{store.Completed, store.Failed, store.Cancelled}
		if c.options.Idle {
			f.Statuses = append(f.Statuses, store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted)
		}
	}
	if c.options.Idle {
		// Before the runs: who comes later takes a run's epoch, and it stays.
		if err := c.findLive(ctx); err != nil {
			return err
		}
	}
	// Newest first, because the newest are counted: parents come after their
	// children, which therefore wait for the second round.
	for row, err := range c.eng.runsOf(ctx, f) {
		if err != nil {
			return err
		}
		expired, err := c.expired(ctx, row)
		if err != nil {
			return err
		}
		if !expired {
			c.did.Kept++
			continue
		}
		if row.Parent != "" {
			c.orphans = append(c.orphans, family{doomed{row.ID, row.Epoch}, row.Parent})
			continue
		}
		if err := c.add(ctx, doomed{row.ID, row.Epoch}); err != nil {
			return err
		}
	}
	return c.children(ctx)
}

// findLive learns which executors live.
func (c *cleaning) findLive(ctx context.Context) error {
	executors, err := c.eng.store.Executors(ctx)
	c.live = map[string]bool{}
	for i := range executors {
		if executors[i].Live {
			c.live[executors[i].ID] = true
		}
	}
	return err
}

// expired reports whether a run may be deleted, as far as itself is concerned.
func (c *cleaning) expired(ctx context.Context, row *store.Run) (bool, error) {
	r := c.keep.of(row.Workflow)
	if c.options.All {
		if c.live[row.Owner] {
			return false, nil
		}
		awaits, err := c.awaitsArchive(ctx, &r, row)
		return !awaits, err
	}
	if r.KeepFailed && row.Status == store.Failed {
		return false, nil
	}
	c.counted[row.Workflow]++
	// A row without an end is damaged, and not for us to judge.
	old := r.KeepFor > 0 && row.EndedAt != 0 && c.now.Sub(row.EndedAt) > r.KeepFor
	if !old && (r.KeepCount <= 0 || c.counted[row.Workflow] <= r.KeepCount) {
		return false, nil
	}
	awaits, err := c.awaitsArchive(ctx, &r, row)
	return !awaits, err
}

// awaitsArchive reports whether a run is kept because an archive does not have all
// of its log. Of a run that has not ended a copy is as bad as an earlier one: it
// would bring the run back.
func (c *cleaning) awaitsArchive(ctx context.Context, r *Retention, row *store.Run) (bool, error) {
	asked := r.OnlyArchived || c.eng.options.Archive != nil || row.ArchivedSeq > 0
	if c.options.Force || !asked {
		return false, nil
	}
	last := row.Last
	if last == nil && row.ArchivedSeq > 0 {
		// It was archived by a program with an archive, which this one is without.
		h, err := c.eng.store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		if err == nil {
			last = h.Run.Last
		}
	}
	awaits := last == nil || row.ArchivedSeq < last.Seq || !row.Status.Terminal() && row.ArchivedSeq > 0
	if awaits {
		c.did.Unarchived++
	}
	return awaits, nil
}

// children deletes those whose parent is gone, and then theirs.
func (c *cleaning) children(ctx context.Context) error {
	if err := c.flush(ctx); err != nil {
		return err
	}
	for len(c.orphans) > 0 {
		there, err := c.existing(ctx)
		if err != nil {
			return err
		}
		list := c.orphans
		c.orphans = nil
		before := c.did.Runs + len(c.batch)
		for i := range list {
			if there[list[i].parent] && !c.gone[list[i].parent] {
				c.orphans = append(c.orphans, list[i])
				continue
			}
			if err := c.add(ctx, list[i].child); err != nil {
				return err
			}
		}
		if err := c.flush(ctx); err != nil {
			return err
		}
		if c.did.Runs == before && len(c.orphans) == len(list) {
			break // what is left has parents that stay
		}
	}
	c.did.Kept += len(c.orphans)
	return nil
}

// existing returns which parents of the children are there.
func (c *cleaning) existing(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for i := range c.orphans {
		ids[c.orphans[i].parent] = false
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(ids)), cleanBatch) {
		for row, err := range c.eng.runsOf(ctx, store.Filter{IDs: some}) {
			if err != nil {
				return nil, err
			}
			ids[row.ID] = true
		}
	}
	return ids, nil
}

// add puts a run on the list of those to delete.
func (c *cleaning) add(ctx context.Context, run doomed) error {
	c.gone[run.id] = true
	if c.options.DryRun {
		c.did.Runs++
		c.did.IDs = append(c.did.IDs, run.id)
		c.did.Epochs = append(c.did.Epochs, run.epoch)
		return nil
	}
	if c.batch = append(c.batch, run); len(c.batch) < cleanBatch {
		return nil
	}
	return c.flush(ctx)
}

// flush deletes what is on the list.
func (c *cleaning) flush(ctx context.Context) error {
	runs := c.batch
	if c.batch = nil; len(runs) == 0 {
		return nil
	}
	err := c.delete(ctx, runs)
	if err == nil {
		return nil
	}
	// One was resumed, or its id is in use again: the others go by themselves.
	for i := range runs {
		switch err := c.delete(ctx, runs[i:i+1]); {
		case errors.Is(err, store.ErrStatus), errors.Is(err, store.ErrOwned), errors.Is(err, store.ErrFenced):
			delete(c.gone, runs[i].id)
			c.did.Kept++
		case err != nil:
			return err
		}
	}
	return nil
}

// delete deletes runs in one act, if they are what they were when they were
// looked at.
func (c *cleaning) delete(ctx context.Context, runs []doomed) error {
	d := store.Deletion{Force: c.options.Idle}
	for _, r := range runs {
		d.RunIDs, d.Epochs = append(d.RunIDs, r.id), append(d.Epochs, r.epoch)
	}
	n, err := c.eng.store.Delete(ctx, d)
	if err == nil {
		c.deleted(n, d.RunIDs)
	}
	return err
}

func (c *cleaning) deleted(n int, ids []string) {
	c.did.Runs += n
	if c.options.Progress != nil {
		c.options.Progress(ids)
	}
}
