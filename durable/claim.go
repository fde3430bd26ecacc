package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// claims takes runs from the store, as many as Options.MaxRuns has room for, and
// begins to execute them.
//
// What recovery finds beyond MaxRuns is left as it is, in the store, and its id in
// the queue later, which the loop empties as places become free. The queue is no
// truth: a process that dies with it leaves runs that look as they did before, and
// that any executor's recovery finds.
type claims struct {
	eng       *Engine
	wake      chan struct{} // something may be claimable
	recovered atomic.Bool   // Recover was called: old runs may be claimed
	claimed   atomic.Int64  // runs under way that count against MaxRuns
	// bulk has runs that StartAll has started here and that may not have been claimed
	// yet. It is needed only until Recover is called: before that the engine leaves
	// all other pending runs alone. A crash loses the queue and no run: they are in the
	// store.
	bulk  idQueue
	later idQueue // left by recovery until there is room

	imports epochs // of runs that are imported: no two have the same

	// reserved is how many places of MaxRuns are set aside for claims under way: the
	// loop and a recovery may claim at once, and neither waits while the other asks
	// the store.
	mu       sync.Mutex
	reserved int
}

func (cl *claims) open(e *Engine) { cl.eng, cl.wake = e, make(chan struct{}, 1) }

// loop takes due runs whenever there may be some.
func (cl *claims) loop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-cl.wake:
		}
		if !cl.eng.heart.AwaitLease(ctx.Done(), nil) {
			return // it could claim nothing
		}
		if !cl.recovered.Load() {
			cl.takeBulk(ctx)
			continue
		}
		cl.bulk.clear() // they are claimed like all others
		for ctx.Err() == nil {
			more, err := cl.takeNext(ctx)
			if err != nil && ctx.Err() == nil {
				cl.eng.log.Warn("durable: claiming runs failed; the next beat tries again", "executor", cl.eng.id, "error", err)
			}
			if err != nil || !more {
				break
			}
		}
	}
}

// takeNext takes a batch of runs as far as there is room, first those that
// recovery has left. It reports whether there may be more to take at once.
func (cl *claims) takeNext(ctx context.Context) (more bool, err error) {
	n := cl.reserve(claimBatch)
	if n == 0 {
		return false, nil // a claimed run that ends wakes us
	}
	defer cl.giveBack(n)
	if cl.later.waits() {
		return true, cl.takeLater(ctx, n)
	}
	runs, err := cl.claim(ctx, store.Claim{Max: n}, &history.Claim{Executor: cl.eng.id})
	return len(runs) == n, err
}

// takeBulk takes runs of StartAll as long as there is room. The claim loop
// alone calls it.
func (cl *claims) takeBulk(ctx context.Context) {
	for ctx.Err() == nil && cl.takeSomeBulk(ctx) {
	}
}

// takeSomeBulk takes a batch of them, and reports whether there may be more to
// take.
func (cl *claims) takeSomeBulk(ctx context.Context) bool {
	n := cl.reserve(claimBatch)
	defer cl.giveBack(n)
	ids := cl.bulk.first(n)
	if len(ids) == 0 {
		return false // a claimed run that ends wakes us
	}
	if _, err := cl.claimIDs(ctx, ids, &history.Claim{Executor: cl.eng.id}); err != nil {
		if ctx.Err() == nil {
			cl.eng.log.Warn("durable: claiming runs failed; the next beat tries again", "executor", cl.eng.id, "error", err)
		}
		return false
	}
	// Those it did not get belong to another executor or have ended.
	cl.bulk.drop(len(ids))
	return true
}

// takeLater takes up to n of the runs that recovery has left, as long as what was
// decided about them is still right. The claim loop alone calls it, with n
// places set aside.
func (cl *claims) takeLater(ctx context.Context, n int) error {
	e := cl.eng
	ids := cl.later.first(n)
	sound := make([]string, 0, len(ids))
	judge := judge{eng: e}
	for row, err := range e.runsOf(ctx, store.Filter{IDs: ids, WithLast: true, OldestFirst: true}) {
		if err != nil {
			return fmt.Errorf("durable: runs that recovery has left could not be read: %w", storeError(err))
		}
		if cl.staysDecided(ctx, &judge, row) {
			sound = append(sound, row.ID)
		}
	}
	if len(sound) > 0 {
		runs, err := cl.claimIDs(ctx, sound, &history.Claim{Executor: e.id})
		for _, r := range runs {
			cl.reportResumed(r)
		}
		if err != nil {
			return err // those it got are not free, and are passed over when it is tried again
		}
	}
	// Those it did not get belong to another executor, or are not to be continued any more.
	cl.later.drop(len(ids))
	return nil
}

