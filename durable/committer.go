package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// committer is group commit, by leader and followers: a writer that finds no
// commit in flight commits itself. Writes that arrive meanwhile join the next
// batch, led by one of those who wait. Only when the store does not answer for
// long is a second batch sent beside the first; see relieve.
type committer struct {
	store   store.Store
	limits  store.Limits
	log     *slog.Logger
	metrics *metrics
	paces   paces

	// stop ends the wait between tries; closed when the engine gives up.
	stop context.Context

	mu      sync.Mutex
	queue   []*run   // with something to commit and nothing in flight
	leader  *leading // nil: nobody leads
	spare   *leading // its space, while nobody leads
	shared  int      // how many runs shared the last batch
	retries int      // consecutive failed commits of the store, for the backoff
	timers  sync.WaitGroup

	standby bool          // a goroutine waits for something to lead
	wake    chan struct{} // has it lead

	relief   *time.Timer // runs relieve; made when it is first needed
	watching bool        // relief is set
	relieved []*leading  // those in whose place another one leads
}

// leading is who leads, from one batch to the next.
type leading struct {
	sentAt   atomic.Int64 // when the store was given the batch, in nanoseconds; 0: it is not out
	relieved bool         // another one leads in its place

	// Used by the leader only.
	batch   []store.Change
	flights []*run
	ids     map[string]struct{} // of the runs in flights, but for a lone one
}

// commit records w in r's log and returns once it is durable, or why it cannot
// be. ctx ends the wait only for a write that fails fast: its caller, if that has a
// context that may end, leaves it to another goroutine to lead.
func (c *committer) commit(ctx context.Context, r *run, w *write) error {
	c.mu.Lock()
	r.log.export()
	if err := c.admit(r, w); err != nil {
		c.mu.Unlock()
		return err
	}
	if c.leader != nil {
		return c.follow(ctx, w)
	}
	l := c.takeLead()
	if w.failFast && ctx.Done() != nil {
		c.leadBeside()
		return c.follow(ctx, w)
	}
	return c.lead(ctx, w, l)
}

// takeLead makes the caller the leader. The mutex is held.
func (c *committer) takeLead() *leading {
	l := c.spare
	if c.spare = nil; l == nil {
		l = &leading{ids: map[string]struct{}{}}
	}
	c.leader = l
	return l
}

