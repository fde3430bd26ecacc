package claims

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Claims take runs from the store, as many as there is room for, and begin to execute them.
type Claims struct {
	o         *Options
	wake      chan struct{} // something may be claimable
	recovered atomic.Bool   // Recover was called: runs of earlier processes may be claimed
	places    places
	// bulk has runs that a bulk start here has made and that may not have been claimed yet. It
	// is needed only until Recover is called: before that the loop leaves all other pending
	// runs alone.
	bulk  queue
	later queue // runs that recovery has left until there is room
	owned owned
}

// New returns Claims that have not begun to take anything.
func New(o Options) *Claims {
	c := &Claims{o: &o, wake: make(chan struct{}, 1)}
	c.places.max = o.MaxRuns
	c.owned.o = &o
	return c
}

// Wake makes the loop look for runs to claim.
func (c *Claims) Wake() { nudge.Send(c.wake) }

// Recovered reports whether Recover was called.
func (c *Claims) Recovered() bool { return c.recovered.Load() }

// Deferred returns the ids of the runs that are taken as soon as there is room.
func (c *Claims) Deferred() map[string]bool {
	all := c.later.all()
	for id := range c.bulk.all() {
		all[id] = true
	}
	return all
}

// Began is called when an execution begins here, because this executor may then own more
// runs.
func (c *Claims) Began() { c.owned.began.Add(1) }

// Occupy is called when the execution of a claimed run has begun, and Vacate when it has
// ended.
func (c *Claims) Occupy() { c.places.occupy() }

// Vacate is the counterpart of Occupy.
func (c *Claims) Vacate() {
	if c.places.vacate() {
		nudge.Send(c.wake) // there is room again
	}
}

// Loop takes due runs whenever there may be some.
func (c *Claims) Loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		if !c.o.Heart.AwaitLease(ctx.Done(), nil) {
			return // it could not claim anything
		}
		if !c.recovered.Load() {
			c.takeBulk(ctx)
			continue
		}
		c.bulk.clear() // they are claimed like all others
		for ctx.Err() == nil {
			more, err := c.takeNext(ctx)
			if err != nil && ctx.Err() == nil {
				c.o.Log.Warn("durable: claiming runs failed; the next beat tries again", "executor", c.o.Executor, "error", err)
			}
			if err != nil || !more {
				break
			}
		}
	}
}

