package durable

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// MapOptions say how Map goes over its items. The zero value takes as many at a
// time as the machine has processors, and stops at the first failure.
type MapOptions struct {
	// Concurrency is how many items are under way at a time; 0: GOMAXPROCS.
	Concurrency int
	// KeepGoing goes on after a failed item: the others are done, and the
	// failed ones are in the *MapError.
	KeepGoing bool
}

// ItemError is an item of a Map that failed: an entry of the dead-letter list.
type ItemError struct {
	Index int
	Key   string // "items[17]"
	Err   error  // as recorded
	// Attempts is how many attempts the step whose error it is had made; 1 when
	// it is not the error of a step.
	Attempts int
}

func (e *ItemError) Error() string { return fmt.Sprintf("%s: %v", e.Key, e.Err) }

func (e *ItemError) Unwrap() error { return e.Err }

// MapError says which items of a Map failed. What the others came to is in the
// results, which are valid beside it.
type MapError struct {
	RunID  string
	Key    string // of the Map
	Failed []*ItemError
	// Undone is how many items were not begun, because Map stopped.
	Undone int

	undone []int // their indexes; of a MapSeq nil
}

func (e *MapError) Error() string {
	s := fmt.Sprintf("map %s: %d items failed", e.Key, len(e.Failed))
	if len(e.Failed) > 0 {
		s += fmt.Sprintf(", the first is %v", e.Failed[0])
	}
	if e.Undone > 0 {
		s += fmt.Sprintf("; %d were not begun", e.Undone)
	}
	return s
}

// Unwrap returns the errors of the items.
func (e *MapError) Unwrap() []error {
	errs := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		errs[i] = f
	}
	return errs
}

// Map runs fn on every item, several at a time, and returns the results in the
// order of the items. Each item is a scope of its own, "name[17]", in which fn
// makes durable calls with the context it is given; its result, or its final
// error, costs one write. After a crash, items that are done are not done again,
// and those that were under way are.
//
// The items must be the same on replay: a hash of each is kept with its outcome.
// With failures the error is a *MapError, and the results are valid for the
// items that have not failed.
func Map[I, O any](ctx context.Context, name string, in []I, o MapOptions, fn func(ctx context.Context, item I) (O, error)) ([]O, error) {
	out := make([]O, len(in))
	if fn == nil {
		return nil, fmt.Errorf("durable: Map %q: the function is nil: %w", name, ErrInvalid)
	}
	keep := func(n int, v O) { out[n] = v }
	if err := mapItems(ctx, name, in, o, fn, keep); err != nil {
		if me := (*MapError)(nil); errors.As(err, &me) {
			return out, err
		}
		return nil, err
	}
	return out, nil
}

// MapSeq is Map over a source that need not fit into memory, folded into one
// value in the order of the items. The source is read from its beginning on
// every replay and must yield the same items; fold is called from one goroutine
// at a time and must have no side effects.
// With failures the error is a *MapError, and the failed items are left out.
func MapSeq[I, O, A any](ctx context.Context, name string, in iter.Seq[I], o MapOptions, fn func(ctx context.Context, item I) (O, error), acc A, fold func(A, O) A) (A, error) {
	if fn == nil || fold == nil || in == nil {
		return acc, fmt.Errorf("durable: MapSeq %q: a function is nil: %w", name, ErrInvalid)
	}
	// Results arrive in any order and are folded in order: what is ahead of a
	// slow item waits, and there is never more of it than is under way.
	ahead := map[int]O{}
	failed := map[int]bool{}
	next := 0
	drain := func() {
		for {
			v, ok := ahead[next]
			switch {
			case ok:
				acc = fold(acc, v)
				delete(ahead, next)
			case failed[next]:
				delete(failed, next)
			default:
				return
			}
			next++
		}
	}
	m := mapping[I, O]{
		options: o, fn: fn, window: true,
		keep: func(n int, v O) { ahead[n] = v; drain() },
		miss: func(n int) { failed[n] = true; drain() },
	}
	err := m.perform(ctx, name, in)
	return acc, err
}

func mapItems[I, O any](ctx context.Context, name string, in []I, o MapOptions, fn func(context.Context, I) (O, error), keep func(int, O)) error {
	m := mapping[I, O]{options: o, fn: fn, items: in, keep: keep, miss: func(int) {}}
	return m.perform(ctx, name, slices.Values(in))
}

// mapping is one Map under way.
type mapping[I, O any] struct {
	options MapOptions
	fn      func(context.Context, I) (O, error)
	items   []I // nil: known one by one only
	// keep and miss take the outcome of an item; they are called one at a time.
	keep func(n int, v O)
	miss func(n int)
	// window bounds how far the items under way may be apart.
	window bool

	scope *scope
	call  call
	ctx   context.Context

	mu     sync.Mutex
	turn   *sync.Cond // the oldest item under way is over
	under  map[int]bool
	failed []*ItemError
	stop   error // no further item begins
	undone int
	left   []int // the indexes of the undone, unless the source is larger than memory
}

// item is one element on its way to a worker.
type item[I any] struct {
	n     int
	value I
	hash  string // of the value as it was given; empty: it has none
}

