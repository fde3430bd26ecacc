package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// claiming is one Claim call.
type claiming struct {
	store   *Store
	claim   store.Claim
	tried   map[int64]bool
	taken   []store.Run
	numbers []int64               // of the runs taken
	locked  []candidate           // tried while another transaction had them locked
	stuck   error                 // the error of one that stays locked for long
	shut    map[string]bool       // queues with limits that stay locked for long
	left    map[string]store.Time // queues with runs left that the last plan could not let in, see store.Claim.Held
}

// candidate is a run that looked claimable.
type candidate struct {
	no        int64
	queue     string
	partition string
	status    store.Status
	priority  int32
	since     store.Time
	rank      store.Time
	place     bool // it needs a place in its queue
}

// begins reports whether a claim of k would begin it, for the rate of its queue.
func (k *candidate) begins() bool { return k.status == store.Pending }

// maxBatch bounds how many runs are claimed in one transaction, so that it is short.
const maxBatch = 256

// Claim implements store.Store. It claims many runs in one transaction, without those
// that another one has locked; what gets in the way of such a batch is looked for by
// claiming its runs one by one.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	cl := &claiming{store: s, claim: c, tried: map[int64]bool{}, shut: map[string]bool{}}
	err := cl.run(ctx)
	if err == nil && len(cl.taken) < c.Max && c.Held != nil {
		for _, queue := range slices.Sorted(maps.Keys(cl.left)) {
			c.Held(queue, cl.left[queue])
		}
	}
	if len(cl.taken) > 0 {
		// Return the runs claimed so far; the next call will meet a later error
		// again.
		return cl.taken, nil
	}
	return nil, described(fmt.Sprintf("claim for executor %s", c.Executor), err)
}

func (c *claiming) run(ctx context.Context) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	for idle, more := 0, true; more && len(c.taken) < c.claim.Max && idle < maxIdle; {
		before := len(c.taken)
		var err error
		if more, err = c.round(ctx); err != nil {
			return err
		}
		if idle++; len(c.taken) > before {
			idle = 0
		}
	}
	return c.takeLocked(ctx)
}

// maxIdle bounds how many rounds in a row get nothing, because others are always
// faster: they have taken what there was.
const maxIdle = 16

