package claims

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

// toContinue are runs that recovery is to continue, oldest first.
type toContinue struct {
	roots    []string
	children []string
}

func (t *toContinue) add(row *store.Run) {
	if row.Parent != "" {
		t.children = append(t.children, row.ID)
		return
	}
	t.roots = append(t.roots, row.ID)
}

// continueAll continues runs as far as there is room, and leaves the others for
// later. Children are continued at once, as when they were started: a parent that waits
// for a child may hold the place that the child would wait for.
func (c *Claims) continueAll(ctx context.Context, t *toContinue, rep *Report) {
	c.continueRuns(ctx, t.children, rep)
	n := 0
	if !c.later.waits() { // otherwise they queue after those that wait
		n = c.places.reserve(len(t.roots))
	}
	c.continueRuns(ctx, t.roots[:n], rep)
	c.places.giveBack(n)
	c.later.addMissing(t.roots[n:])
	rep.Deferred = append(rep.Deferred, t.roots[n:]...)
	nudge.Send(c.wake) // the loop may have found all places taken or set aside
}

// recoverBatch is how many runs a recovery claims first: as many as one load has (package loads).
const recoverBatch = 100

// continueRuns claims runs and continues them, even if there is no room: few at first, so that they
// go on while the next are claimed, and more with each claim of this recovery.
func (c *Claims) continueRuns(ctx context.Context, ids []string, rep *Report) {
	for len(ids) > 0 {
		rep.batch = min(max(2*rep.batch, recoverBatch), maxClaimBatch)
		n := min(len(ids), rep.batch)
		runs, err := c.claimIDs(ctx, ids[:n])
		for _, r := range runs {
			rep.Resumed = append(rep.Resumed, r.Row.ID)
			rep.continued = append(rep.continued, r)
			c.reportResumed(r)
		}
		if err != nil {
			// The rest of the batch stays orphaned: the next heartbeat finds it.
			for _, id := range ids[:n] {
				if !c.o.Runs.Executing(id) {
					rep.tryAgain(&store.Run{ID: id}, "", fmt.Sprintf("claiming it failed: %v", err), "it is tried again with the next beat")
				}
			}
		}
		ids = ids[n:]
	}
}

// reportResumed counts and logs that recovery continues a run.
func (c *Claims) reportResumed(r Execution) {
	c.o.Resumed(r.Ctx, r.Row.Workflow)
	c.o.Log.OfRun(r.Ctx, slog.LevelInfo, r.Row, "durable: run resumed")
}

// takeLater takes up to n of the runs that recovery has left, if the decision to continue
// them still holds. The loop alone calls it, with n places set aside.
func (c *Claims) takeLater(ctx context.Context, n int) error {
	ids := c.later.first(n)
	sound := make([]string, 0, len(ids))
	judge := judge{o: c.o, tails: &tails{o: c.o}}
	var back []func()
	defer func() {
		for _, giveBack := range back {
			giveBack()
		}
	}()
	for row, err := range c.o.List(ctx, store.Filter{IDs: ids, WithLast: true, OldestFirst: true}) {
		if err != nil {
			return fmt.Errorf("durable: runs that recovery has left could not be read: %w", commit.StoreError(err))
		}
		if !judge.staysDecided(ctx, row) {
			continue
		}
		if giveBack, ok := c.admit(row); ok {
			sound, back = append(sound, row.ID), append(back, giveBack)
		}
	}
	if len(sound) > 0 {
		runs, err := c.claimIDs(ctx, sound)
		for _, r := range runs {
			c.reportResumed(r)
		}
		if err != nil {
			return err // the claimed ones are not free, and are passed over at the next try
		}
	}
	// Those that it did not get belong to another executor, are no longer to be continued, or
	// are left to the next recovery, for lack of room in this process.
	c.later.drop(len(ids))
	return nil
}
