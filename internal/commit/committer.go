package commit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// A Committer is group commit, by leader and followers: a writer that finds no
// commit in flight commits itself. Writes that arrive meanwhile join the next
// batch, led by one of the waiters. Large writes have batches of their own (see lane). A
// second batch of a lane is sent beside the first if that helps the store and many runs
// wait, or when the store does not answer for long; see relieve.
type Committer struct {
	store   store.Store
	late    store.LateCommitter // nil: the store takes a batch as it is
	limits  store.Limits
	log     *slog.Logger
	measure func(took time.Duration, errs []error)
	// anchor is where the committer's time begins: a moment of the monotonic clock
	// takes half as long to read as one of both clocks.
	anchor time.Time

	// stop ends the wait between tries; closed when the engine gives up.
	stop context.Context

	mu           sync.Mutex
	small, large lane
	retries      int // consecutive failed commits of the store, for the backoff
	flights      flights
	paces        paces
	timers       sync.WaitGroup

	standby bool          // a goroutine waits for something to lead
	wake    chan *leading // makes it lead

	relieved []*leading // leaders that another one has replaced
	held     []*Log     // logs that a Hold has to itself
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
	limits, can := o.Store.Limits(), store.CapabilitiesOf(o.Store)
	return &Committer{
		store: o.Store, late: can.LateCommitter, limits: limits, log: o.Log, measure: o.Measure, anchor: time.Now(), stop: o.Stop, wake: make(chan *leading, 1),
		small: lane{most: can.ParallelCommits, bytes: limits.Batch},
		large: lane{most: 1, bytes: min(largeBatch, limits.Batch)},
	}
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
	if err := c.place(lg, w); err != nil {
		c.mu.Unlock()
		return err
	}
	if c.isAlone(lg, w) && !(w.FailFast && ctx.Done() != nil) {
		return c.commitAlone(ctx, lg, w, early)
	}
	ln := c.route(lg, w)
	if !ln.wantsLeader() {
		return c.follow(ctx, w)
	}
	l := ln.takeLead()
	if w.FailFast && ctx.Done() != nil {
		c.leadBeside(l)
		return c.follow(ctx, w)
	}
	if !early && l.shared <= 1 && w.bytes < promptSize {
		l.now = c.since(w.Clock)
	}
	return c.lead(ctx, w, l)
}

// CommitNow is Commit if that begins at once: no batch of a leader is in flight, and nothing of lg waits.
// Otherwise it does nothing, and began is false.
func (c *Committer) CommitNow(lg *Log, w *Write) (began bool, err error) {
	c.mu.Lock()
	if !c.idle() || lg.Busy() || lg.StashesLocked() || len(lg.early) > 0 {
		c.mu.Unlock()
		return false, nil
	}
	ln, err := c.admit(lg, w)
	if err != nil {
		c.mu.Unlock()
		return false, err
	}
	return true, c.lead(context.Background(), w, ln.takeLead())
}

// Idle reports whether no leader commits. Batches that the store does not answer, and whose leader
// was replaced, do not count.
func (c *Committer) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idle()
}

// idle is Idle, with the mutex held.
func (c *Committer) idle() bool { return len(c.small.leaders) == 0 && len(c.large.leaders) == 0 }

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
	w.reply, w.chosen = make(chan *leading, 1), false
	c.mu.Unlock()
	var abandoned <-chan struct{}
	if w.FailFast {
		abandoned = ctx.Done()
	}
	select {
	case l := <-w.reply:
		if l == nil {
			return w.err
		}
		c.mu.Lock()
		return c.lead(ctx, w, l)
	case <-abandoned:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var l *leading
	select {
	case l = <-w.reply:
	default:
	}
	w.reply = nil // it has no reader any more
	if l != nil {
		// Picked to lead at the same moment: another caller must, even if another leader has
		// committed w meanwhile.
		c.handOver(l)
	}
	if w.settled {
		return w.err
	}
	return context.Cause(ctx)
}

// admit gives w its place after what lg has pending, and returns the lane that commits it.
// The mutex is held.
func (c *Committer) admit(lg *Log, w *Write) (*lane, error) {
	if err := c.place(lg, w); err != nil {
		return nil, err
	}
	return c.route(lg, w), nil
}

// place completes w, which then follows what lg has pending. The mutex is held.
func (c *Committer) place(lg *Log, w *Write) error {
	if err := lg.admits(w); err != nil {
		return err
	}
	if c.stop.Err() != nil {
		return ErrClosed
	}
	events := lg.unstash(w.Alone)
	if w.Compose != nil {
		w.Compose(w)
	}
	lg.stamp(w.Events, w.Clock)
	if w.Create == nil && !w.Yield {
		w.Row = lg.owner.Row(events || len(w.Events) > 0).Over(w.Row)
	}
	if n := len(w.Events); n > 0 {
		w.at = w.Events[n-1].At
		w.Row = EndsAt(w.Row, w.at)
	}
	w.admitted, w.bytes, w.run = true, w.size(), lg.id
	return nil
}