func (m *mapping[I, O]) perform(ctx context.Context, name string, in iter.Seq[I]) error {
	s, err := scopeOf(ctx, name)
	if err != nil {
		return err
	}
	if m.options.Concurrency < 0 {
		return fmt.Errorf("durable: Map %q: the concurrency is negative: %w", name, ErrInvalid)
	}
	if err := s.begin(&m.call, name, callMap); err != nil {
		return err
	}
	defer s.end()
	m.scope, m.ctx = s, ctx
	m.turn = sync.NewCond(&m.mu)
	m.under = map[int]bool{}
	r := s.run
	if m.call.rec != nil {
		s.lastAt = max(s.lastAt, m.call.rec.openedAt)
	} else {
		s.stash(&m.call, store.Event{Type: store.StepStarted, Data: (&eventData{Kind: callMap}).encode()})
	}
	if !m.call.done() {
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
	if err == nil && m.items == nil {
		err = m.count(total)
	}
	if err != nil {
		return err
	}
	if m.call.done() {
		if m.undone > 0 && len(m.failed) == 0 {
			// Only a failure leaves items undone: their outcomes are gone.
			return r.damaged(m.call.rec.outcome.Seq, fmt.Errorf("%s has ended without a failure, and %d of its items have no outcome", m.call.key, m.undone))
		}
		s.lastAt = m.call.rec.lastAt
	} else {
		// Its end rides along with what comes next: the items are durable.
		s.stash(&m.call, store.Event{Type: store.StepCompleted, Data: (&eventData{Kind: callMap, Items: total}).encode()})
	}
	if len(m.failed) == 0 {
		return nil
	}
	slices.SortFunc(m.failed, func(a, b *ItemError) int { return a.Index - b.Index })
	slices.Sort(m.left)
	return &MapError{RunID: r.id, Key: m.call.key, Failed: m.failed, Undone: m.undone, undone: m.left}
}

// leave counts an item that is not begun. The mutex is held, or nobody else is
// at work.
func (m *mapping[I, O]) leave(n int) {
	m.undone++
	if !m.window {
		m.left = append(m.left, n)
	}
}

// distribute hands the items to workers and returns how many there were.
func (m *mapping[I, O]) distribute(in iter.Seq[I]) (total int, err error) {
	r := m.scope.run
	limit := m.options.Concurrency
	if limit == 0 {
		limit = runtime.GOMAXPROCS(0)
	}
	work := make(chan item[I])
	var workers sync.WaitGroup
	begun := 0
	own := onGoroutineOfOurs()
	var bs []*branch
	for v := range in {
		n := total
		total++
		if done, err := m.recorded(n, v); done || err != nil {
			if err != nil {
				m.halt(err)
				break
			}
			continue
		}
		if m.call.done() {
			// The Map was ended with this item undone: it had stopped.
			m.leave(n)
			continue
		}
		if r.dead.Load() != nil {
			break // the source may be endless
		}
		if m.stopped(n) {
			continue
		}
		if begun < limit {
			begun++
			b := &branch{run: r, key: m.call.key, done: make(chan struct{})}
			b.waited.Store(true)
			bs = append(bs, b)
			r.begin(b)
			workers.Add(1)
			go m.worker(work, b, &workers)
		}
		m.await(n, limit, own)
		m.hand(work, item[I]{n: n, value: v}, own)
	}
	close(work)
	for _, b := range bs {
		if joinErr := r.join(own, b); joinErr != nil {
			err = joinErr
		}
	}
	workers.Wait()
	if err == nil && !m.call.done() {
		err = m.scope.stopped()
	}
	if err == nil {
		err = m.stop
	}
	return total, err
}

// worker takes items until there are no more. When the user's function ends the
// goroutine (runtime.Goexit), another one takes its place.
func (m *mapping[I, O]) worker(work <-chan item[I], b *branch, workers *sync.WaitGroup) {
	over := false
	r := m.scope.run
	st := r.newStrand(nil)
	m.scope.forked.Add(1)
	defer func() {
		m.scope.forked.Add(-1)
		r.endStrand(st)
		if !over {
			go m.worker(work, b, workers)
			return
		}
		r.leave(b)
		r.goroutines.Done()
		r.eng.runners.Done()
		workers.Done()
	}()
	for it := range work {
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
	r.park(p)
	defer r.unpark(p)
	_ = r.syncRow() // an error is of the store, and the next write meets it
	r.unload()
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

// stopped reports whether no further item may begin, and counts n if so.
func (m *mapping[I, O]) stopped(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop == nil && (m.options.KeepGoing || len(m.failed) == 0) && m.scope.stopped() == nil {
		m.under[n] = true
		return false
	}
	delete(m.under, n)
	m.leave(n)
	m.turn.Broadcast()
	return true
}

// await holds item n back until the oldest item under way is near enough.
func (m *mapping[I, O]) await(n, limit int, own bool) {
	if !m.window {
		return
	}
	p := &parking{own: own}
	m.scope.run.park(p)
	defer m.scope.run.unpark(p)
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

// recorded takes the outcome of an item from the history, if it has one.
func (m *mapping[I, O]) recorded(n int, v I) (bool, error) {
	r := m.scope.run
	if r.past == nil {
		return false, nil
	}
	ev := r.past.items[m.call.key][n]
	if ev == nil {
		return false, nil
	}
	d, err := dataOf(ev)
	if err == nil && ev.Type == store.ItemFailed && d.Error == nil {
		err = errors.New("its error is not readable")
	}
	if err != nil {
		return false, r.damaged(ev.Seq, err)
	}
	hash, err := m.hash(v)
	if err != nil {
		return false, err
	}
	if otherValue(d.Input, hash) {
		return false, m.otherItem(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ev.Type == store.ItemFailed {
		m.failed = append(m.failed, &ItemError{Index: n, Key: ev.Key, Err: r.eng.errors.restore(d.Error), Attempts: max(d.Attempts, 1)})
		m.miss(n)
		return true, nil
	}
	var out O
	if !fastDecode(ev.Payload, &out) {
		if recorded, err := r.eng.decode(placeOf(r.id, ev), ev.Payload, &out); err != nil {
			return false, r.undecodable(ev.Key, recorded, reflect.TypeFor[O](), err)
		}
	}
	m.keep(n, out)
	return true, nil
}

// mostItems returns one more than the highest recorded item of a Map.
func (p *past) mostItems(key string) int {
	most := p.begun[key]
	for n := range p.items[key] {
		most = max(most, n+1)
	}
	return most
}

// hash tells items apart.
func (m *mapping[I, O]) hash(v I) (string, error) {
	b, err := m.scope.run.eng.codec.Encode(v)
	if err != nil {
		return "", &EncodeError{RunID: m.scope.run.id, Key: m.call.key, Type: reflect.TypeFor[I]().String(), Err: err}
	}
	sum := sha256.Sum256(b)
	return m.scope.run.eng.fingerprint(reflect.TypeFor[I](), hex.EncodeToString(sum[:8])), nil
}

// do runs the function on one item and records what it came to.
func (m *mapping[I, O]) do(it item[I], st *strand) {
	var out O
	ok := false
	err := error(ErrGoexit)
	var payload []byte
	key := itemKey(m.call.key, it.n)
	inner := m.scope.child(key, m.call.ordinal, int32(it.n+1))
	ctx := m.ctx
	st.scope.Store(inner)
	defer func() {
		st.scope.Store(nil)
		if v := recover(); v != nil {
			payload, err = nil, newPanicError(v)
		}
		failure := m.record(key, inner, it, payload, err)
		_, failed := failure.(*ItemError)
		inner.endSpan(failure, failure == nil || failed)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.under, it.n)
		m.turn.Broadcast()
		switch {
		case failure == nil && ok:
			m.keep(it.n, out)
		case failure != nil:
			var ie *ItemError
			if errors.As(failure, &ie) {
				m.failed = append(m.failed, ie)
				m.miss(it.n)
			} else if m.stop == nil {
				m.stop = failure
			}
		}
	}()
	// Taken before fn may change what the item points to.
	hash, bad := m.hash(it.value)
	it.hash = hash
	if bad == nil {
		bad = m.identify(inner, it.n, hash)
	}
	if bad != nil {
		err = bad
		return
	}
	ctx = inner.traceAs(ctx, "item", key[len(scopeOfKey(key)):])
	var value O
	if value, err = m.fn(&scopeContext{Context: ctx, scope: inner}, it.value); err != nil {
		return
	}
	if payload, out, err = encode(m.scope.run.eng, value); err != nil {
		err = Permanent(&EncodeError{RunID: m.scope.run.id, Key: key, Type: reflect.TypeFor[O]().String(), Err: err})
		return
	}
	ok = true
}

// record writes the outcome of an item: nil, an *ItemError as a replay will
// give it, or why nothing could be recorded.
func (m *mapping[I, O]) record(key string, inner *scope, it item[I], payload []byte, err error) error {
	r := m.scope.run
	if it.hash == "" {
		return err // it was not begun: its hash could not be taken
	}
	if err == nil {
		if err = inner.forgotten(); err != nil {
			payload = nil
		}
	}
	if stopped := inner.stopped(); stopped != nil {
		return stopped
	}
	if changed := inner.finish(); changed != nil {
		return changed
	}
	d := &eventData{Input: it.hash, Items: len(m.items)}
	ev := store.Event{Type: store.ItemCompleted, Key: key, Ordinal: int32(it.n + 1), Payload: payload}
	if err != nil {
		ev.Type = store.ItemFailed
		d.Error = r.eng.errors.record(err)
		if st, ok := findError[*StepError](err); ok {
			d.Attempts = st.Attempt
		}
	}
	ev.Data = d.encode()
	if err := r.write(&write{events: []store.Event{ev}}); err != nil {
		return err
	}
	if err == nil {
		return nil
	}
	return &ItemError{Index: it.n, Key: key, Err: r.eng.errors.restore(d.Error), Attempts: max(d.Attempts, 1)}
}
