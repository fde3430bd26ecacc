package heart

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/storeclock"
)

// An executor may execute its runs for the length of a lease after each beat; after
// that, another one may take them. The store refuses the writes of an executor that
// has lost a run, but it cannot refuse a body's effects. So the executor stops by
// itself, margin before its lease can have run out: no body begins, and the
// contexts of running bodies end. It continues once the store has taken a beat
// again and the executor's runs are found to be still its own.

// margin is how long before the end of a lease of this length the executor stops.
// It is the time that bodies have to notice that their context has ended, and the
// most by which the two clocks may drift apart within a lease.
func margin(length time.Duration) time.Duration { return length / 10 }

// A Lease is what an executor knows of its own lease. It counts from when a beat
// was sent; the store counts from when it took the beat, which is later.
type Lease struct {
	anchor time.Time
	length time.Duration // how long after a beat bodies may begin
	apart  time.Duration // by how much the clocks may go apart after a beat
	skew   storeclock.Skew

	until atomic.Int64 // when it ends, in nanoseconds since anchor, by the monotonic clock
	// ahead is how far the wall clock was ahead of the monotonic one, counted from anchor, when
	// the beat was sent: the monotonic clock stops while the machine is suspended.
	ahead   atomic.Int64
	current atomic.Pointer[Term]

	mu sync.Mutex
	// odd is how far the wall clock was ahead when a look at the lease last found another figure than the one
	// before, oddAt when that was, in nanoseconds since anchor, and oddBefore when it was the last time but one.
	odd, oddAt, oddBefore int64

	timer   *time.Timer
	renewed chan struct{} // closed with the next renewal
	ended   func()        // called when a term ends
	stopped bool
	ending  sync.WaitGroup // calls of ended
}

// A Term is a period during which the lease was renewed without a gap. The contexts
// of bodies that began in it end with it.
type Term struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func newTerm() *Term {
	t := &Term{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// Over reports whether the term has ended; a nil term has not.
func (t *Term) Over() bool { return t != nil && t.ctx.Err() != nil }

// OnEnd calls f once the term ends, unless the function that it returns is called
// before; see context.AfterFunc.
func (t *Term) OnEnd(f func()) (stop func() bool) { return context.AfterFunc(t.ctx, f) }

// Term returns the current term.
func (l *Lease) Term() *Term { return l.current.Load() }

// begin starts the first term, with the beat that was sent at this moment; ended is
// called whenever a term ends before it is renewed.
func (l *Lease) begin(length time.Duration, sent time.Time, ended func()) {
	l.anchor, l.length, l.apart, l.ended = sent, length-margin(length), margin(length), ended
	l.oddAt, l.oddBefore = math.MinInt64, math.MinInt64
	l.renewed = make(chan struct{})
	l.current.Store(newTerm())
	l.timer = time.AfterFunc(l.length, l.lapse)
	l.renew(sent)
}

// Holds reports whether a body may begin at this moment, which is now. It may not once the two clocks
// have gone apart since the beat: a wall clock that is set back hides for how long the machine was
// suspended, and the monotonic one never knew. A lease that does not hold stays so until it is renewed
// after a gap: a clock that was set forward, and is set back, had others take runs in between.
func (l *Lease) Holds(now time.Time) bool {
	monotonic, wall := int64(l.skew.Between(l.anchor, now)), l.skew.Wall(now)
	if l.holds(monotonic, wall) {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds(monotonic, wall) {
		return true // it was being renewed
	}
	l.until.Store(0)
	if l.differ(wall-monotonic, l.odd) {
		l.odd, l.oddAt, l.oddBefore = wall-monotonic, max(monotonic, l.oddAt), l.oddAt
	}
	return false
}

func (l *Lease) holds(monotonic, wall int64) bool {
	until := l.until.Load()
	return monotonic < until && wall-l.ahead.Load() < until && !l.wentApart(wall-monotonic)
}

// wentApart reports whether the clocks have gone apart since the last beat, if the wall clock is ahead by
// this now.
func (l *Lease) wentApart(ahead int64) bool { return l.differ(ahead, l.ahead.Load()) }

// differ reports whether the clocks went apart between two moments at which the wall clock was ahead by this.
func (l *Lease) differ(a, b int64) bool { return max(a-b, b-a) >= int64(l.apart) }

// renew extends the lease by a beat that was sent at this moment. It reports false if the lease was in doubt
// since: the answer to the beat, and a look at the runs that began with it, say nothing of what happened then.
func (l *Lease) renew(sent time.Time) (counts bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.skew.Between(l.anchor, sent) + l.length
	left := until - l.skew.Between(l.anchor, time.Now())
	ahead := l.skew.Wall(sent) - int64(until-l.length)
	if l.oddAt > int64(until-l.length) && (l.oddBefore > int64(until-l.length) || l.differ(l.odd, ahead)) {
		return false
	}
	if left <= 0 || int64(until) <= l.until.Load() && !l.wentApart(ahead) {
		return true // the beat came too late to be of use, or after a later one
	}
	l.until.Store(int64(until))
	l.ahead.Store(ahead)
	l.odd = ahead
	if l.current.Load().Over() {
		l.current.Store(newTerm())
	}
	l.timer.Reset(left)
	close(l.renewed)
	l.renewed = make(chan struct{})
	return true
}

// lapse ends the term if it was not renewed.
func (l *Lease) lapse() {
	l.mu.Lock()
	left := time.Duration(l.until.Load()) - l.skew.Between(l.anchor, time.Now())
	t := l.current.Load()
	switch {
	case l.stopped:
	case left > 0:
		l.timer.Reset(left)
	case !t.Over():
		t.cancel()
		l.ending.Add(1)
		defer l.ending.Done()
		defer l.ended()
	}
	l.mu.Unlock()
}

// Doubt makes the next beat count as one after a gap, because the store says that
// it does not know this executor. Running bodies are left alone.
func (l *Lease) Doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until.Store(0)
	l.oddAt = int64(l.skew.Between(l.anchor, time.Now()))
	l.oddBefore = l.oddAt // no beat before this counts
}

// Stop ends the timer, and waits for a call of ended. It must be called after the last renewal.
func (l *Lease) Stop() {
	l.mu.Lock()
	l.stopped = true
	l.timer.Stop()
	l.mu.Unlock()
	l.ending.Wait()
}

func (l *Lease) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}