// round looks for candidates and claims a batch of them. more says that another round
// may find some: this one did not see all, or did not get all that it saw.
func (c *claiming) round(ctx context.Context) (more bool, err error) {
	want := min(c.claim.Max-len(c.taken), maxBatch)
	var s *survey
	var p plan
	err = c.store.again(ctx, func(w *wire) (err error) {
		w.ctx = ctx
		if s, err = c.survey(w, want); err == nil {
			p = s.plan(c.spare(want))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if c.left = p.left; len(p.list) == 0 {
		return false, nil
	}
	taken := len(c.taken)
	err = c.takeAll(ctx, s, p, want)
	if errors.Is(err, errAgain) {
		return true, nil
	}
	return p.partial || len(c.taken)-taken < len(p.list), err
}

// spare is how many candidates there are to be for want runs: other executors may take
// some of them first, and have some of them locked.
func (c *claiming) spare(want int) int { return 2*want + 16 }

// takeAll claims want of the planned runs as one batch. Where that meets a lock, a
// conflict, or a run that the database refuses, it claims them one by one.
func (c *claiming) takeAll(ctx context.Context, s *survey, p plan, want int) error {
	err := c.take(ctx, &batch{survey: s, list: p.list, want: want})
	if err == nil || errors.Is(err, errAgain) || ctx.Err() != nil {
		return err
	}
	switch faultOf(err) {
	case faultLost, faultSession, faultBusy:
		return err
	}
	for _, k := range p.list[:min(len(p.list), want)] {
		if len(c.taken) >= c.claim.Max {
			return nil
		}
		if err := c.takeOne(ctx, s, k, 0); err != nil {
			return err
		}
	}
	return nil
}

// takeOne claims one run alone, and waits for its lock for so long.
func (c *claiming) takeOne(ctx context.Context, s *survey, k candidate, wait time.Duration) error {
	if k.place && c.shut[k.queue] {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.tried[k.no] = true
	b := &batch{survey: s.only(k), list: []candidate{k}, want: 1, alone: true, wait: wait}
	err := c.take(ctx, b)
	switch {
	case lockTimedOut(err):
		// The runs that are available should not wait for this one.
		c.stuck = err
		if b.limits {
			c.shut[k.queue] = true
		}
		return nil
	case errors.Is(err, errAgain):
		return nil // its queue has just been changed; a later claim takes it
	}
	return err
}

// takeLocked retries the candidates that were locked. The lock need not have
// been a claim; it may have been the delivery of a message. If there is still
// room, wait for the lock, but not for long, because the runs already taken are
// not executed meanwhile.
func (c *claiming) takeLocked(ctx context.Context) error {
	if len(c.locked) == 0 || len(c.taken) >= c.claim.Max {
		return nil
	}
	began := time.Now()
	list := c.locked
	c.locked = nil
	s := newSurvey()
	err := c.store.again(ctx, func(w *wire) error {
		w.ctx = ctx
		return c.readQueues(w, s, queuesOf(list))
	})
	if err != nil {
		return err
	}
	// Most of those that another executor was claiming are gone by now.
	if err := c.takeAll(ctx, s.those(list), plan{list: list}, c.claim.Max-len(c.taken)); err != nil && !errors.Is(err, errAgain) {
		return err
	}
	list, c.locked = c.locked, nil
	for _, k := range list {
		if len(c.taken) >= c.claim.Max {
			return nil
		}
		limit := lockWait
		if len(c.taken) > 0 {
			limit = shortWait
		}
		if err := c.takeOne(ctx, s, k, max(limit-time.Since(began), time.Millisecond)); err != nil {
			return err
		}
	}
	if len(c.claim.IDs) > 0 && len(c.taken) == 0 {
		return c.stuck // the caller asked for these
	}
	return nil
}

// batch is runs to be claimed in one transaction.
type batch struct {
	survey *survey
	list   []candidate
	want   int
	alone  bool          // the one candidate is to be claimed or left, and nothing else
	wait   time.Duration // for its lock; 0: it is left if it is locked
	limits bool          // set: queues with limits were to be locked

	got   []*claimed
	lines map[string]*line // of the queues that were locked
}

// claimed is a run being claimed.
type claimed struct {
	candidate
	now        store.Time
	run        *store.Run
	attributes int64 // how many it has
	placed     bool  // it got a place in its queue
	begins     bool  // and began
}

// take claims the runs of a batch that are still available. When the answer to a claim
// is lost, it keeps checking until the outcome is known: a run that was claimed
// but never returned would have a live owner for ever.
func (c *claiming) take(ctx context.Context, b *batch) error {
	var left error // not cured by repeating the batch at once
	err := c.store.again(ctx, func(w *wire) error {
		w.lockWait = b.wait
		if w.lockWait == 0 && c.stuck != nil {
			w.lockWait = shortWait
		}
		b.got = nil
		err := c.transact(w, b)
		if err == nil {
			return nil
		}
		if lost := (*lostError)(nil); errors.As(err, &lost) && lost.maybe {
			for _, k := range b.got {
				c.store.claims.add(unsettledClaim{no: k.no, executor: c.claim.Executor, epoch: k.run.Epoch, seq: k.run.Last.Seq})
			}
		}
		b.got = nil
		if lockTimedOut(err) || errors.Is(err, errAgain) || !b.alone && faultOf(err) == faultRetry {
			left = err
			return nil
		}
		return err
	})
	if err = cmp.Or(err, left); err != nil {
		return err
	}
	for _, k := range b.got {
		c.add(k.no, k.run)
	}
	return c.settle(ctx)
}

func (c *claiming) add(no int64, run *store.Run) {
	c.taken = append(c.taken, *run)
	c.numbers = append(c.numbers, no)
	c.store.numbers.put(run.ID, no)
}

// transact claims a batch. It locks queues first, then runs, as everything does that
// locks both. If the commit's answer is lost, b.got holds the runs as they would be.
func (c *claiming) transact(w *wire, b *batch) error {
	if err := w.begin(); err != nil {
		return err
	}
	list, err := c.lockQueues(w, b)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := c.lockRuns(w, b, list); err != nil || len(b.got) == 0 {
		return err
	}
	if err := c.changeRows(w, b.got); err != nil {
		return err
	}
	if err := saveQueues(w, b); err != nil {
		return err
	}
	return w.commit()
}

// lockRuns locks the runs of a list that are available, and appends the events of
// their claims.
func (c *claiming) lockRuns(w *wire, b *batch, list []candidate) error {
	found := map[int64]*claimed{}
	if err := c.lock(w, b, list, found); err != nil {
		return err
	}
	var todo []candidate
	for _, k := range list {
		switch {
		case found[k.no] != nil:
			c.tried[k.no] = true
			todo = append(todo, k)
		case b.wait == 0 && len(found) < b.want: // it is locked, or gone
			if c.tried[k.no] = true; !slices.ContainsFunc(c.locked, func(o candidate) bool { return o.no == k.no }) {
				c.locked = append(c.locked, k)
			}
		}
	}
	for rest := todo; len(rest) > 0; {
		ready, err := c.available(w, rest, found)
		if err != nil {
			return err
		}
		written, err := appendClaims(w, ready)
		if err != nil {
			return err
		}
		// The previous owners of the others appended meanwhile: read their logs again.
		rest = nil
		for _, k := range ready {
			if !written[k.no] {
				rest = append(rest, k.candidate)
				delete(found, k.no)
			}
		}
		if len(rest) > 0 {
			if err := c.lock(w, b, rest, found); err != nil {
				return err
			}
		}
	}
	for _, k := range todo {
		if f := found[k.no]; f != nil {
			b.got = append(b.got, f)
		}
	}
	return nil
}

// lock locks rows and reads their last events. Those that are gone, or that are locked
// while the batch does not wait, are not found. Reading a row a second time does not
// wait for our own lock.
func (c *claiming) lock(w *wire, b *batch, list []candidate, found map[int64]*claimed) error {
	name := "claim_lock"
	if b.wait > 0 {
		name = "claim_lock_wait"
	}
	var nos array
	of := map[int64]candidate{}
	for _, k := range list {
		nos.int(k.no)
		of[k.no] = k
	}
	return w.query(name, func(v []driverValue) error {
		run, attributes, err := scanClaimed(v[1:])
		if err != nil {
			return err
		}
		no := v[1].(int64)
		found[no] = &claimed{candidate: of[no], now: store.Time(v[0].(int64)), run: run, attributes: attributes}
		return nil
	}, nos.value(), int64(b.want))
}

// available returns what a claim makes of those of the listed runs that may be taken,
// and takes the others out of found. Owners are judged under the locks, because one may
// have appeared, or come back, since the candidates were read (S20).
func (c *claiming) available(w *wire, list []candidate, found map[int64]*claimed) (ready []*claimed, err error) {
	var all *census
	for _, k := range list {
		f := found[k.no]
		if f == nil {
			continue
		}
		live := false
		if f.run.Owner != "" {
			if all == nil {
				if all, err = c.store.census(w); err != nil {
					return nil, err
				}
			}
			live = all.isLive(f.run.Owner)
		}
		needs := f.run.NeedsPlace()
		if !c.claim.MayTake(f.run, f.now, live) || needs && !k.place {
			delete(found, k.no)
			continue
		}
		f.placed, f.begins = needs, needs && f.run.Status == store.Pending
		sqlstore.TakeClaim(f.run, c.claim, f.now)
		ready = append(ready, f)
	}
	return ready, nil
}

func appendClaims(w *wire, list []*claimed) (map[int64]bool, error) {
	written := map[int64]bool{}
	if len(list) == 0 {
		return written, nil
	}
	var a [17]array
	for _, k := range list {
		addEvent(&a, k.no, k.run.Last.Epoch, k.run.Last)
	}
	err := w.query("append_claims", func(v []driverValue) error {
		written[v[0].(int64)] = true
		return nil
	}, values(a[:15])...)
	return written, err
}

// changeRows changes the rows of claimed runs, and fills in their attributes.
func (c *claiming) changeRows(w *wire, list []*claimed) error {
	var nos, statuses, epochs, strikes, resumes, started, updated array
	with := map[int64]*store.Run{}
	for _, k := range list {
		nos.int(k.no)
		statuses.text(string(k.run.Status))
		epochs.int(k.run.Epoch)
		strikes.int(int64(k.run.Strikes))
		resumes.int(int64(k.run.Resumes))
		started.int(int64(k.run.StartedAt))
		updated.int(int64(k.run.UpdatedAt))
		if k.attributes > 0 {
			with[k.no] = k.run
		}
	}
	_, err := w.exec("claim_rows", nos.value(), statuses.value(), c.claim.Executor, epochs.value(), strikes.value(), resumes.value(), started.value(), updated.value())
	if err != nil {
		return err
	}
	return readAttributes(w, with)
}

// readAttributes fills in the attributes of runs that have some.
func readAttributes(q querier, runs map[int64]*store.Run) error {
	if len(runs) == 0 {
		return nil
	}
	return q.query("attributes_of", func(v []driverValue) error {
		setAttribute(runs[v[0].(int64)], v[1].(string), v[2].(string))
		return nil
	}, ints(slices.Sorted(maps.Keys(runs))...))
}

// scanClaimed reads a row and its last event.
func scanClaimed(v []driverValue) (*store.Run, int64, error) {
	r, err := scanRun(v)
	if err != nil {
		return nil, 0, err
	}
	e, err := scanEvent(v[runColumns:])
	if err != nil {
		return nil, 0, err
	}
	run, last := r.Run(), e.Event()
	run.Last = &last
	return &run, r.Attributes, nil
}

func setAttribute(r *store.Run, name, value string) {
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	r.Attributes[name] = value
}
