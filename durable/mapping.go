package durable

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// mapping is one Map in progress.
type mapping[I, O any] struct {
	options MapOptions
	fn      func(context.Context, I) (O, error)
	items   []I // nil: they become known one by one
	// keep and miss receive the outcome of an item; they are called one at a time.
	keep func(n int, v O)
	miss func(n int)
	// window limits how far apart the items in progress may be.
	window bool

	scope *scope
	call  call
	ctx   context.Context
	most  int            // one more than the highest item of which something is recorded
	span  *telemetry.Map // nil: nobody traces, or the Map is over

	mu     sync.Mutex
	turn   *sync.Cond // signals that an item in progress is over
	under  map[int]bool
	failed []*ItemError
	stop   error // why no further item begins
	fault  error // of the user's fold, which is stop then
	undone int
	left   []int // the indexes of the undone; not kept for a MapSeq
}

func (m *mapping[I, O]) perform(ctx context.Context, name string, in iter.Seq[I]) error {
	s, err := scopeOf(ctx, name)
	if err != nil {
		return err
	}
	if m.options.Concurrency < 0 {
		return fmt.Errorf("durable: Map %q: the concurrency is negative: %w", name, ErrInvalid)
	}
	if err := s.begin(&m.call, name, history.CallMap); err != nil {
		return err
	}
	defer s.end()
	m.scope, m.ctx = s, ctx
	m.turn = sync.NewCond(&m.mu)
	m.under = map[int]bool{}
	r := s.run
	if m.call.rec != nil {
		s.lastAt = max(s.lastAt, m.call.rec.OpenedAt)
		if !m.call.done() {
			m.span = s.trace.MapAgain(ctx, m.call.name, m.call.key, r.past.Spans[m.call.key])
		}
	} else {
		m.stashBegin()
	}
	if r.past != nil {
		m.most = r.past.MostItems(m.call.key)
	}
	if !m.call.done() && m.most == 0 && m.stays() {
		if err := m.scope.stopped(); err != nil {
			return err
		}
	}
	if m.items != nil {
		if err := m.verify(m.items); err != nil {
			return err
		}
	}
	total, err := m.distribute(in)
	if err == nil && s.ended && !m.call.done() {
		return s.goesBeyond(name)
	}
	if err == nil && m.items == nil {
		err = m.count(total)
	}
	if err != nil {
		return err
	}
	if m.call.done() {
		if m.undone > 0 && len(m.failed) == 0 {
			// Only a failure leaves items undone, so their outcomes are missing.
			return r.damaged(m.call.rec.Outcome.Seq, fmt.Errorf("%s has ended without a failure, and %d of its items have no outcome", m.call.key, m.undone))
		}
		s.lastAt = m.call.rec.LastAt
		return m.failure()
	}
	// The end of the Map is recorded with the next write: its items are durable
	// already.
	err = m.failure()
	m.stashEnd(total, err)
	return err
}

// stashBegin begins the span of the Map and records, with what comes next, that the Map begins.
func (m *mapping[I, O]) stashBegin() {
	m.span = m.scope.trace.Map(m.ctx, m.call.name, m.call.key)
	span, early := m.span.Begun()
	ev := store.Event{Type: store.StepStarted, Data: history.Encode(&history.Begun{Kind: history.CallMap, Span: span})}
	m.scope.stashAfter(&m.call, ev, early)
}

// stashEnd records, with what comes next, that the Map is over and traces how it ended.
func (m *mapping[I, O]) stashEnd(items int, err error) {
	opened := store.Time(0)
	if m.call.rec != nil {
		opened = m.call.rec.OpenedAt
	}
	ev := store.Event{Type: store.StepCompleted, Data: history.Encode(&history.StepEnd{Kind: history.CallMap, Items: items})}
	m.scope.stashAfter(&m.call, ev, m.span.Ended(opened, items, len(m.failed), m.undone, err))
}

// failure returns the error of a Map that is over: nil, or a *MapError.
func (m *mapping[I, O]) failure() error {
	if len(m.failed) == 0 {
		return nil
	}
	slices.SortFunc(m.failed, func(a, b *ItemError) int { return a.Index - b.Index })
	slices.Sort(m.left)
	return &MapError{RunID: m.scope.run.id, Key: m.call.key, Failed: m.failed, Undone: m.undone, undone: m.left}
}

// leave counts an item that is not begun. The mutex is held, or there are no workers.
func (m *mapping[I, O]) leave(n int) {
	m.undone++
	if !m.window {
		m.left = append(m.left, n)
	}
}

// told calls keep or miss, which for a MapSeq call the user's fold, and stops the
// Map when fold panics or ends its goroutine. The mutex is held.
func (m *mapping[I, O]) told(fn func()) {
	switch {
	case m.stop != nil: // the Map has stopped, and what is folded no longer counts
	case !m.window:
		fn() // not a user's function
	default:
		if fault := guard.Call(fn); fault != nil {
			m.fault = m.faulty("fold", fault)
			m.stop = m.fault
		}
	}
}

func (m *mapping[I, O]) faulty(what string, fault error) error {
	return fmt.Errorf("durable: run %s: the %s of MapSeq %s: %w", m.scope.run.id, what, m.call.key, fault)
}

// distribute hands the items to workers and returns how many there were.
func (m *mapping[I, O]) distribute(in iter.Seq[I]) (total int, err error) {
	r := m.scope.run
	f := feeding[I]{source: in, work: make(chan item[I]), own: goroutine.Ours()}
	// The source is the user's code. Whatever it does, the workers must be told that
	// there are no more items.
	fault := guard.Call(func() { m.feed(&f) })
	close(f.work)
	for _, b := range f.begun {
		if joinErr := r.goroutines.join(f.own, b); joinErr != nil {
			err = joinErr
		}
	}
	f.workers.Wait()
	switch {
	case err != nil:
	case m.fault != nil: // before all that a replay may not come to, or that has stopped the run since
		err = m.fault
	case fault != nil:
		err = m.faulty("source", fault)
	case !m.call.done() && m.scope.stopped() != nil:
		err = m.scope.stopped()
	default:
		err = m.stop
	}
	return f.total, err
}

