package heart

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/store"
)

// Options configure a Heart.
type Options struct {
	Store store.Store
	Log   *slog.Logger
	// Executor is what each beat says, except host, boot and process, which the heart
	// adds.
	Executor store.Executor
	// Late is called after a beat that was answered when the lease had run out.
	Late func(context.Context)
	// Gap stops the executions of runs that other executors have taken. The lease is
	// renewed once Gap has returned nil.
	Gap func(context.Context) error
	// Tend does everything else that is due after a beat. It gives work that takes long a
	// goroutine of its own, so that the work of the next beat does not wait.
	Tend func(*store.Pulse)
	// OneWriter: whoever writes to the store has it to himself meanwhile.
	OneWriter bool
}

// A Heart tells the store that this executor is alive, and has others do what the answers
// ask for. It knows until when the executor's lease holds and what time it is in the
// store. An engine never polls: it sleeps until a notice of the store comes, a time is
// due, or a beat makes up for a missed one of either.
type Heart struct {
	Lease Lease
	Clock storeclock.Clock

	options  Options
	now      chan struct{} // beat at once
	times    chan struct{} // see LearnTimes
	openedAt time.Time
	at       atomic.Int64 // when the store last took a beat, in nanoseconds since openedAt
	opened   time.Time    // when the last beat of Register was sent
	said     store.Time   // what the store's clock said at the last beat that was answered; Register and Loop use it
	pulses   pulses       // the answers to beats, to be acted on
}

// New returns a Heart that has not begun to beat.
func New(o Options) *Heart {
	h := &Heart{options: o, now: make(chan struct{}, 1), times: make(chan struct{}, 1), openedAt: time.Now()}
	h.pulses.ready = make(chan struct{}, 1)
	h.Clock.Start(h.openedAt) // until Register the wall clock is all that is known
	return h
}

// Age returns how long ago the store took the last beat.
func (h *Heart) Age() time.Duration { return time.Since(h.openedAt) - time.Duration(h.at.Load()) }

// Uptime returns how long ago the Heart was made.
func (h *Heart) Uptime() time.Duration { return time.Since(h.openedAt) }

// BeatSoon makes the loop send a beat at once.
func (h *Heart) BeatSoon() { nudge.Send(h.now) }

// AwaitClock waits until the estimate of the store's clock knows of the last suspend of this machine,
// which it does at once unless there was one since the last beat, or until one of the channels is closed:
// then it returns false.
func (h *Heart) AwaitClock(gone, stopped <-chan struct{}) (known bool) {
	for {
		next := h.Clock.Next()
		if !h.Clock.Outdated(time.Now()) {
			return true
		}
		h.BeatSoon()
		select {
		case <-next:
		case <-gone:
			return false
		case <-stopped:
			return false
		}
	}
}

// timesPause is the least time from a beat to one for which LearnTimes has asked.
const timesPause = time.Second

// LearnTimes makes the loop send a beat soon, because runs may have got times at which they become
// due: the answer says when the first one is.
func (h *Heart) LearnTimes() { nudge.Send(h.times) }

// A pulse is the answer to a beat.
type pulse struct {
	store.Pulse
	sent time.Time
	// gap: the lease no longer held when the beat was answered, so others may have taken
	// runs of ours. The lease is renewed once that is known.
	gap bool
}

// send tells the store that this executor is alive.
func (h *Heart) send(ctx context.Context, leaving bool) (pulse, error) {
	x := h.options.Executor
	x.Host, _ = os.Hostname()
	x.Boot, x.PID, x.Leaving = host.BootID(), os.Getpid(), leaving
	before := time.Now()
	p, err := h.options.Store.Beat(ctx, x)
	if err == nil {
		after := time.Now()
		h.at.Store(int64(after.Sub(h.openedAt)))
		if p.Now != 0 {
			h.readClock(before, after, p.Now)
		}
	}
	return pulse{Pulse: p, sent: before}, err
}

// readClock takes into account that the store's clock said now between two moments.
func (h *Heart) readClock(before, after time.Time, now store.Time) {
	if set := h.Clock.Observe(before, after, now); set.Abs() > time.Second && h.Lease.anchor != (time.Time{}) {
		h.options.Log.Warn("durable: the store's clock was set; timers and deadlines follow it", "executor", h.options.Executor.ID, "by_ms", millis(set))
	}
}

// millis returns a duration as it is logged, under a key that ends in _ms.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// openingBeats is how many beats Register makes at most to learn the store's time:
// more than one only if the answers are slow.
const openingBeats = 3

// Register makes the first beats.
func (h *Heart) Register(ctx context.Context) error {
	h.Clock.Skew = storeclock.SkewOf(ctx)
	h.Lease.skew = h.Clock.Skew
	h.Clock.Start(h.openedAt)
	for i := 0; i < openingBeats; i++ {
		began := time.Now()
		p, err := h.send(ctx, false)
		if err != nil {
			return err
		}
		h.opened, h.said = p.sent, p.Now
		if time.Since(began) < 20*time.Millisecond {
			break
		}
	}
	return nil
}

// Begin begins the lease, with the last beat of Register.
func (h *Heart) Begin() { h.Lease.begin(h.options.Executor.Lease, h.opened, h.leaseEnded) }

// Leave tells the store that this executor is about to end.
func (h *Heart) Leave(ctx context.Context) error {
	_, err := h.send(ctx, true)
	return err
}

// leaseEnded logs that the executor stops by itself.
func (h *Heart) leaseEnded() {
	h.options.Log.Warn("durable: the lease could not be renewed: no step body begins until the store takes a beat again, and those under way are told to stop", "executor", h.options.Executor.ID)
}