// route makes w, which has its place, pending, and returns the lane that commits it. The mutex
// is held.
func (c *Committer) route(lg *Log, w *Write) *lane {
	lg.pending = append(lg.pending, w)
	switch {
	case lg.queued != nil:
		return c.reroute(lg)
	case lg.flight == nil:
		return c.enqueue(lg)
	}
	return c.laneOf(lg)
}

// laneOf returns the lane of what lg has in flight, or else of what is pending.
func (c *Committer) laneOf(lg *Log) *lane {
	if slices.ContainsFunc(lg.unsettled(), (*Write).isLarge) {
		return &c.large
	}
	return &c.small
}

// lanes returns all lanes.
func (c *Committer) lanes() [2]*lane { return [2]*lane{&c.small, &c.large} }

// call makes one of the waiters a leader, or another goroutine, if the lane wants one.
func (c *Committer) call(ln *lane) {
	if ln.wantsLeader() && c.stop.Err() == nil {
		c.handOver(ln.takeLead())
	}
}

// enqueue adds lg to the logs that have something to commit. The leaders are watched from
// then on, because the store may not answer what is in flight. The caller leads, or sees to
// it that somebody does (call). The mutex is held.
func (c *Committer) enqueue(lg *Log) *lane {
	if lg.flight == nil && lg.pending[0].turn != nil {
		c.giveTurn(lg)
		return &c.small
	}
	ln := c.laneOf(lg)
	lg.queued = ln
	ln.queue = append(ln.queue, lg)
	if len(ln.leaders) > 0 {
		c.watch(ln, slowAnswer)
	}
	return ln
}

// reroute moves a log that is in a queue to the lane that its writes belong to, when one has
// been added. The mutex is held.
func (c *Committer) reroute(lg *Log) *lane {
	if ln := c.laneOf(lg); ln == lg.queued {
		return ln
	}
	from := lg.queued
	from.queue = slices.DeleteFunc(from.queue, func(o *Log) bool { return o == lg })
	return c.enqueue(lg)
}

// isAlone reports whether w, which has its place, is all that there is to commit, and nothing
// but a few small events. It is not if its batch would wait for others, because they shared the
// last one (see gather). The mutex is held.
func (c *Committer) isAlone(lg *Log, w *Write) bool {
	ln := &c.small
	return c.late == nil && len(ln.leaders) == 0 && len(ln.queue) == 0 && (ln.spare == nil || ln.spare.shared <= 2) &&
		lg.queued == nil && lg.flight == nil && len(lg.pending) == 0 && w.bytes < promptSize && w.plain()
}

// commitAlone leads a batch of w alone, which passes through no queue. While it is in flight
// it is a batch like any other: it is watched, relieved and abandoned. early: doEarly did
// something. The mutex is held on entry and free on return.
func (c *Committer) commitAlone(ctx context.Context, lg *Log, w *Write, early bool) error {
	l, f := c.small.takeLead(), c.flights.next()
	if !early {
		l.now = c.since(w.Clock)
	}
	f.writes, f.again, f.sent = append(f.writes[:0], w), false, sent{}
	lg.flight = f
	l.flights, l.shared = append(l.flights[:0], lg), 1
	c.mu.Unlock()
	batch := lg.build()
	began := l.begin(c.anchor)
	c.hear(l, began, c.store.Commit(context.Background(), batch))
	if over, err := c.led(ctx, w, l); over {
		return err
	}
	return c.lead(ctx, w, l)
}

// promptSize is the size in bytes up to which a write takes so little time to encode
// and to seal that the moment at which its event happened is also the one at which it
// is sent.
const promptSize = 4 << 10

// lead commits batches until w (nil: until there is nothing left) is settled,
// then hands over. The mutex is held on entry and free on return.
func (c *Committer) lead(ctx context.Context, w *Write, l *leading) error {
	if l.of = ""; w != nil {
		l.of = w.run
	}
	for {
		c.gather(l)
		c.send(l)
		if over, err := c.led(ctx, w, l); over {
			return err
		}
	}
}

// led decides, after a batch, whether l leads another one. If not, the mutex is free on return.
func (c *Committer) led(ctx context.Context, w *Write, l *leading) (over bool, err error) {
	if l.relieved {
		return true, c.afterRelief(ctx, w, l)
	}
	if w != nil && w.settled {
		c.handOver(l)
		c.mu.Unlock()
		return true, w.err
	}
	if len(l.lane.queue) > 0 {
		return false, nil
	}
	l.lane.end(l)
	if w == nil {
		c.mu.Unlock()
		return true, nil
	}
	return true, c.follow(ctx, w)
}

// handOver makes one of the waiters lead in place of l. The mutex is held.
func (c *Committer) handOver(l *leading) {
	ln := l.lane
	for _, lg := range ln.queue {
		for _, w := range lg.unsettled() {
			if w.reply != nil && !w.settled && !w.chosen {
				w.chosen = true // no other leader hands over to it
				w.reply <- l
				return
			}
		}
	}
	if len(ln.queue) == 0 || len(ln.leaders) > 1 {
		ln.end(l) // another leader looks at the queue before it ends
		return
	}
	// All writers have stopped waiting (a cancelled Start): their writes are still
	// committed.
	c.leadBeside(l)
}
