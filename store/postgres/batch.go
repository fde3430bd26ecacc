package postgres

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/line"
)

// batch is runs to be claimed in one transaction.
type batch struct {
	survey *survey
	list   []line.Run
	want   int
	look   int           // how many of them to lock, to find want that are not passed over
	alone  bool          // the one candidate is to be claimed or left, and nothing else
	wait   time.Duration // for its lock; 0: it is left if it is locked
	limits bool          // set: queues with limits were to be locked

	got    []*claimed
	queues map[string]*queue // that were locked
}

// claimed is a run being claimed.
type claimed struct {
	line.Run
	now        store.Time
	row        *store.Run   // once it is claimed, with the event of the claim
	attributes int64        // how many it has
	created    *store.Event // the only one its log had, if it is small and there is nothing else of the run
	placed     bool         // it got a place in its queue
	begins     bool         // and began
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
		if unanswered(err) {
			for _, k := range b.got {
				u := unsettledClaim{no: k.No, executor: c.claim.Executor, epoch: k.row.Epoch, seq: k.row.Last.Seq}
				if k.placed {
					u.queue = k.Queue
				}
				c.doubt(u)
				delete(c.tried, k.No)
			}
			if !b.alone {
				err = errAgain // how much room there is depends on what became of them
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
		if errors.Is(err, errAgain) && len(c.doubts) > 0 {
			return cmp.Or(c.settle(ctx), err)
		}
		return err
	}
	for _, k := range b.got {
		c.add(k.No, k.row)
		if k.created != nil && c.claim.Created != nil {
			c.claim.Created(k.row.ID, *k.created)
		}
		if k.placed {
			c.placed[k.Queue]++
			b.survey.queues[k.Queue].turn = k.Partition // for the next that is taken alone
		}
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
	if err := readAttributes(w, withAttributes(b.got)); err != nil {
		return err
	}
	if err := saveQueues(w, b); err != nil {
		return err
	}
	return w.commit()
}

// lockRuns locks the runs of a list that are available, and takes them.
func (c *claiming) lockRuns(w *wire, b *batch, list []line.Run) error {
	found := map[int64]*claimed{}
	if err := c.lock(w, b, list, found); err != nil {
		return err
	}
	var todo []line.Run
	for _, k := range list {
		switch {
		case found[k.No] != nil:
			c.tried[k.No] = true
			todo = append(todo, k)
		case b.wait == 0 && len(found) < b.look: // it is locked, or gone
			if c.tried[k.No] = true; !slices.ContainsFunc(c.locked, func(o line.Run) bool { return o.No == k.No }) {
				c.locked = append(c.locked, k)
			}
		}
	}
	taken := 0
	for rest := todo; len(rest) > 0; {
		ready, err := c.available(w, rest, found, b.want-taken)
		if err != nil {
			return err
		}
		written, err := c.takeRuns(w, ready)
		if err != nil {
			return err
		}
		// The previous owners of the others appended meanwhile: read their logs again.
		rest, taken = nil, taken+len(written)
		for _, k := range ready {
			if !written[k.No] {
				rest = append(rest, k.Run)
				delete(found, k.No)
			}
		}
		if len(rest) > 0 {
			if err := c.lock(w, b, rest, found); err != nil {
				return err
			}
		}
	}
	for _, k := range todo {
		if f := found[k.No]; f != nil {
			b.got = append(b.got, f)
		}
	}
	return nil
}

// lock locks rows and reads their last events. Those that are gone, or that are locked
// while the batch does not wait, are not found. Reading a row a second time does not
// wait for our own lock.
func (c *claiming) lock(w *wire, b *batch, list []line.Run, found map[int64]*claimed) error {
	name := "claim_lock"
	if b.wait > 0 {
		name = "claim_lock_wait"
	}
	var nos array
	of := map[int64]line.Run{}
	for _, k := range list {
		nos.int(k.No)
		of[k.No] = k
	}
	return w.query(name, func(v []driverValue) error {
		row, attributes, err := scanClaimed(v[1:])
		if err != nil {
			return err
		}
		no := v[1].(int64)
		found[no] = &claimed{Run: of[no], now: store.Time(v[0].(int64)), row: row, attributes: attributes}
		if v[1+runColumns+eventColumns].(bool) && row.Status == store.Pending {
			found[no].created = row.Last
		}
		return nil
	}, nos.value(), int64(b.look))
}

// available returns what a claim makes of those of the listed runs that may be taken, most at
// most, and takes the others out of found. Owners are judged under the locks, because one may
// have appeared, or come back, since the candidates were read (S20).
func (c *claiming) available(w *wire, list []line.Run, found map[int64]*claimed, most int) (ready []*claimed, err error) {
	var all *census
	for _, k := range list {
		f := found[k.No]
		switch {
		case f == nil:
			continue
		case len(ready) == most: // it was locked because others might have been passed over
			delete(found, k.No)
			delete(c.tried, k.No)
			continue
		}
		live := false
		if f.row.Owner != "" {
			if all == nil {
				if all, err = c.store.census(w); err != nil {
					return nil, err
				}
			}
			live = all.isLive(f.row.Owner)
		}
		needs := f.row.NeedsPlace()
		if !c.claim.MayTake(f.row, f.now, live) || needs && !k.Place {
			delete(found, k.No)
			continue
		}
		if c.claim.Spares(f.row, f.row.Last) {
			delete(found, k.No)
			c.spared++
			continue
		}
		f.placed, f.begins = needs, needs && f.row.Status == store.Pending
		sqlstore.TakeClaim(f.row, c.claim, f.now)
		ready = append(ready, f)
	}
	return ready, nil
}

// takeRuns writes what claims change, and returns the numbers of those whose events found
// their places.
func (c *claiming) takeRuns(w *wire, list []*claimed) (map[int64]bool, error) {
	written := map[int64]bool{}
	if len(list) == 0 {
		return written, nil
	}
	var a claimArrays
	of := map[int64]*claimed{}
	for _, k := range list {
		of[k.No] = k
		a.add(k)
	}
	err := w.query("take_runs", func(v []driverValue) error {
		no := v[0].(int64)
		if written[no] = true; !v[1].(bool) {
			of[no].created = nil
		}
		return nil
	}, a.values(c.claim.Executor)...)
	return written, err
}

// claimArrays are what claims change, as take_runs has it.
type claimArrays struct {
	events                                       [17]array
	statuses, strikes, resumes, started, updated array
}

func (a *claimArrays) add(k *claimed) {
	addEvent(&a.events, k.No, k.row.Epoch, k.row.Last)
	a.statuses.text(string(k.row.Status))
	a.strikes.int(int64(k.row.Strikes))
	a.resumes.int(int64(k.row.Resumes))
	a.started.int(int64(k.row.StartedAt))
	a.updated.int(int64(k.row.UpdatedAt))
}

func (a *claimArrays) values(executor string) []driverValue {
	return append(values(a.events[:15]), executor, a.statuses.value(), a.strikes.value(), a.resumes.value(), a.started.value(), a.updated.value())
}

// withAttributes returns the claimed runs that have attributes.
func withAttributes(list []*claimed) map[int64]*store.Run {
	with := map[int64]*store.Run{}
	for _, k := range list {
		if k.attributes > 0 {
			with[k.No] = k.row
		}
	}
	return with
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