// slowBeat is how long a beat waits for its answer before a line says so.
const slowBeat = 5 * time.Second

// unanswered logs that the store does not answer a beat. A call of the program may wait for the same
// store and say nothing: with one writer, a Start beside a transaction of its own waits for ever.
func (h *Heart) unanswered() {
	attrs := []slog.Attr{slog.String("executor", h.options.Executor.ID), slog.Int64("after_ms", slowBeat.Milliseconds())}
	if h.options.OneWriter {
		attrs = append(attrs, slog.String("next", "end the transaction that has the file: that of a step whose function is long, or one of a program's own, which Start, Signal and Cancel take by durable.InTx(tx)"))
	}
	h.options.Log.LogAttrs(context.Background(), slog.LevelWarn, "durable: the store does not answer a beat: whatever writes to it waits", attrs...)
}

// Loop sends beats and does nothing else: TendLoop does what a pulse asks for, however
// long the store takes for it. When it returns, nothing is being logged.
func (h *Heart) Loop(ctx context.Context) {
	var lines sync.WaitGroup
	defer lines.Wait()
	every := h.options.Executor.Lease / 3
	t := time.NewTimer(every)
	defer t.Stop()
	for next := time.Now().Add(every); ; {
		select {
		case <-ctx.Done():
			return
		case <-h.now:
		case <-t.C:
		case <-h.times:
			if wait := timesPause - h.Age(); wait > 0 {
				if at := time.Now().Add(wait); at.Before(next) {
					next = at
					t.Reset(wait)
				}
				continue
			}
		}
		wait := every
		lines.Add(1)
		slow := time.AfterFunc(slowBeat, func() {
			defer lines.Done()
			if ctx.Err() == nil {
				h.unanswered()
			}
		})
		p, err := h.send(ctx, false)
		if slow.Stop() {
			lines.Done()
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.options.Log.Warn("durable: beat failed; other executors may take over when the lease has run out", "executor", h.options.Executor.ID, "error", err)
			wait = min(every, time.Second)
		default:
			p.Late = h.outlived(p.Now) || p.Late
			p.gap = p.Late || !h.Lease.Holds(time.Now())
			if !p.gap {
				p.gap = !h.Lease.renew(p.sent)
			}
			h.pulses.add(p)
			if p.Next > p.Now && p.Now != 0 {
				wait = min(every, max(p.Next.Sub(p.Now), time.Millisecond))
			}
		}
		next = time.Now().Add(wait)
		t.Reset(wait)
	}
}

// outlived reports whether more than a lease has passed from the answer before to this one, by the store's
// clock. The store may not say so itself: if it took a beat whose answer was lost, that one was late and
// not this; and it may have forgotten an executor that was dead for long, which then counts as new.
func (h *Heart) outlived(now store.Time) bool {
	last := h.said
	h.said = now
	return last != 0 && now != 0 && now.Sub(last) >= h.options.Executor.Lease
}

// pulses are the pulses that were not acted on yet, merged into one.
type pulses struct {
	ready chan struct{} // there is one
	mu    sync.Mutex
	last  *pulse
}

// add replaces the pulse that waits by p, which is later. It keeps what p may not repeat.
func (ps *pulses) add(p pulse) {
	ps.mu.Lock()
	if ps.last != nil {
		p.Late, p.gap, p.Skew = p.Late || ps.last.Late, p.gap || ps.last.gap, max(p.Skew, ps.last.Skew)
	}
	ps.last = &p
	ps.mu.Unlock()
	nudge.Send(ps.ready)
}

// next returns the pulse that waits, nil if there is none.
func (ps *pulses) next() *pulse {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.last
	ps.last = nil
	return p
}

// TendLoop does what the pulses ask for. A store that answers slowly delays
// this, but no beat.
func (h *Heart) TendLoop(ctx context.Context) {
	skewed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.pulses.ready:
		}
		p := h.pulses.next()
		if p == nil {
			continue
		}
		h.closeGap(ctx, p)
		h.options.Tend(&p.Pulse)
		if p.Skew > skewReminder && !skewed {
			skewed = true
			h.options.Log.Warn("durable: the clock of another executor on this store is ahead of this process's clock; set both, or leases and timers are judged wrongly",
				"executor", h.options.Executor.ID, "ahead_ms", millis(p.Skew))
		}
	}
}

// skewReminder is by how much clocks may differ without a warning.
const skewReminder = time.Second

// closeGap does what a beat that came too late asks for, and renews the lease.
func (h *Heart) closeGap(ctx context.Context, p *pulse) {
	if p.Late {
		h.options.Late(ctx)
		h.options.Log.Warn("durable: the lease had run out before this beat; runs that were taken meanwhile end here", "executor", h.options.Executor.ID)
	}
	if !p.gap {
		return
	}
	if err := h.options.Gap(ctx); err != nil {
		// Bodies keep waiting. The next beat finds the gap again.
		t := time.NewTimer(recheckPause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		nudge.Send(h.now)
		return
	}
	if !h.Lease.renew(p.sent) {
		nudge.Send(h.now)
	}
}

// recheckPause is how long after a failed check of its runs an executor sends another
// beat, to check again.
const recheckPause = 50 * time.Millisecond

// AwaitLease returns true once the lease holds, and false when one of the
// channels is closed before.
func (h *Heart) AwaitLease(gone, stopped <-chan struct{}) bool {
	for {
		next := h.Lease.next()
		if h.Lease.Holds(time.Now()) {
			return true
		}
		nudge.Send(h.now)
		select {
		case <-next:
		case <-gone:
			return false
		case <-stopped:
			return false
		}
	}
}