// staysDecided reports whether a run that was to be continued still is. Meanwhile
// another executor may have taken it, and it may have ended that one's process: it
// is then for the recovery which that makes necessary, as a suspect.
func (cl *claims) staysDecided(ctx context.Context, judge *judge, row *store.Run) bool {
	e := cl.eng
	switch row.Status {
	case store.Interrupted:
		return true // one that is parked or paused by now is not claimed
	case store.Running, store.Resuming:
		def := e.program.defs.find(row.Workflow, row.Version)
		ends, err := judge.strikes(ctx, row)
		return err == nil && fateOf(row, e.recovery.bootPolicy(def), def != nil, ends.N, e.options.QuarantineAfter) == fateResume
	}
	return false
}

// claimBatch is how many runs are claimed in one call.
const claimBatch = 64

// reserve sets up to n of the free places aside, and returns how many. They are
// given back when the runs that were claimed for them count themselves.
func (cl *claims) reserve(n int) int {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	n = max(min(n, cl.eng.options.MaxRuns-int(cl.claimed.Load())-cl.reserved), 0)
	cl.reserved += n
	return n
}

// giveBack ends a reservation.
func (cl *claims) giveBack(n int) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.reserved -= n
}

// toContinue are runs that recovery is to continue, oldest first.
type toContinue struct {
	roots    []string
	children []string
}

func (c *toContinue) add(row *store.Run) {
	if row.Parent != "" {
		c.children = append(c.children, row.ID)
		return
	}
	c.roots = append(c.roots, row.ID)
}

// continueAll continues runs as far as there is room, and leaves the others for
// later. Children go on at once, as they did when they were started: a parent that
// waits for one may hold the place it would wait for.
func (cl *claims) continueAll(ctx context.Context, c *toContinue, rep *Report) {
	cl.continueRuns(ctx, c.children, rep)
	n := 0
	if !cl.later.waits() { // else they queue after those that do
		n = cl.reserve(len(c.roots))
	}
	cl.continueRuns(ctx, c.roots[:n], rep)
	cl.giveBack(n)
	cl.later.addMissing(c.roots[n:])
	rep.Deferred = append(rep.Deferred, c.roots[n:]...)
	nudge(cl.wake) // the claim loop may have met places that were set aside
}

// continueRuns claims runs and continues them, whether there is room or not.
func (cl *claims) continueRuns(ctx context.Context, ids []string, rep *Report) {
	for len(ids) > 0 {
		n := min(len(ids), recoverBatch)
		rows, err := cl.claimIDs(ctx, ids[:n], &history.Claim{Executor: cl.eng.id})
		for i := range rows {
			rep.Resumed = append(rep.Resumed, rows[i].id)
			rep.continued = append(rep.continued, rows[i])
			cl.reportResumed(rows[i])
		}
		if err != nil {
			// The rest of the batch stays orphaned: the next beat finds it.
			for _, id := range ids[:n] {
				if cl.eng.roster.active(id) == nil {
					rep.Stuck = append(rep.Stuck, Stuck{RunID: id, Reason: fmt.Sprintf("claiming it failed: %v", err), Next: "it is tried again with the next beat"})
				}
			}
		}
		ids = ids[n:]
	}
}

// recoverBatch is how many orphans are claimed in one call.
const recoverBatch = 64

// reportResumed says that recovery continues a run.
func (cl *claims) reportResumed(r *run) {
	cl.eng.metrics.RunRecovered(r.claimed.ctx, r.row.Workflow)
	cl.eng.log.OfRun(r.claimed.ctx, slog.LevelInfo, &r.row, "durable: run resumed")
}

// claimIDs claims these runs and begins to execute those it got. The claim
// events say what d says.
func (cl *claims) claimIDs(ctx context.Context, ids []string, d *history.Claim) ([]*run, error) {
	return cl.claim(ctx, store.Claim{Max: len(ids), IDs: ids}, d)
}

// claim takes runs and begins to execute them; d is kept with the claim of each.
func (cl *claims) claim(ctx context.Context, c store.Claim, d *history.Claim) ([]*run, error) {
	return cl.claimRead(ctx, c, d, nil)
}

// claimRead is claim for a single run whose history was read already; k may be nil.
func (cl *claims) claimRead(ctx context.Context, c store.Claim, d *history.Claim, k *prefetch) ([]*run, error) {
	e := cl.eng
	if len(e.program.defs.served) == 0 {
		return nil, nil
	}
	e.sign(d)
	c.Executor, c.Serves, c.At, c.Data = e.id, e.program.defs.served, e.now(), history.Encode(d)
	segments := e.program.segmentsOf(&e.tracing, &c, d)
	defer e.owned.claiming()() // what it takes belongs to this engine before it is executed here
	rows, err := e.store.Claim(ctx, c)
	if errors.Is(err, store.ErrNotFound) {
		// The store takes this executor for gone: it beats, and asks again.
		e.heart.Lease.Doubt()
		switch {
		case e.heart.AwaitLease(ctx.Done(), e.life.loops.Done()):
			rows, err = e.store.Claim(ctx, c)
		case e.life.loops.Err() != nil:
			err = ErrClosed // it beats no more
		default:
			err = context.Cause(ctx)
		}
	}
	runs := make([]*run, len(rows))
	for i := range rows {
		runs[i] = cl.execute(rows[i], segments[rows[i].ID], k)
	}
	return runs, err
}

