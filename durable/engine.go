package durable

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/store"
)

// Engine executes workflows on one store, within this process. Make one with
// Open and end it with Close. Its methods may be called from any goroutine.
type Engine struct {
	id        string
	build     string // of this program
	options   Options
	store     store.Store
	limits    store.Limits
	sealer    *sealer
	errors    *errorKinds
	defs      *definitions
	log       *slog.Logger
	tracer    trace.Tracer
	metrics   *metrics
	committer *committer

	// beatAt is when the store last took a beat, in nanoseconds since openedAt.
	beatAt atomic.Int64
	lease  lease
	clock  storeClock

	imports epochs

	base     context.Context // parent of every run's context
	cancel   context.CancelCauseFunc
	loop     context.Context // of the loops, but for the beat
	stopLoop context.CancelFunc
	stopBeat context.CancelFunc // after the last run has ended: until then the lease must hold
	giveUp   context.CancelFunc // ends the committer's tries
	look     chan struct{}      // beat now
	mail     chan struct{}      // some run may have mail
	orphans  chan struct{}      // some executor is gone and has left runs
	pulses   pulses             // of the beats, to be acted on

	archiver *archiver // nil: nothing is archived

	environment *Environment // of this process; nil: it is neither recorded nor compared

	roster    roster
	dormitory dormitory
	watchers  watchers
	trials    trials
	claims    claims
	keeps     idsKept
	owned     owned
	unserved  unservedRuns
	turn      int // of the looks that follow the beats; used by tendLoop alone
	openedAt  time.Time
}

// Open registers an executor on st and returns its engine. It claims nothing
// that existed before until Recover is called; runs that are started from now
// on are executed at once. The store stays the caller's to close, after the
// engine.
//
// Errors: ErrInvalid for options that cannot be used (a nil function, a
// workflow registered twice), ErrUnavailable when the store cannot be reached.
func Open(ctx context.Context, st store.Store, o Options) (*Engine, error) {
	if st == nil {
		return nil, fmt.Errorf("durable: Open needs a store: %w", ErrInvalid)
	}
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	defs, err := newDefinitions(o.Workflows)
	if err != nil {
		return nil, err
	}
	kinds, err := newErrorKinds(o.Errors)
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(&o, st.Limits())
	if err != nil {
		return nil, err
	}
	kinds.defs = sealer.types
	e := &Engine{
		build:       buildLabel(cmp.Or(o.Build, stampedBuild())),
		environment: o.Capture.capture(),
		id:          newExecutorID(), options: o, store: st, limits: st.Limits(), sealer: sealer, errors: kinds, defs: defs, log: o.Logger, tracer: newTracer(o.TracerProvider),
		look: make(chan struct{}, 1), mail: make(chan struct{}, 1), orphans: make(chan struct{}, 1), pulses: pulses{ready: make(chan struct{}, 1)},
		openedAt: time.Now(),
	}
	e.roster.open(e)
	e.dormitory.open(e)
	e.claims.open(e)
	e.trials.eng = e
	p, err := e.register(ctx)
	if err != nil {
		return nil, err
	}
	if e.metrics, err = e.newMetrics(o.MeterProvider); err != nil {
		return nil, err
	}
	e.base, e.cancel = context.WithCancelCause(context.Background())
	stop, giveUp := context.WithCancel(context.Background())
	e.giveUp = giveUp
	e.committer = &committer{store: st, limits: e.limits, log: o.Logger, metrics: e.metrics, stop: stop, wake: make(chan struct{}, 1)}
	e.loop, e.stopLoop = context.WithCancel(context.Background())
	e.lease.begin(o.Lease, p.sent, e.leaseEnded)
	beating, stopBeat := context.WithCancel(context.Background())
	e.stopBeat = stopBeat
	e.roster.loops.Go(func() { e.beatLoop(beating) })
	e.roster.loops.Go(func() { e.tendLoop(beating) })
	e.roster.loops.Go(func() { e.takeOverLoop(e.loop) })
	e.roster.loops.Go(func() { e.claims.loop(e.loop) })
	e.roster.loops.Go(func() { e.dormitory.loop(e.loop) })
	if o.Retention.active() && o.Retention.Every > 0 {
		e.roster.loops.Go(func() { e.retentionLoop(e.loop) })
	}
	if o.Archive != nil {
		e.archiver = newArchiver(e, o.Archive)
		e.archiver.start(e.loop)
	}
	if n := store.CapabilitiesOf(st).Notifier; n != nil {
		e.roster.loops.Go(func() { e.noticeLoop(e.loop, n) })
		e.roster.loops.Go(func() { e.mailLoop(e.loop) })
	}
	return e, nil
}

func newExecutorID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails, says its documentation
	return "ex-" + hex.EncodeToString(b[:])
}

// ID returns the id of this executor, new at each Open.
func (e *Engine) ID() string { return e.id }

// Store returns the store the engine was opened on.
func (e *Engine) Store() store.Store { return e.store }

// now returns the store's time as far as this process knows it.
func (e *Engine) now() store.Time { return e.storeTime(time.Now()) }

// storeTime converts a moment of this process's clock.
func (e *Engine) storeTime(t time.Time) store.Time {
	return e.clock.at(t)
}

// A pulse is what a beat has brought back.
type pulse struct {
	store.Pulse
	sent time.Time
	// gap: the lease did not hold any more when the beat was answered, so others
	// may have taken runs of ours. The lease is renewed once that is known.
	gap bool
}