// follow waits, with the mutex held on entry, until w is settled or its turn to
// lead has come.
func (c *committer) follow(ctx context.Context, w *write) error {
	w.reply = make(chan bool, 1)
	c.mu.Unlock()
	var abandoned <-chan struct{}
	if w.failFast {
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
	w.reply = nil // nobody reads it any more
	if chosen {
		c.handOver() // picked to lead in the same moment: somebody else must
	}
	c.mu.Unlock()
	return context.Cause(ctx)
}

// admit gives w its place behind what r has pending. The mutex is held.
func (c *committer) admit(r *run, w *write) error {
	if d := r.dead.Load(); d != nil && (d.kind == deathLost || d.kind == deathUnloaded || d.kind == deathRenewed && !w.ends()) {
		return d.err
	}
	if c.stop.Err() != nil {
		return ErrClosed
	}
	if r.rehearsal != nil {
		return ErrUnloaded // it comes from nowhere that knows of rehearsals, and must not be recorded
	}
	r.log.unstash()
	if w.compose != nil {
		w.compose(w)
	}
	r.log.stamp(w.events, w.clock)
	if w.parks != nil {
		w.parks.unsaid = false
	}
	if w.create == nil && !w.yield {
		w.row = r.waits.follow().Over(w.row)
	}
	if n := len(w.events); n > 0 {
		w.at = w.events[n-1].At
		w.row = endsAt(w.row, w.at)
	}
	w.admitted = true
	r.log.pending = append(r.log.pending, w)
	if !r.log.queued && r.log.flight == nil {
		c.enqueue(r)
	}
	return nil
}

// enqueue gives r a place among those who have something to commit. Whoever leads
// is watched from then on: the store may be silent about the batch that is out. The
// mutex is held.
func (c *committer) enqueue(r *run) {
	r.log.queued = true
	c.queue = append(c.queue, r)
	if c.leader != nil {
		c.watch(slowAnswer)
	}
}

// lead commits batches until w (nil: until there is nothing left) is settled,
// then hands over. The mutex is held on entry and free on return.
func (c *committer) lead(ctx context.Context, w *write, l *leading) error {
	for {
		c.gather()
		c.form(l)
		if len(l.flights) > 0 {
			c.mu.Unlock()
			for i, r := range l.flights {
				l.batch[i] = r.log.build()
			}
			began := time.Now()
			l.sentAt.Store(began.UnixNano())
			errs := c.store.Commit(context.Background(), l.batch)
			ended := time.Now()
			c.paces.add(ended, ended.Sub(began))
			c.metrics.measureCommit(ended.Sub(began), len(errs), errs)
			c.mu.Lock()
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

// A batch that is out for longer than slowAnswer does not hold up the runs that are
// not in it: at most maxRelieved others are sent beside it.
const (
	slowAnswer  = time.Second
	maxRelieved = 4
)

// watch sees to it that a leader which gets no answer is relieved. The mutex is
// held.
func (c *committer) watch(wait time.Duration) {
	switch {
	case c.watching || c.stop.Err() != nil:
		return
	case c.relief == nil:
		c.relief = time.AfterFunc(wait, c.relieve)
	default:
		c.relief.Reset(wait)
	}
	c.watching = true
}

// relieve puts another leader in the place of one whose batch the store has not
// answered for long, if there is something to commit. Each run has one flight at
// most, so nothing of a run overtakes what the store is silent about.
func (c *committer) relieve() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watching = false
	l := c.leader
	if l == nil || len(c.queue) == 0 || c.stop.Err() != nil {
		return
	}
	sentAt := l.sentAt.Load()
	out := time.Duration(time.Now().UnixNano() - sentAt)
	switch {
	case sentAt == 0, len(c.relieved) == maxRelieved:
		c.watch(slowAnswer)
		return
	case out < slowAnswer:
		c.watch(slowAnswer - max(out, 0))
		return
	}
	if len(c.relieved) == 0 {
		c.log.Warn("durable: the store does not answer a commit; runs that are not part of it go on beside it", "runs", len(l.flights))
	}
	l.relieved = true
	c.relieved = append(c.relieved, l)
	c.takeLead()
	c.leadBeside()
	c.watch(slowAnswer)
}

// leadBeside has the leader lead on a goroutine of its own: a caller whose context
// ends must not be held by a store that is silent. One such goroutine stays for the
// next time: it has the stack that a commit needs, and to grow that anew takes
// longer than the rest of a Start on a fast disk. The mutex is held.
func (c *committer) leadBeside() {
	if c.standby {
		c.standby = false
		c.wake <- struct{}{}
		return
	}
	c.timers.Go(func() {
		for led := true; led; led = c.standBy() {
			c.mu.Lock()
			_ = c.lead(context.Background(), nil, c.leader)
		}
	})
}

// standBy waits until there is something to lead. It returns false at once if
// another goroutine waits already, and when the engine gives up.
func (c *committer) standBy() bool {
	c.mu.Lock()
	if c.standby {
		c.mu.Unlock()
		return false
	}
	c.standby = true
	c.mu.Unlock()
	select {
	case <-c.wake:
		return true
	case <-c.stop.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standby {
		c.standby = false
		return false
	}
	<-c.wake // it was called in the same moment
	return true
}

// afterRelief is the end of a leader in whose place another one leads. The mutex
// is held on entry and free on return.
func (c *committer) afterRelief(ctx context.Context, w *write, l *leading) error {
	c.relieved = slices.DeleteFunc(c.relieved, func(r *leading) bool { return r == l })
	if c.leader == nil && len(c.queue) > 0 {
		c.takeLead()
		c.handOver()
	}
	if w == nil || w.settled {
		defer c.mu.Unlock()
		if w == nil {
			return nil
		}
		return w.err
	}
	return c.follow(ctx, w)
}

// gather lets those who were just served come back before the next batch is
// formed, if more of them shared the last one than are here again: it yields the
// processor, which takes no time where nobody is ready. The mutex is held.
func (c *committer) gather() {
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

// handOver makes one of the waiting the next leader. The mutex is held.
func (c *committer) handOver() {
	for _, r := range c.queue {
		for _, w := range r.log.unsettled() {
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
	// All who wrote have stopped waiting (a cancelled Start): their writes
	// are committed all the same.
	c.leadBeside()
}

// form takes the next batch off the queue: at most one flight an id, bounded by
// count and bytes. The mutex is held.
func (c *committer) form(l *leading) {
	l.flights, l.batch = l.flights[:0], l.batch[:0]
	if len(c.queue) == 1 && c.queue[0].log.flight == nil && len(c.queue[0].log.pending) == 1 {
		// The usual case of a lone run: there is nothing to weigh or to sort.
		r := c.queue[0]
		c.queue = c.queue[:0]
		r.log.takeOff()
		r.log.queued = false
		l.flights = append(l.flights, r)
		l.batch = append(l.batch, store.Change{})
		return
	}
	size, full := 0, false
	clear(l.ids)
	kept := c.queue[:0]
	for _, r := range c.queue {
		if full = full || len(l.flights) == c.limits.Changes; full {
			kept = append(kept, r)
			continue
		}
		// Of an id that is started again while its last execution makes way there are
		// two; a batch takes one.
		if _, twice := l.ids[r.id]; twice {
			kept = append(kept, r)
			continue
		}
		f := r.log.flight
		if f == nil {
			f = r.log.takeOff()
		}
		for _, w := range f.writes {
			size += w.size()
		}
		if size > c.limits.Batch && len(l.flights) > 0 {
			if !f.again {
				r.log.putBack()
			}
			kept, full = append(kept, r), true
			continue
		}
		r.log.queued = false
		l.ids[r.id] = struct{}{}
		l.flights = append(l.flights, r)
		l.batch = append(l.batch, store.Change{})
	}
	c.queue = kept
}

// settle deals with the answers to a batch. The mutex is held.
func (c *committer) settle(flights []*run, errs []error) {
	var stuck []*run
	var why error
	for i, r := range flights {
		err := errs[i]
		if errors.Is(err, store.ErrUnknown) {
			r.log.flight.unknown = true
		}
		switch {
		case len(r.log.flight.writes) == 0: // given up
			c.land(r, err)
		case err == nil:
			c.land(r, nil)
		case errors.Is(err, store.ErrClosed):
			r.die(&death{kind: deathLost, err: ErrClosed})
			answer := ErrClosed
			if r.log.flight.unknown {
				answer = unknownBecause(err, ErrClosed)
			}
			c.land(r, answer)
		case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrOwned), errors.Is(err, store.ErrNotFound):
			r.die(&death{kind: deathLost, err: fmt.Errorf("%w: %w", ErrLost, err)})
			c.land(r, ErrLost)
		case definite(err):
			c.refuse(r, err)
		case r.log.flight.mayFail() && !r.log.flight.unknown:
			r.log.handBack()
			c.land(r, fmt.Errorf("%w: %w", ErrUnavailable, err))
		default:
			stuck, why = append(stuck, r), err
		}
	}
	if len(stuck) == 0 {
		if c.retries > 0 {
			c.log.Info("durable: the store is available again")
		}
		c.retries = 0
		return
	}
	c.again(stuck, why)
}

// refuse tells the writers of a flight that its change was refused. When it
// carried several writes, each is tried by itself, so that only the culprit
// fails. The mutex is held.
func (c *committer) refuse(r *run, err error) {
	r.log.handBack()
	r.waits.rowSays = rowState{} // whatever it was to become
	if len(r.log.flight.writes) == 1 {
		c.land(r, err)
		return
	}
	for _, w := range r.log.flight.writes {
		w.alone = true
	}
	r.log.putBack()
	c.enqueue(r)
}

// land ends a flight. The mutex is held.
func (c *committer) land(r *run, err error) {
	f := r.log.flight
	r.log.flight = nil
	if err == nil {
		if r.eng.watchers.any() {
			r.eng.watchers.notify([]string{r.id}) // the store does not tell of plain checkpoints
		}
		r.eng.archiver.landed(r, &f.change)
		for i := range f.change.Send {
			r.eng.mailroom.sent(f.change.Send[i].To)
		}
	}
	f.settle(err)
	if d := r.dead.Load(); d != nil && d.kind == deathLost {
		r.log.settlePending(d.err)
		return
	}
	if c.stop.Err() != nil {
		r.log.settlePending(errGaveUp) // nobody tries any more
		return
	}
	if len(r.log.pending) > 0 && !r.log.queued {
		c.enqueue(r)
	}
}

// errGaveUp is the answer to a write that the store did not take before the engine
// was closed.
var errGaveUp = fmt.Errorf("%w: it took nothing more before the engine was closed", ErrUnavailable)

// abandon gives up what is not committed, once stop has ended: everybody who waits
// for the committer gets an answer, but for the leader of a batch that the store
// does not answer.
func (c *committer) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.relief != nil {
		c.relief.Stop()
	}
	for _, r := range c.queue {
		r.log.queued = false
		if r.log.flight != nil {
			c.land(r, r.log.flight.givenUp(errGaveUp))
		} else {
			r.log.settlePending(errGaveUp)
		}
	}
	c.queue = nil
	for _, r := range c.out() {
		f := r.log.flight
		f.unknown = true
		f.settle(f.givenUp(errGaveUp))
		r.log.settlePending(errGaveUp)
	}
}

// out returns the runs of which the store has a change that it has not answered.
// The mutex is held.
func (c *committer) out() (runs []*run) {
	leaders := slices.Clone(c.relieved)
	if c.leader != nil {
		leaders = append(leaders, c.leader)
	}
	for _, l := range leaders {
		if l.sentAt.Load() != 0 {
			runs = append(runs, l.flights...)
		}
	}
	return runs
}

// unanswered returns the ids of the runs that out returns, sorted.
func (c *committer) unanswered() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.out() {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return ids
}

// again sends flights whose outcome is not known, or that the store could not
// take, once more after a pause. The mutex is held.
func (c *committer) again(stuck []*run, why error) {
	if c.retries == 0 {
		c.log.Warn("durable: the store does not take a commit; it is tried again until it does", "error", why, "runs", len(stuck))
	}
	pause := min(5*time.Millisecond<<min(c.retries, 10), 2*time.Second)
	c.retries++
	runs := append([]*run{}, stuck...)
	c.timers.Go(func() {
		t := time.NewTimer(pause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.stop.Done():
		}
		c.mu.Lock()
		if c.stop.Err() != nil {
			for _, r := range runs {
				c.land(r, r.log.flight.givenUp(fmt.Errorf("%w: %w", ErrUnavailable, why)))
			}
			c.mu.Unlock()
			return
		}
		for _, r := range runs {
			r.log.queued = true
		}
		c.queue = append(runs, c.queue...)
		if c.leader != nil {
			c.watch(slowAnswer)
			c.mu.Unlock()
			return
		}
		_ = c.lead(context.Background(), nil, c.takeLead())
	})
}
