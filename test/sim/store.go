package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A link is the way of one process to the store. Faults meet its calls, and once its
// process is killed nothing passes.
type link struct {
	*memory.Store
	process *process

	mu      sync.Mutex
	dead    bool
	until   time.Time  // it has no connection until then
	deny    time.Time  // it can write nothing until then
	renewed store.Time // when the store took the last beat, by its clock
	beat    time.Time  // when the last beat was answered; zero: the process is not open yet
}

// cut ends it.
func (l *link) cut() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.process.sim.txs.dropAll(l)
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// cutFor takes the connection away for a while.
func (l *link) cutFor(d time.Duration) {
	l.mu.Lock()
	if until := time.Now().Add(d); until.After(l.until) {
		l.until = until
	}
	l.mu.Unlock()
	l.process.sim.txs.dropAll(l)
}

// heal gives the connection back.
func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.deny = time.Time{}, time.Time{}
}

// denyFor has all changes of the process refused for a while.
func (l *link) denyFor(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deny = time.Now().Add(d)
}

func (l *link) denies() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.deny)
}

// down returns why nothing passes now, or nil.
func (l *link) down() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead:
		return store.ErrClosed
	case time.Now().Before(l.until):
		return errNoConnection
	}
	return nil
}

// call makes a call that can be addressed by these names.
func (l *link) call(ctx context.Context, forward func() error, names ...string) error {
	return l.callOr(ctx, forward, nil, names...)
}

// callOr is call with faults of its own: other, which may be nil, reports whether a fault is one
// of them, and what it does.
func (l *link) callOr(ctx context.Context, forward func() error, other func(f *Fault) (bool, error), names ...string) error {
	if d := l.process.own.rest(); d > 0 && !l.isDead() { // a machine that is suspended sends nothing
		if err := stand(ctx, d); err != nil {
			return err
		}
	}
	l.process.sim.yield()
	if err := l.down(); err != nil {
		return err
	}
	f := l.process.sim.faultAt(names)
	if !slices.Contains(names, "beat") { // which tells the time
		carryOut := forward
		forward = func() error { return l.paced(carryOut) }
	}
	if f == nil {
		return forward()
	}
	if other != nil {
		if met, err := other(f); met {
			return err
		}
	}
	return l.harm(ctx, f, forward)
}