// beat tells the store that this executor lives.
func (e *Engine) beat(ctx context.Context, leaving bool) (pulse, error) {
	name, _ := os.Hostname()
	before := time.Now()
	p, err := e.store.Beat(ctx, store.Executor{
		ID: e.id, Name: e.options.Name, Host: name, Boot: host.BootID(), PID: os.Getpid(),
		Lease: e.options.Lease, Serves: e.defs.served, Leaving: leaving,
	})
	if err == nil {
		after := time.Now()
		e.beatAt.Store(int64(after.Sub(e.openedAt)))
		if p.Now != 0 {
			e.readClock(before, after, p.Now)
		}
	}
	return pulse{Pulse: p, sent: before}, err
}

// readClock takes in what the store's clock has said between two moments.
func (e *Engine) readClock(before, after time.Time, now store.Time) {
	if set := e.clock.observe(before, after, now); set.Abs() > time.Second && e.lease.anchor != (time.Time{}) {
		e.log.Warn("durable: the store's clock was set; timers and deadlines follow it", "executor", e.id, "by_ms", millis(set))
	}
}

// openingBeats is how many beats Open makes at most to learn the store's time:
// more than one only if the answers are slow.
const openingBeats = 3

// register makes the first beats.
func (e *Engine) register(ctx context.Context) (p pulse, err error) {
	e.clock.start(e.openedAt)
	for i := 0; i < openingBeats; i++ {
		began := time.Now()
		if p, err = e.beat(ctx, false); err != nil {
			return p, fmt.Errorf("%w: registering the executor: %w", ErrUnavailable, err)
		}
		if time.Since(began) < 20*time.Millisecond {
			break
		}
	}
	return p, nil
}

// leaseEnded says that the executor stops by itself.
func (e *Engine) leaseEnded() {
	e.log.Warn("durable: the lease could not be renewed: no step body begins until the store takes a beat again, and those under way are told to stop", "executor", e.id)
}

// nudge signals ch without waiting.
func nudge(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Close stops the engine gracefully: no further step begins; bodies under way
// are waited for up to Options.Grace, and what they return in that time is
// recorded; then their contexts end with the cause ErrShutdown. Runs that have
// not ended are recorded as interrupted and can be claimed at once. Close
// returns when every goroutine of the engine has ended, or with an error that
// names the step bodies that ignore their context. A second Close waits for the
// first and returns nil.
func (e *Engine) Close() error {
	running, first := e.roster.close()
	if !first {
		<-e.roster.closed
		return nil
	}
	defer close(e.roster.closed)

	e.metrics.stop()
	e.stopLoop()
	for _, r := range running {
		_ = r.die(&death{kind: deathShutdown, err: ErrShutdown})
	}
	err := e.drain()
	e.stopBeat()
	e.lease.stop()
	e.giveUp()
	e.committer.abandon()
	e.cancel(ErrShutdown)
	if !waitFor(e.roster.idle(), forLoops) {
		err = errors.Join(err, errors.New("durable: Close gave up waiting for the store: it has not answered what the engine asked of it"))
	}
	e.archiver.finish(e.options.Grace)

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, leaveErr := e.beat(ctx, true); leaveErr != nil && !errors.Is(leaveErr, store.ErrClosed) {
		e.log.Warn("durable: leaving the store failed; the lease runs out by itself", "executor", e.id, "error", leaveErr)
	}
	return err
}

// afterGrace is how long a body has to return once its context has ended.
const afterGrace = time.Second

// drain waits for the runs' goroutines: first as they are, then with their
// contexts ended.
func (e *Engine) drain() error {
	done := make(chan struct{})
	go func() {
		e.roster.runners.Wait()
		close(done)
	}()
	if e.options.Grace > 0 {
		if waitFor(done, e.options.Grace) {
			return nil
		}
	}
	e.cancel(ErrShutdown)
	if waitFor(done, afterGrace) {
		return nil
	}
	// A store that is gone holds runs back, too.
	e.giveUp()
	e.committer.abandon()
	if waitFor(done, afterGrace) {
		return nil
	}
	return e.leftBehind()
}

// leftBehind says which runs Close does not wait for any longer, and why.
func (e *Engine) leftBehind() error {
	runs := e.roster.all()
	unanswered := e.committer.unanswered()
	var deaf []string
	for _, r := range runs {
		at := "the workflow function"
		b := r.body.Load()
		if b != nil {
			at = "step " + *b
		}
		_ = r.die(&death{kind: deathLost, err: ErrShutdown})
		if _, waits := slices.BinarySearch(unanswered, r.id); b != nil || !waits {
			deaf = append(deaf, fmt.Sprintf("run %s in %s", r.id, at))
		}
	}
	slices.Sort(deaf)
	var errs []error
	if len(unanswered) > 0 {
		errs = append(errs, fmt.Errorf("durable: Close gave up on %d runs of which the store has not answered a commit: %v. They are recovered like those of a process that was killed", len(unanswered), unanswered))
	}
	if len(deaf) > 0 || len(errs) == 0 {
		errs = append(errs, fmt.Errorf("durable: Close gave up on %d runs whose code ignores its context: %v", len(deaf), deaf))
	}
	return errors.Join(errs...)
}

// forLoops is how long the store may take to answer what the engine asked of it
// before it was closed.
const forLoops = 10 * time.Second

func waitFor(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