// stays reports whether the function is not known to have gone on after this Map. If it has, and no end of
// the Map is recorded, a panic of its source or its fold was the end: the source is read up to there again.
func (m *mapping[I, O]) stays() bool {
	past := m.scope.run.past
	return m.scope.replay.AtFrontier() && (past == nil || past.Stopped[m.scope.path] <= m.call.ordinal)
}

// feeding is the distribution of the items of a Map to its workers.
type feeding[I any] struct {
	source  iter.Seq[I]
	work    chan item[I]
	own     bool // the Map was called on a goroutine of the engine's
	total   int
	begun   []*branch
	workers sync.WaitGroup
}

// feed reads the source to its end, or until no further item may begin.
func (m *mapping[I, O]) feed(f *feeding[I]) {
	r := m.scope.run
	limit := m.options.Concurrency
	if limit == 0 {
		limit = runtime.GOMAXPROCS(0)
	}
	for v := range f.source {
		n := f.total
		f.total++
		done, again, err := m.recorded(n, v)
		if err != nil {
			m.halt(err)
			break
		}
		if done {
			if again {
				m.replay(n, v)
			}
			continue
		}
		if m.call.done() {
			// The Map had stopped, and was ended with this item undone.
			m.leave(n)
			continue
		}
		if m.scope.ended && m.stays() {
			break // nothing new begins in a scope that has ended
		}
		if r.dead.Load() != nil || n >= m.most && (m.scope.stopped() != nil && m.stays() || m.failedToFold()) {
			break // the source may be endless
		}
		if m.stopped(n) {
			continue
		}
		if len(f.begun) < limit {
			b := &branch{run: r, key: m.call.key, done: make(chan struct{})}
			b.waited.Store(true)
			f.begun = append(f.begun, b)
			r.goroutines.beginBranch(b)
			f.workers.Add(1)
			goroutine.ForBranch(func() { m.worker(f.work, b, &f.workers) })
		}
		m.await(n, limit, f.own)
		m.hand(f.work, item[I]{n: n, value: v}, f.own)
	}
}

// worker takes items until there are no more. When the user's function ends the
// goroutine (runtime.Goexit), another one takes its place.
func (m *mapping[I, O]) worker(work <-chan item[I], b *branch, workers *sync.WaitGroup) {
	over := false
	r := m.scope.run
	st := r.goroutines.begin(nil)
	m.scope.forked.Add(1)
	defer func() {
		m.scope.forked.Add(-1)
		r.goroutines.end(st)
		if !over {
			goroutine.ForBranch(func() { m.worker(work, b, workers) })
			return
		}
		r.goroutines.leave(b)
		r.goroutines.all.Done()
		r.eng.roster.runners.Done()
		workers.Done()
	}()
	for it := range work {
		if it.from != nil {
			// The caller counts as active from here on, although it may be scheduled
			// later: a worker that parks before that must not find the whole run
			// parked.
			r.waits.unpark(it.from)
		}
		// A failure may have come while the item waited for a worker.
		if !m.stopped(it.n) {
			m.do(it, st)
		}
	}
	over = true
}

// hand gives an item to a worker; while all are at work, the caller waits.
func (m *mapping[I, O]) hand(work chan<- item[I], it item[I], own bool) {
	select {
	case work <- it:
		return
	default:
	}
	r, p := m.scope.run, &parking{own: own}
	r.waits.park(p)
	defer r.waits.unpark(p)
	_ = r.waits.sync() // an error is the store's, and the next write gets it too
	r.waits.unload()
	it.from = p
	work <- it
}

// halt stops the Map with an error that is not an item's.
func (m *mapping[I, O]) halt(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop == nil {
		m.stop = err
	}
}

// failedToFold reports whether the user's fold has panicked, or ended its goroutine.
func (m *mapping[I, O]) failedToFold() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fault != nil
}

// stopped reports whether no further item may begin, and if so counts n as not begun.
func (m *mapping[I, O]) stopped(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	cause := m.scope.stopped()
	next := m.stop == nil && cause == nil && (m.options.KeepGoing || len(m.failed) == 0)
	again := m.wasBegun(n) && (m.stop == nil || m.stop == cause || m.fault != nil) && m.scope.run.dead.Load() == nil
	if (next || again) && !m.scope.ended {
		m.under[n] = true
		return false
	}
	delete(m.under, n)
	m.leave(n)
	m.turn.Broadcast()
	return true
}

// wasBegun reports whether item n is known to have begun: it has recorded calls, or had made one when the
// run was stopped. Such an item continues whatever
// has happened to the others since, as it did in the process that began it: the
// compensations it registers must be known when the run is undone.
func (m *mapping[I, O]) wasBegun(n int) bool {
	path := history.ItemKey(m.call.key, n)
	if n >= m.most {
		return false
	}
	_, stopped := m.scope.run.past.Stopped[path]
	return stopped || len(m.scope.run.past.Scopes[path]) > 0
}

// await holds item n back until the oldest item in progress is near enough.
func (m *mapping[I, O]) await(n, limit int, own bool) {
	if !m.window {
		return
	}
	p := &parking{own: own}
	m.scope.run.waits.park(p)
	defer m.scope.run.waits.unpark(p)
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		oldest := n
		for u := range m.under {
			oldest = min(oldest, u)
		}
		if n-oldest < 4*limit {
			return
		}
		m.turn.Wait()
	}
}
