package cleaner

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// batchSize is how many runs one durable act deletes. A batch is deleted as a
// whole or not at all, and others can write between batches.
const batchSize = 100

// cleaning is one call of Clean.
type cleaning struct {
	*Cleaner
	options Options
	keep    *Retention
	now     store.Time
	counted map[string]int  // ended runs by workflow, newest first
	gone    map[string]bool // parents that are deleted, or would be
	orphans []family        // expired children
	batch   []doomed
	live    map[string]bool // executors, with Idle
	did     Result
}

// doomed is a run to delete, as it was when it was read.
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
	f := store.Filter{Statuses: c.options.Statuses, Workflows: c.options.Workflows, WithLast: !c.options.Force && (c.keep.archived() || c.Archives)}
	if !c.options.All && c.keep.KeepCount == 0 && len(c.keep.perWorkflow) == 0 {
		// The others are too young. A run that ended by then was created by then; where
		// clocks differ by more than the run took, it is deleted a little later.
		f.EndedTo = c.now.Add(-c.keep.KeepFor)
		f.CreatedTo = f.EndedTo
	}
	if len(f.Statuses) == 0 {
		f.Statuses = []store.Status{store.Completed, store.Failed, store.Cancelled}
		if c.options.Idle {
			f.Statuses = append(f.Statuses, store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted)
		}
	}
	if c.options.Idle {
		// Before the runs: an executor that appears later raises a run's epoch,
		// and the run stays.
		if err := c.findLive(ctx); err != nil {
			return err
		}
	}
	// Newest first, because the newest are counted. Parents come after their
	// children, so the children wait for the second round.
	for row, err := range c.RunsOf(ctx, f) {
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

// findLive finds out which executors are live.
func (c *cleaning) findLive(ctx context.Context) error {
	executors, err := c.Store.Executors(ctx)
	c.live = map[string]bool{}
	for i := range executors {
		if executors[i].Live {
			c.live[executors[i].ID] = true
		}
	}
	return err
}

// expired reports whether a run may be deleted, regardless of its parent.
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
	// A row without an end time is damaged and is left alone.
	old := r.KeepFor > 0 && row.EndedAt != 0 && c.now.Sub(row.EndedAt) > r.KeepFor
	if !old && (r.KeepCount <= 0 || c.counted[row.Workflow] <= r.KeepCount) {
		return false, nil
	}
	awaits, err := c.awaitsArchive(ctx, &r, row)
	return !awaits, err
}

// awaitsArchive reports whether a run is kept because an archive does not have all
// of its log. A copy from before the run ended is not enough: it would bring the
// run back.
func (c *cleaning) awaitsArchive(ctx context.Context, r *Retention, row *store.Run) (bool, error) {
	asked := r.OnlyArchived || c.Archives || row.ArchivedSeq > 0
	if c.options.Force || !asked {
		return false, nil
	}
	last := row.Last
	if last == nil && row.ArchivedSeq > 0 {
		// A program with an archive archived it; this program has none.
		h, err := c.Store.Load(ctx, row.ID, store.Cursor{NoEvents: true})
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

// children deletes the children whose parent is gone, and then their children.
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
			break // the remaining children have parents that stay
		}
	}
	c.did.Kept += len(c.orphans)
	return nil
}

// existing returns which of the children's parents exist.
func (c *cleaning) existing(ctx context.Context) (map[string]bool, error) {
	ids := map[string]bool{}
	for i := range c.orphans {
		ids[c.orphans[i].parent] = false
	}
	for some := range slices.Chunk(slices.Collect(maps.Keys(ids)), batchSize) {
		for row, err := range c.RunsOf(ctx, store.Filter{IDs: some}) {
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
	if c.batch = append(c.batch, run); len(c.batch) < batchSize {
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
	// One was resumed, or its id is in use again: delete the others one by one.
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

// delete deletes runs in one act, if they are unchanged since they were read.
func (c *cleaning) delete(ctx context.Context, runs []doomed) error {
	d := store.Deletion{Force: c.options.Idle}
	for _, r := range runs {
		d.RunIDs, d.Epochs = append(d.RunIDs, r.id), append(d.Epochs, r.epoch)
	}
	n, err := c.Store.Delete(ctx, d)
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
