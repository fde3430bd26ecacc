package claims

import (
	"context"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
)

// Expect makes the loop take runs that were just started and are like row, if their code is
// here. Before Recover it takes only those that may begin at once: it knows no queues then.
func (c *Claims) Expect(row *store.Run, ids ...string) {
	if !c.o.Program.Has(row.Workflow, row.Version) || !c.rooms.Serves(row.Queue) {
		c.foreign.Note(row)
		return
	}
	switch inLine := row.Queue != "" || row.WakeAt != 0; {
	case inLine && !c.recovered.Load():
		if !c.warned.Swap(true) {
			c.o.Log.AboutRun(slog.LevelWarn, row, "durable: a run was put in line and Recover was not called: this engine takes it only then", slog.String("executor", c.o.Executor), slog.String("queue", row.Queue))
		}
		return
	case inLine && row.WakeAt != 0:
		c.WakeAt(row.WakeAt)
		return
	case !c.recovered.Load():
		c.bulk.add(ids)
	}
	nudge.Send(c.wake)
}

// takeBulk takes runs of bulk starts as long as there is room. The loop alone calls it.
func (c *Claims) takeBulk(ctx context.Context) {
	for ctx.Err() == nil && c.takeSomeBulk(ctx) {
	}
}

// takeSomeBulk takes a batch of runs of bulk starts, and reports whether there may be
// more to take.
func (c *Claims) takeSomeBulk(ctx context.Context) bool {
	n := c.places.reserve(claimBatch)
	defer c.places.giveBack(n)
	ids := c.bulk.first(n)
	if len(ids) == 0 {
		return false // a claimed run that ends wakes the loop
	}
	if _, err := c.claimIDs(ctx, ids); err != nil {
		if ctx.Err() == nil {
			c.o.Log.Warn("durable: claiming runs failed; the next beat tries again", "executor", c.o.Executor, "error", err)
		}
		return false
	}
	// Those that it did not get belong to another executor or have ended.
	c.bulk.drop(len(ids))
	return true
}