// execute begins to execute a run that was claimed, as this segment of its trace; k
// is what has been read of its history, nil if nothing.
func (cl *claims) execute(row store.Run, s *telemetry.Segment, k *prefetch) *run {
	e := cl.eng
	r := newRun(e, row, cl.codeOf(&row))
	r.spans.enter(s)
	r.claimed.counts, r.source.prefetched, r.claimed.probation = true, k, row.Strikes > 0
	r.claimed.ctx = r.ctx
	r.claimed.silent.Store(row.Status != store.Running)
	e.dormitory.drop(row.ID, row.Epoch) // of ours, if it was lost and is claimed back
	r.logLine(slog.LevelDebug, "durable: run claimed", slog.String("status", string(row.Status)), slog.Int("strikes", int(row.Strikes)))
	cl.begin(r)
	return r
}

// beginAfter ends what stands in r's place, and then begins r: an execution of
// ours that has lost the run, or a start that is about to find it exists. It
// reports false when the engine closes.
func (cl *claims) beginAfter(old, r *run) bool {
	_ = old.die(&death{kind: deathLost, err: ErrLost})
	return cl.eng.roster.background(func() {
		select {
		case <-old.ended:
		case <-cl.eng.life.loops.Done(): // then begin gives it back
		}
		cl.begin(r)
	})
}

// begin executes r, or gives it back when the engine closes.
func (cl *claims) begin(r *run) {
	e := cl.eng
	for {
		err := e.roster.add(r)
		if err == nil {
			cl.claimed.Add(1)
			r.launch()
			return
		}
		if !errors.Is(err, store.ErrOwned) {
			break
		}
		if old := e.roster.active(r.id); old != nil && cl.beginAfter(old, r) {
			return
		}
	}
	// The engine closes. What was claimed in the same moment is given back, so
	// that it does not look like a run whose process died.
	r.cancel(nil)
	r.log.Follow(&r.row)
	interrupted, none := store.Interrupted, ""
	change := r.log.Last(store.Event{Type: store.WorkflowInterrupted}, e.now())
	change.Row, change.Yield = &store.RowPatch{Status: &interrupted, Code: &none, Reason: &none}, true
	if err := e.commitOne(context.Background(), change); err != nil {
		r.logLine(slog.LevelWarn, "durable: a run claimed during Close could not be given back; it is recovered like one that was interrupted", slog.Any("error", err))
	}
	close(r.recorded)
	close(r.ended)
}

// expect lets the engine take runs that were just started, when it has their
// code.
func (cl *claims) expect(def *definition, ids []string) {
	if len(ids) == 0 || cl.eng.program.defs.find(def.name, def.version) == nil {
		return
	}
	if !cl.recovered.Load() {
		cl.bulk.add(ids)
	}
	nudge(cl.wake)
}

// idQueue is a queue of run ids.
type idQueue struct {
	mu  sync.Mutex
	ids []string
}

func (q *idQueue) add(ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = append(q.ids, ids...)
}

// addMissing puts those of the ids into the queue that are not in it.
func (q *idQueue) addMissing(ids []string) {
	if len(ids) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	there := q.set()
	for _, id := range ids {
		if !there[id] {
			q.ids = append(q.ids, id)
		}
	}
}

// all returns the ids as a set.
func (q *idQueue) all() map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.set()
}

// set is all with the mutex held.
func (q *idQueue) set() map[string]bool {
	all := make(map[string]bool, len(q.ids))
	for _, id := range q.ids {
		all[id] = true
	}
	return all
}

func (q *idQueue) waits() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ids) > 0
}

func (q *idQueue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = nil
}

// first returns up to n ids, which stay in the queue until they are dropped.
func (q *idQueue) first(n int) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = max(min(n, len(q.ids)), 0)
	return q.ids[:n:n]
}

func (q *idQueue) drop(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ids = q.ids[min(n, len(q.ids)):]
}

// segmentsOf lets the claim c begin the segment of each run it takes and keep its
// context in the event of the claim, for which it costs no write. What it
// returns is filled by the claim.
func (p *program) segmentsOf(tc *telemetry.Tracing, c *store.Claim, d *history.Claim) map[string]*telemetry.Segment {
	segments := map[string]*telemetry.Segment{}
	c.DataOf = func(row *store.Run) []byte {
		own := *d
		own.Version = p.defs.pins(row)
		s := tc.BeginSegment(row, row.StartedAt != 0)
		if s == nil && own.Version == "" {
			return c.Data
		}
		if s != nil {
			segments[row.ID] = s
			own.Segment = telemetry.Format(s.Context)
		}
		return history.Encode(&own)
	}
	return segments
}