// takeNext takes a batch of runs as far as there is room, first those that
// recovery has left. It reports whether there may be more to take at once.
func (c *Claims) takeNext(ctx context.Context) (more bool, err error) {
	n := c.places.reserve(claimBatch)
	if n == 0 {
		return false, nil // a claimed run that ends wakes the loop
	}
	defer c.places.giveBack(n)
	if c.later.waits() {
		return true, c.takeLater(ctx, n)
	}
	runs, err := c.claim(ctx, store.Claim{Max: n}, &history.Claim{}, nil)
	return len(runs) == n, err
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

// takeLater takes up to n of the runs that recovery has left, if the decision to continue
// them still holds. The loop alone calls it, with n places set aside.
func (c *Claims) takeLater(ctx context.Context, n int) error {
	ids := c.later.first(n)
	sound := make([]string, 0, len(ids))
	judge := judge{o: c.o}
	for row, err := range c.o.List(ctx, store.Filter{IDs: ids, WithLast: true, OldestFirst: true}) {
		if err != nil {
			return fmt.Errorf("durable: runs that recovery has left could not be read: %w", commit.StoreError(err))
		}
		if judge.staysDecided(ctx, row) {
			sound = append(sound, row.ID)
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
	// Those that it did not get belong to another executor, or are no longer to be
	// continued.
	c.later.drop(len(ids))
	return nil
}

// claimBatch is how many runs are claimed in one call.
const claimBatch = 64

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

// continueRuns claims runs and continues them, even if there is no room.
func (c *Claims) continueRuns(ctx context.Context, ids []string, rep *Report) {
	for len(ids) > 0 {
		n := min(len(ids), claimBatch)
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

// Claim claims one run and begins to execute it; the event of the claim says what d says. v, if
// not nil, is its history as it was read just before.
func (c *Claims) Claim(ctx context.Context, id string, d *history.Claim, v *history.View) (claimed bool, err error) {
	runs, err := c.claim(ctx, store.Claim{Max: 1, IDs: []string{id}}, d, v)
	return len(runs) > 0, err
}

// claimIDs claims these runs and begins to execute those that it got.
func (c *Claims) claimIDs(ctx context.Context, ids []string) ([]Execution, error) {
	return c.claim(ctx, store.Claim{Max: len(ids), IDs: ids}, &history.Claim{}, nil)
}

// claim takes runs and begins to execute them; d is recorded with the claim of each. v
// may be set for a single run.
func (c *Claims) claim(ctx context.Context, sc store.Claim, d *history.Claim, v *history.View) ([]Execution, error) {
	o := c.o
	if len(o.Serves) == 0 {
		return nil, nil
	}
	o.Sign(d)
	sc.Executor, sc.Serves, sc.At, sc.Data = o.Executor, o.Serves, o.Now(), history.Encode(d)
	segments := o.segmentsOf(&sc, d)
	defer c.owned.claiming()() // a claimed run belongs to this executor before it is executed here
	rows, err := o.Store.Claim(ctx, sc)
	if errors.Is(err, store.ErrNotFound) {
		// The store takes this executor for gone: send a heartbeat, and ask again.
		o.Heart.Lease.Doubt()
		switch {
		case o.Heart.AwaitLease(ctx.Done(), o.Runs.Ending()):
			rows, err = o.Store.Claim(ctx, sc)
		case o.ending():
			err = commit.ErrClosed // it sends no more heartbeats
		default:
			err = context.Cause(ctx)
		}
	}
	runs := make([]Execution, len(rows))
	for i := range rows {
		o.hasCode(&rows[i]) // reports E1
		runs[i] = o.Runs.Begin(rows[i], segments[rows[i].ID], v)
	}
	return runs, err
}

// ending reports whether the engine ends its background work.
func (o *Options) ending() bool {
	select {
	case <-o.Runs.Ending():
		return true
	default:
		return false
	}
}

// segmentsOf makes the claim sc begin the segment of each run that it takes, and keep the
// segment's context in the event of the claim, which costs no write. The claim fills the
// map that it returns.
func (o *Options) segmentsOf(sc *store.Claim, d *history.Claim) map[string]*telemetry.Segment {
	segments := map[string]*telemetry.Segment{}
	sc.DataOf = func(row *store.Run) []byte {
		own := *d
		own.Version = o.Program.Pins(row)
		s := o.Tracing.BeginSegment(row, row.StartedAt != 0)
		if s == nil && own.Version == "" {
			return sc.Data
		}
		if s != nil {
			segments[row.ID] = s
			own.Segment = telemetry.Format(s.Context)
		}
		return history.Encode(&own)
	}
	return segments
}

// hasCode reports whether the code for a run of this executor is here. It logs a row that
// has lost its version (E1).
func (o *Options) hasCode(row *store.Run) bool {
	version, here := o.Program.VersionFor(row)
	if here && row.Version == "" && row.InitialVersion != "" {
		o.Log.AboutRun(slog.LevelWarn, row, "durable: E1: the row of a run names no version", slog.String("initial", row.InitialVersion), slog.String("version", version))
	}
	return here
}

// Expect makes the loop take runs of this code that were just started, if the code is
// here.
func (c *Claims) Expect(workflow, version string, ids []string) {
	if len(ids) == 0 || !c.o.Program.Has(workflow, version) {
		return
	}
	if !c.recovered.Load() {
		c.bulk.add(ids)
	}
	nudge.Send(c.wake)
}
