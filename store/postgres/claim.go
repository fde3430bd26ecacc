package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// claiming is one Claim call.
type claiming struct {
	store   *Store
	claim   store.Claim
	census  *census
	listed  driverValue    // queues it may take from
	limits  map[string]int // of queues that have one
	tried   map[int64]bool
	locked  []candidate     // tried while another transaction had them locked
	stuck   error           // the error of one that stays locked for long
	shut    map[string]bool // queues with a limit that stay locked for long
	taken   []store.Run
	numbers []int64 // of the runs taken
}

// candidate is a run that looked claimable.
type candidate struct {
	no    int64
	queue string
	limit int64 // of the queue, if it applies; 0: none
	// wait is how long to wait for the transaction that has it locked; 0: not at all.
	wait time.Duration
}

// Claim implements store.Store. Each run is claimed in its own transaction, so
// that a locked run does not hold up the others.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.calls.Done()
	cl := &claiming{store: s, claim: c, limits: map[string]int{}, tried: map[int64]bool{}, shut: map[string]bool{}}
	var queues array
	queues.text("") // always
	for _, q := range c.Queues {
		if !holdable(q.Queue) {
			continue
		}
		queues.text(q.Queue)
		if q.Max > 0 {
			cl.limits[q.Queue] = q.Max
		}
	}
	cl.listed = queues.value()
	err := cl.run(ctx)
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
	for len(c.taken) < c.claim.Max {
		var list []candidate
		err := c.store.again(ctx, func(w *wire) (err error) {
			w.ctx = ctx
			list, err = c.candidates(w)
			return err
		})
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(k candidate) bool { return c.tried[k.no] })
		if len(list) == 0 {
			break
		}
		if err := c.takeAll(ctx, list); err != nil {
			return err
		}
		if len(c.claim.IDs) > 0 {
			break
		}
		// Candidates taken by other executors leave room for more.
	}
	return c.takeLocked(ctx)
}

// takeLocked retries the candidates that were locked. The lock need not have
// been a claim; it may have been the delivery of a message. If there is still
// room, wait for the lock, but not for long, because the runs already taken are
// not executed meanwhile.
func (c *claiming) takeLocked(ctx context.Context) error {
	began := time.Now()
	for _, k := range c.locked {
		limit := lockWait
		if len(c.taken) > 0 {
			limit = shortWait
		}
		k.wait = max(limit-time.Since(began), time.Millisecond)
		if err := c.takeAll(ctx, []candidate{k}); err != nil {
			return err
		}
	}
	if len(c.claim.IDs) > 0 && len(c.taken) == 0 {
		return c.stuck // the caller asked for these
	}
	return nil
}

