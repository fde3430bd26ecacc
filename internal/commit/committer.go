package commit

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Committer is group commit, by leader and followers: a writer that finds no
// commit in flight commits itself. Writes that arrive meanwhile join the next
// batch, led by one of the waiters. A second batch is sent beside the first only when
// the store does not answer for long; see relieve.
type Committer struct {
	store   store.Store
	limits  store.Limits
	log     *slog.Logger
	measure func(took time.Duration, errs []error)
	// anchor is where the committer's time begins: a moment of the monotonic clock
	// takes half as long to read as one of both clocks.
	anchor time.Time

	// stop ends the wait between tries; closed when the engine gives up.
	stop context.Context

	mu      sync.Mutex
	queue   []*Log   // logs with something to commit and nothing in flight
	leader  *leading // nil: there is no leader
	spare   *leading // its memory, while there is no leader
	shared  int      // how many runs shared the last batch
	retries int      // consecutive failed commits of the store, for the backoff
	flights flights
	paces   paces
	timers  sync.WaitGroup

	standby bool          // a goroutine waits for something to lead
	wake    chan struct{} // makes it lead

	relief   *time.Timer // runs relieve; made when it is first needed
	watching bool        // relief is set
	relieved []*leading  // leaders that another one has replaced
	held     []*Log      // logs that a Hold has to itself
}

// Options configure a Committer.
type Options struct {
	Store store.Store
	Log   *slog.Logger
	// Stop ends when the engine gives up: what the store has not accepted by then is
	// not tried again.
	Stop context.Context
	// Measure gets how long each commit took, and the answers to its changes.
	Measure func(took time.Duration, errs []error)
}

// New returns a Committer. It has no goroutines until it needs one; Abandon gives up
// the remaining work, and Wait waits for the goroutines.
func New(o Options) *Committer {
	return &Committer{store: o.Store, limits: o.Store.Limits(), log: o.Log, measure: o.Measure, anchor: time.Now(), stop: o.Stop, wake: make(chan struct{}, 1)}
}

// Limits returns the store's limits.
func (c *Committer) Limits() store.Limits { return c.limits }

// Wait waits for the goroutines of c, after Abandon.
func (c *Committer) Wait() { c.timers.Wait() }

// Commit records w in a run's log and returns once it is durable, or returns why it
// cannot be. ctx ends the wait only for a write that fails fast; if its context may
// end, the caller leaves leading to another goroutine.
func (c *Committer) Commit(ctx context.Context, lg *Log, w *Write) error {
	c.mu.Lock()
	early := lg.doEarly()
	if err := c.admit(lg, w); err != nil {
		c.mu.Unlock()
		return err
	}
	if c.leader != nil {
		return c.follow(ctx, w)
	}
	l := c.takeLead()
	if w.FailFast && ctx.Done() != nil {
		c.leadBeside()
		return c.follow(ctx, w)
	}
	if !early && c.shared <= 1 && w.size() < promptSize {
		l.now = c.since(w.Clock)
	}
	return c.lead(ctx, w, l)
}

// since returns how long after the anchor t is; zero for the zero time.
func (c *Committer) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(c.anchor)
}

// follow waits, with the mutex held on entry, until w is settled or its turn to
// lead has come.
func (c *Committer) follow(ctx context.Context, w *Write) error {
	w.reply = make(chan bool, 1)
	c.mu.Unlock()
	var abandoned <-chan struct{}
	if w.FailFast {
		abandoned = ctx.Done()
	}
	select {
	case lead := <-w.reply:
		if !lead {
			return w.err
		}
		c.mu.Lock()
		return c.lead(ctx, w, c.leader)
	case <-abandoned:
	}
	c.mu.Lock()
	if w.settled {
		c.mu.Unlock()
		return w.err
	}
	chosen := false
	select {
	case chosen = <-w.reply:
	default:
	}
	w.reply = nil // it has no reader any more
	if chosen {
		c.handOver() // picked to lead at the same moment: another caller must
	}
	c.mu.Unlock()
	return context.Cause(ctx)
}