func (l *link) Commit(ctx context.Context, batch []store.Change) []error {
	s := l.process.sim
	var errs []error
	err := l.call(ctx, func() error {
		if l.denies() {
			return errDenied
		}
		done, err := s.txs.turn(ctx, runsOf(batch)...)
		if err != nil {
			return err
		}
		defer done()
		s.order.Lock()
		defer s.order.Unlock()
		errs = l.Store.Commit(ctx, batch)
		for i := range batch {
			if errs[i] == nil {
				s.askBare(&batch[i])
				s.committed(&batch[i])
				s.parks(l.process, &batch[i])
			}
		}
		s.askLine()
		s.askKey()
		return nil
	}, typesOf(batch)...)
	if err != nil {
		errs = make([]error, len(batch))
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// runsOf returns the runs that a batch writes to; there is one at least.
func runsOf(batch []store.Change) (runs []string) {
	for i := range batch {
		runs = append(runs, batch[i].RunID)
		for j := range batch[i].Send {
			runs = append(runs, batch[i].Send[j].To)
		}
	}
	return runs
}

// typesOf returns the types of the events of a batch, each once.
func typesOf(batch []store.Change) (names []string) {
	add := func(name string) {
		for _, n := range names {
			if n == name {
				return
			}
		}
		names = append(names, name)
	}
	for i := range batch {
		for j := range batch[i].Events {
			add(string(batch[i].Events[j].Type))
		}
		for j := range batch[i].Send {
			add("send " + string(batch[i].Send[j].Kind))
		}
		if batch[i].Row != nil {
			add("row")
		}
	}
	return names
}

func (l *link) Claim(ctx context.Context, c store.Claim) (rows []store.Run, err error) {
	err = l.call(ctx, func() error {
		s := l.process.sim
		done, err := s.txs.turn(ctx)
		if err != nil {
			return err
		}
		defer done()
		s.order.Lock()
		defer s.order.Unlock()
		if rows, err = l.Store.Claim(ctx, c); err == nil {
			s.claimed(rows)
			s.askClaim(&c, rows)
			s.askLine()
		}
		return err
	}, "claim")
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// mustBeat is how long a process is silent at most, whatever the store does to its other
// calls.
const mustBeat = lease/3 + 5*time.Second

func (l *link) Beat(ctx context.Context, x store.Executor) (p store.Pulse, err error) {
	l.mu.Lock()
	silent := time.Since(l.beat)
	if l.beat.IsZero() {
		silent = 0
	}
	l.mu.Unlock()
	if silent > mustBeat && !l.process.isOver() {
		l.process.sim.fail("p%d: %s passed between two beats", l.process.n, silent)
	}
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.process.engine() != nil {
			l.beat = time.Now()
		}
	}()
	err = l.call(ctx, func() error {
		if p, err = l.Store.Beat(ctx, x); err == nil {
			l.mu.Lock()
			l.renewed = l.process.sim.now()
			l.mu.Unlock()
		}
		return err
	}, "beat")
	return p, err
}

func (l *link) Load(ctx context.Context, id string, c store.Cursor) (h *store.History, err error) {
	err = l.call(ctx, func() error { h, err = l.Store.Load(ctx, id, c); return err }, "load")
	return h, err
}

func (l *link) LoadAll(ctx context.Context, loads []store.RunCursor) (all []store.Loaded) {
	err := l.call(ctx, func() error { all = l.Store.LoadAll(ctx, loads); return nil }, "load")
	if err != nil {
		return store.LoadedNothing(len(loads), err)
	}
	return all
}

func (l *link) List(ctx context.Context, f store.Filter) (p store.Page, err error) {
	err = l.call(ctx, func() error { p, err = l.Store.List(ctx, f); return err }, "list")
	return p, err
}

func (l *link) Count(ctx context.Context, f store.Filter, by string) (n map[string]int64, err error) {
	err = l.call(ctx, func() error { n, err = l.Store.Count(ctx, f, by); return err }, "count")
	return n, err
}

func (l *link) Executors(ctx context.Context) (xs []store.Executor, err error) {
	err = l.call(ctx, func() error { xs, err = l.Store.Executors(ctx); return err }, "executors")
	return xs, err
}

func (l *link) Delete(ctx context.Context, d store.Deletion) (n int, err error) {
	err = l.call(ctx, func() error { n, err = l.Store.Delete(ctx, d); return err }, "delete")
	return n, err
}

// PutSchedule implements store.Schedules, as the next methods do.
func (l *link) PutSchedule(ctx context.Context, sc store.Schedule) (put store.Schedule, err error) {
	err = l.call(ctx, func() error {
		s := l.process.sim
		s.order.Lock()
		defer s.order.Unlock()
		if put, err = l.Store.PutSchedule(ctx, sc); err == nil {
			s.scheduleStored(&put)
		}
		return err
	}, "schedule")
	return put, err
}

// Schedules implements store.Schedules.
func (l *link) Schedules(ctx context.Context, names ...string) (all []store.Schedule, err error) {
	err = l.call(ctx, func() error { all, err = l.Store.Schedules(ctx, names...); return err }, "schedules")
	return all, err
}

// DueSchedules implements store.Schedules.
func (l *link) DueSchedules(ctx context.Context, limit int) (due store.DueSchedules, err error) {
	err = l.call(ctx, func() error { due, err = l.Store.DueSchedules(ctx, limit); return err }, "schedules")
	return due, err
}

// PutQueue implements store.Queues, as the next methods do.
func (l *link) PutQueue(ctx context.Context, q store.Queue) error {
	return l.call(ctx, func() error { return l.Store.PutQueue(ctx, q) }, "queue")
}

// Queue implements store.Queues.
func (l *link) Queue(ctx context.Context, name string) (q store.Queue, err error) {
	err = l.call(ctx, func() error { q, err = l.Store.Queue(ctx, name); return err }, "queues")
	return q, err
}

// Queues implements store.Queues.
func (l *link) Queues(ctx context.Context, names ...string) (all []store.QueueState, err error) {
	err = l.call(ctx, func() error { all, err = l.Store.Queues(ctx, names...); return err }, "queues")
	return all, err
}

// Notify passes notices on while there is a connection.
func (l *link) Notify(ctx context.Context, fn func(store.Notice)) error {
	return l.Store.Notify(ctx, func(n store.Notice) {
		if l.down() == nil && stand(ctx, l.process.own.rest()) == nil {
			fn(n)
		}
	})
}