func (c *claiming) takeAll(ctx context.Context, list []candidate) error {
	for _, k := range list {
		if len(c.taken) >= c.claim.Max {
			return nil
		}
		c.tried[k.no] = true
		if k.limit > 0 && c.shut[k.queue] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.take(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// maxCandidates bounds how many candidates a claim reads at a time; it reads
// again while it finds some.
const maxCandidates = 1 << 12

// candidates reads which executors are live and which runs may be claimed.
func (c *claiming) candidates(w *wire) (list []candidate, err error) {
	if c.census, err = c.store.census(w); err != nil {
		return nil, err
	}
	if !c.census.isLive(c.claim.Executor) {
		return nil, fmt.Errorf("postgres: executor %q must beat before it claims: %w", c.claim.Executor, store.ErrNotFound)
	}
	workflows, versions := pairs(c.claim.Serves)
	if len(c.claim.IDs) > 0 {
		err = w.query("named", func(v []driverValue) error {
			list = append(list, candidate{no: v[0].(int64)})
			return nil
		}, names(c.claim.IDs...), c.census.free(), workflows, versions)
		return list, err
	}
	room, err := c.room(w)
	if err != nil {
		return nil, err
	}
	// Read more than wanted, because other executors may take some of them first.
	limit := int64(min(c.claim.Max-len(c.taken), maxCandidates))*2 + 16 + int64(len(c.tried))
	err = w.query("due", func(v []driverValue) error {
		k := candidate{no: v[0].(int64), queue: v[1].(string)}
		if store.Status(v[2].(string)) != store.Waiting { // a waiting run stays waiting and needs no room
			k.limit = int64(c.limits[k.queue])
		}
		list = append(list, k)
		return nil
	}, int64(c.census.now), c.census.free(), workflows, versions, c.listed, room, limit)
	return list, err
}

// room returns the listed queues whose limit is not reached.
func (c *claiming) room(w *wire) (driverValue, error) {
	if len(c.limits) == 0 {
		return c.listed, nil
	}
	executing, err := c.executing(w, slices.Collect(maps.Keys(c.limits))...)
	if err != nil {
		return nil, err
	}
	var a array
	if !slices.ContainsFunc(c.claim.Queues, func(q store.QueueRoom) bool { return q.Queue == "" }) {
		a.text("")
	}
	for _, q := range c.claim.Queues {
		if !holdable(q.Queue) {
			continue
		}
		if q.Max <= 0 || executing[q.Queue] < int64(q.Max) {
			a.text(q.Queue)
		}
	}
	return a.value(), nil
}

func (c *claiming) executing(w *wire, queues ...string) (map[string]int64, error) {
	n := map[string]int64{}
	err := w.query("queue_executing", func(v []driverValue) error {
		n[v[0].(string)] = v[1].(int64)
		return nil
	}, texts(queues...))
	return n, err
}

// take claims one run, if it is still available. When the answer to a claim is
// lost, take keeps checking until the outcome is known: a run that was claimed
// but never returned would have a live owner for ever.
func (c *claiming) take(ctx context.Context, k candidate) error {
	var run *store.Run
	err := c.store.again(ctx, func(w *wire) error {
		var err error
		w.lockWait = k.wait
		if w.lockWait == 0 && c.stuck != nil {
			w.lockWait = shortWait
		}
		run, err = c.transact(w, k)
		if lockTimedOut(err) {
			// The runs that are available should not wait for this one.
			run, c.stuck, c.shut[k.queue] = nil, err, k.limit > 0
			return nil
		}
		if lost := (*lostError)(nil); errors.As(err, &lost) && lost.maybe && run != nil {
			c.store.claims.add(unsettledClaim{no: k.no, executor: c.claim.Executor, epoch: run.Epoch, seq: run.Last.Seq})
			run = nil
		} else if err != nil {
			run = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if run != nil {
		c.add(k.no, run)
	}
	return c.settle(ctx)
}

func (c *claiming) add(no int64, run *store.Run) {
	c.taken = append(c.taken, *run)
	c.numbers = append(c.numbers, no)
	c.store.numbers.put(run.ID, no)
}

// transact returns nil when the run is not available. With an error it returns
// the run as it would be after the claim, so that the caller can check for it.
func (c *claiming) transact(w *wire, k candidate) (*store.Run, error) {
	if err := w.begin(); err != nil {
		return nil, err
	}
	free, err := c.lockQueue(w, k)
	if err != nil || !free {
		return nil, err
	}
	for {
		run, attributes, now, err := c.lock(w, k)
		if err != nil {
			return nil, err
		}
		if run == nil {
			if k.wait == 0 {
				c.locked = append(c.locked, k)
			}
			return nil, nil
		}
		live, err := c.ownerLive(w, run.Owner)
		if err != nil {
			return nil, err
		}
		if !c.claim.MayTake(run, now, live) {
			return nil, nil
		}
		event, _ := sqlstore.TakeClaim(run, c.claim, now)
		args := append([]driverValue{k.no, event.Seq, event.Epoch}, eventValues(event)...)
		n, err := w.exec("append_claim", args...)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue // the previous owner appended meanwhile: read the log again
		}
		var a [24]array
		addPatched(&a, k.no, run, attributes)
		if _, err := w.exec("update_runs", values(a[:])...); err != nil {
			return nil, err
		}
		if err := readAttributes(w, k.no, attributes, run); err != nil {
			return nil, err
		}
		return run, w.commit()
	}
}

// ownerLive checks under the row's lock, because an owner may have appeared, or
// come back, since the candidates were read (S20).
func (c *claiming) ownerLive(w *wire, owner string) (bool, error) {
	if owner == "" {
		return false, nil
	}
	all, err := c.store.census(w)
	if err != nil {
		return false, err
	}
	return all.isLive(owner), nil
}

// readAttributes fills in the attributes of a run that has n of them.
func readAttributes(q querier, no, n int64, run *store.Run) error {
	if n == 0 {
		return nil
	}
	return q.query("attributes_of", func(v []driverValue) error {
		setAttribute(run, v[1].(string), v[2].(string))
		return nil
	}, ints(no))
}

// lock locks the row and reads the last event. It returns nil when the row is
// gone, or when it is locked and the candidate does not wait. Reading the row a
// second time does not wait for our own lock.
func (c *claiming) lock(w *wire, k candidate) (run *store.Run, attributes int64, now store.Time, err error) {
	name := "claim_lock"
	if k.wait > 0 {
		name = "claim_lock_wait"
	}
	err = w.query(name, func(v []driverValue) error {
		now = store.Time(v[0].(int64))
		var err error
		run, attributes, err = scanClaimed(v[1:])
		return err
	}, k.no)
	return run, attributes, now, err
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

// lockQueue makes the limit of a queue exact: only one transaction at a time
// claims from the queue, and it sees all earlier claims.
func (c *claiming) lockQueue(w *wire, k candidate) (free bool, err error) {
	if k.limit == 0 {
		return true, nil
	}
	if _, err := w.exec("queue_add", k.queue); err != nil {
		return false, err
	}
	if err := w.query("queue_lock", func([]driverValue) error { return nil }, k.queue); err != nil {
		return false, err
	}
	executing, err := c.executing(w, k.queue)
	return executing[k.queue] < k.limit, err
}

func setAttribute(r *store.Run, name, value string) {
	if r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	r.Attributes[name] = value
}

// unsettled holds claims whose commit got no answer.
type unsettled struct {
	mu   sync.Mutex
	list []unsettledClaim
}

type unsettledClaim struct {
	no       int64
	executor string
	epoch    int64
	seq      int64
}

func (u *unsettled) add(c unsettledClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, c)
}

// of removes the claims of an executor from the list and returns them.
func (u *unsettled) of(executor string) (mine []unsettledClaim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, func(c unsettledClaim) bool {
		if c.executor == executor {
			mine = append(mine, c)
		}
		return c.executor == executor
	})
	return mine
}

// settle finds out about unanswered claims of this executor, including those of
// earlier calls; this call returns those that took effect.
//
// A claim that is not visible may still take effect as long as the server works
// on it. It then holds the row's lock, so locking the row first gives a definite
// answer. If another transaction holds that lock, a later call finds out.
func (c *claiming) settle(ctx context.Context) error {
	mine := c.store.claims.of(c.claim.Executor)
	for i, u := range mine {
		err := c.store.again(ctx, func(w *wire) error {
			w.lockWait = shortWait
			err := c.look(w, u)
			if lockTimedOut(err) {
				c.store.claims.add(u)
				return nil
			}
			return err
		})
		if err != nil {
			for _, rest := range mine[i:] {
				c.store.claims.add(rest)
			}
			return err
		}
	}
	return nil
}

func (c *claiming) look(w *wire, u unsettledClaim) error {
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.query("lock_run", func([]driverValue) error { return nil }, u.no); err != nil {
		return err
	}
	var run *store.Run
	var attributes int64
	err := w.query("run_after_claim", func(v []driverValue) (err error) {
		run, attributes, err = scanClaimed(v)
		return err
	}, u.no, u.executor, u.epoch, u.seq)
	if err == nil && run != nil {
		err = readAttributes(w, u.no, attributes, run)
	}
	if err != nil {
		return err
	}
	w.rollback()
	if run != nil && !slices.Contains(c.numbers, u.no) {
		c.add(u.no, run)
	}
	return nil
}