// admit gives w its place after what lg has pending. The mutex is held.
func (c *Committer) admit(lg *Log, w *Write) error {
	if err := lg.owner.Admit(w); err != nil {
		return err
	}
	if c.stop.Err() != nil {
		return ErrClosed
	}
	lg.unstash()
	if w.Compose != nil {
		w.Compose(w)
	}
	lg.stamp(w.Events, w.Clock)
	if w.Create == nil && !w.Yield {
		w.Row = lg.owner.Row().Over(w.Row)
	}
	if n := len(w.Events); n > 0 {
		w.at = w.Events[n-1].At
		w.Row = EndsAt(w.Row, w.at)
	}
	w.admitted = true
	lg.pending = append(lg.pending, w)
	if !lg.queued && lg.flight == nil {
		c.enqueue(lg)
	}
	return nil
}

// enqueue adds lg to the logs that have something to commit. The current leader is
// watched from then on, because the store may not answer the batch in flight. The
// mutex is held.
func (c *Committer) enqueue(lg *Log) {
	if lg.flight == nil && lg.pending[0].turn != nil {
		c.giveTurn(lg)
		return
	}
	lg.queued = true
	c.queue = append(c.queue, lg)
	if c.leader != nil {
		c.watch(slowAnswer)
	}
}

// promptSize is the size in bytes up to which a write takes so little time to encode
// and to seal that the moment at which its event happened is also the one at which it
// is sent.
const promptSize = 4 << 10

// lead commits batches until w (nil: until there is nothing left) is settled,
// then hands over. The mutex is held on entry and free on return.
func (c *Committer) lead(ctx context.Context, w *Write, l *leading) error {
	for {
		c.gather()
		c.form(l)
		if len(l.flights) > 0 {
			c.mu.Unlock()
			batch := l.build()
			began := l.begin(c.anchor)
			errs := c.store.Commit(context.Background(), batch)
			ended := time.Since(c.anchor)
			c.measure(ended-began, errs)
			c.mu.Lock()
			c.paces.add(ended, ended-began)
			l.sentAt.Store(0)
			c.settle(l.flights, errs)
		}
		if l.relieved {
			return c.afterRelief(ctx, w, l)
		}
		if w != nil && w.settled {
			c.handOver()
			c.mu.Unlock()
			return w.err
		}
		if len(c.queue) == 0 {
			c.leader, c.spare = nil, l
			if w == nil {
				c.mu.Unlock()
				return nil
			}
			return c.follow(ctx, w)
		}
	}
}

// gather lets the callers of the last batch come back before the next batch is
// formed, as long as fewer than half of them are back. It yields the processor,
// which takes no time when no goroutine is ready. The mutex is held.
func (c *Committer) gather() {
	for range 4 {
		if 2*len(c.queue) >= c.shared {
			break
		}
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	c.shared = len(c.queue)
}

// handOver makes one of the waiters the next leader. The mutex is held.
func (c *Committer) handOver() {
	for _, lg := range c.queue {
		for _, w := range lg.unsettled() {
			if w.reply != nil && !w.settled {
				w.reply <- true
				return
			}
		}
	}
	if len(c.queue) == 0 {
		c.leader, c.spare = nil, c.leader
		return
	}
	// All writers have stopped waiting (a cancelled Start): their writes are still
	// committed.
	c.leadBeside()
}

// form takes the next batch off the queue: at most one flight per id, bounded by
// count and bytes. The mutex is held.
func (c *Committer) form(l *leading) {
	l.flights, l.batch = l.flights[:0], l.batch[:0]
	if len(c.queue) == 1 && c.queue[0].flight == nil && len(c.queue[0].pending) == 1 {
		// The usual case of a single run: there is nothing to measure or sort.
		lg := c.queue[0]
		c.queue = c.queue[:0]
		lg.takeOff(c.flights.next())
		lg.queued = false
		l.flights = append(l.flights, lg)
		return
	}
	size, full := 0, false
	clear(l.ids)
	kept := c.queue[:0]
	for _, lg := range c.queue {
		if full = full || len(l.flights) == c.limits.Changes; full {
			kept = append(kept, lg)
			continue
		}
		// An id that is started again while its last execution makes way has two
		// logs; a batch takes one of them.
		if _, twice := l.ids[lg.id]; twice {
			kept = append(kept, lg)
			continue
		}
		f := lg.flight
		if f == nil {
			f = lg.takeOff(c.flights.next())
		}
		for _, w := range f.writes {
			size += w.size()
		}
		if size > c.limits.Batch && len(l.flights) > 0 {
			if !f.again {
				lg.putBack()
			}
			kept, full = append(kept, lg), true
			continue
		}
		lg.queued = false
		l.ids[lg.id] = struct{}{}
		l.flights = append(l.flights, lg)
		l.batch = append(l.batch, store.Change{})
	}
	c.queue = kept
}
