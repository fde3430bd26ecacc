package durable

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/archiver"
	"github.com/holdfast-dev/holdfast/internal/claims"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/internal/declared"
	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/lengths"
	"github.com/holdfast-dev/holdfast/internal/loads"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/runlog"
	"github.com/holdfast-dev/holdfast/internal/storeclock"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// Engine executes workflows on one store, within this process. Make one with
// Open and end it with Close. Its methods may be called from any goroutine.
type Engine struct {
	id        string
	program   program
	options   Options
	store     store.Store
	sealer    *payload.Sealer
	log       runlog.Log
	tracing   telemetry.Tracing
	metrics   *telemetry.Metrics
	committer *commit.Committer

	heart     *heart.Heart
	life      lifetime
	roster    roster
	dormitory dormitory
	mailroom  mailroom
	claims    *claims.Claims
	recovery  *claims.Recovery
	loads     *loads.Sets       // of the runs that are executed here
	imports   storeclock.Epochs // of runs that are imported: no two have the same
	watchers  watchers
	families  families
	archiver  *archiver.Archiver // nil: nothing is archived
}

// program is what the engine knows of the program that it is part of.
type program struct {
	build       string          // its label
	environment *Environment    // of this process; nil: it is neither recorded nor compared
	recorded    json.RawMessage // the environment, as the first event of a run keeps it
	defs        *definitions
	errors      *faults.Registry
	declared    *declared.Declared
	lengths     *lengths.Book // how many steps its completed runs have
}

// lifetime has the contexts of the work of an engine, in the order in which Close
// ends them.
type lifetime struct {
	loops    context.Context // of the engine's own goroutines, except the heartbeat
	endLoops context.CancelFunc
	endBeat  context.CancelFunc // after the last run has ended: until then the lease must hold
	writes   context.Context    // in which the committer tries
	giveUp   context.CancelFunc // ends writes
	runs     context.Context    // parent of every run's context
	endRuns  context.CancelCauseFunc
}

// Open registers an executor on st and returns its engine. Until Recover is called,
// it claims no run that existed before, fires no schedule, and stores neither
// Options.Queues nor Options.Schedules; runs that are started from now on are
// executed at once. The caller closes the store, after the engine.
//
// Errors: ErrInvalid for options that cannot be used (a nil function, a
// workflow registered twice), *QueueError for a queue, ErrUnavailable when the store
// cannot be reached.
func Open(ctx context.Context, st store.Store, o Options) (*Engine, error) {
	if st == nil {
		return nil, fmt.Errorf("durable: Open needs a store: %w", ErrInvalid)
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	defs, err := newDefinitions(o.Workflows, o.ServeQueues)
	if err != nil {
		return nil, err
	}
	sealer, err := o.newSealer(st.Limits())
	if err != nil {
		return nil, err
	}
	kinds, err := newFaults(o.Errors, sealer.Types)
	if err != nil {
		return nil, err
	}
	e := &Engine{id: newExecutorID(), options: o, store: st, sealer: sealer}
	e.program = program{build: host.BuildLabel(cmp.Or(o.Build, host.StampedBuild(history.DirtyBuild))), environment: o.Capture.capture(), defs: defs, errors: kinds}
	e.program.recorded = e.program.environment.encode()
	e.log = runlog.Log{Logger: o.Logger, Store: st, Now: e.now, OmitTexts: o.OmitTexts, KindOf: kinds.KindOf}
	e.families.eng, e.watchers.eng = e, e
	e.tracing = newTracing(e)
	e.heart = newHeart(e)
	e.mailroom = mailroom{eng: e, ring: make(chan struct{}, 1)}
	e.roster.open(e)
	e.dormitory.open(e)
	e.watchers.looks = e.watchers.newLooks()
	e.claims = newClaims(e)
	e.recovery = claims.NewRecovery(e.claims)
	e.program.declared = declared.New(scheduling{e}.keep)
	if e.program.declared.Queues, err = o.queuesFor(st); err != nil {
		return nil, err
	}
	if e.program.declared.Schedules, err = (scheduling{e}).declared(); err != nil {
		return nil, err
	}
	if err := e.heart.Register(ctx); err != nil {
		return nil, fmt.Errorf("%w: registering the executor: %w", ErrUnavailable, err)
	}
	if e.metrics, err = newMetrics(e); err != nil {
		return nil, err
	}
	e.life.runs, e.life.endRuns = context.WithCancelCause(context.Background())
	e.loads, e.program.lengths = loads.New(e.life.runs, st), lengths.New(st)
	e.life.writes, e.life.giveUp = context.WithCancel(context.Background())
	e.committer = commit.New(commit.Options{Store: st, Log: o.Logger, Stop: e.life.writes, Measure: e.metrics.Committed})
	e.life.loops, e.life.endLoops = context.WithCancel(context.Background())
	e.heart.Begin()
	beating, stopBeat := context.WithCancel(context.Background())
	e.life.endBeat = stopBeat
	e.roster.loops.Go(func() { e.heart.Loop(beating) })
	e.roster.loops.Go(func() { e.heart.TendLoop(beating) })
	e.roster.loops.Go(func() { e.recovery.Loop(e.life.loops) })
	e.roster.loops.Go(func() { e.claims.Loop(e.life.loops) })
	e.roster.loops.Go(func() { e.dormitory.loop(e.life.loops) })
	if o.Retention.rules().Active() && o.Retention.Every > 0 {
		e.roster.loops.Go(func() { newCleaner(e).Loop(e.life.loops, o.Retention.Every) })
	}
	if o.Archive != nil {
		e.archiver = newArchiver(e)
		e.archiver.Start(e.life.loops)
	}
	if e.mailroom.requests = newDrainer(e); e.mailroom.requests != nil {
		e.roster.loops.Go(func() { e.mailroom.requests.Loop(e.life.loops) })
	}
	if n := store.CapabilitiesOf(st).Notifier; n != nil {
		e.roster.loops.Go(func() { e.mailroom.listen(e.life.loops, n) })
		e.roster.loops.Go(func() { e.mailroom.loop(e.life.loops) })
	}
	return e, nil
}

func newExecutorID() string {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails, according to its documentation
	return "ex-" + hex.EncodeToString(b[:])
}

// ID returns the id of this executor, new at each Open.
func (e *Engine) ID() string { return e.id }

// Store returns the store the engine was opened on.
func (e *Engine) Store() store.Store { return e.store }

// now returns the store's time as far as this process knows it.
func (e *Engine) now() store.Time { return e.storeTime(time.Now()) }

// storeTime converts a moment of this process's clock to the store's time.
func (e *Engine) storeTime(t time.Time) store.Time {
	return e.heart.Clock.At(t)
}

// put is m[k] = v for a map that may be nil.
func put[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[k] = v
	return m
}

// Close stops the engine gracefully: no further step begins; Close waits for running
// bodies up to Options.Grace, and what they return in that time is recorded; then it
// ends their contexts with the cause ErrShutdown. Runs that wait stay as they are.
// Other runs that have not ended are recorded as interrupted and can be claimed at
// once, or, unless their policy is ResumeOnBoot, only be resumed by a person
// (CodeShutdown). Close returns when every goroutine of the engine has ended, or
// with an error that names the step bodies that ignore their context and the runs
// whose commits the store has not answered. A second Close waits for the first and
// returns nil.
func (e *Engine) Close() error {
	running, first := e.roster.close()
	if !first {
		<-e.roster.closed
		return nil
	}
	defer close(e.roster.closed)

	e.metrics.Stop()
	e.life.endLoops()
	for _, r := range running {
		_ = r.die(&death{kind: deathShutdown, err: ErrShutdown})
	}
	err := e.drain()
	e.watchers.looks.Stop()
	e.life.endBeat()
	e.heart.Lease.Stop()
	e.life.giveUp()
	e.committer.Abandon()
	e.life.endRuns(ErrShutdown)
	if !waitFor(e.roster.idle(), forLoops) {
		err = errors.Join(err, errors.New("durable: Close gave up waiting for the store: it has not answered what the engine asked of it"))
	}
	e.archiver.Finish(max(e.options.Grace, afterGrace))

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if leaveErr := e.heart.Leave(ctx); leaveErr != nil && !errors.Is(leaveErr, store.ErrClosed) {
		e.log.Warn("durable: leaving the store failed; the lease runs out by itself", "executor", e.id, "error", leaveErr)
	}
	return err
}

// afterGrace is how long a body has to return once its context has ended.
const afterGrace = time.Second

// drain waits for the runs' goroutines: first with their contexts as they are, then
// with their contexts ended.
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
	e.life.endRuns(ErrShutdown)
	if waitFor(done, afterGrace) {
		return nil
	}
	// A store that does not answer holds up runs, too.
	e.life.giveUp()
	e.committer.Abandon()
	if waitFor(done, afterGrace) {
		return nil
	}
	err := e.leftBehind()
	if err == nil && !waitFor(done, afterGrace) {
		// They have ended, and their goroutines are still on the way out.
		err = errors.New("durable: Close gave up on goroutines of runs that have ended: a log handler or another function of the program that is called at the end of a run has not returned")
	}
	return err
}

// leftBehind returns an error that names the runs for which Close no longer waits,
// and says why; nil: all have ended by now.
func (e *Engine) leftBehind() error {
	runs := e.roster.all()
	unanswered := e.committer.Unanswered()
	var deaf []string
	for _, r := range runs {
		at := "the workflow function"
		b := r.bodies.under.Last()
		if b != nil {
			at = "step " + *b
		}
		_ = r.die(&death{kind: deathLost, err: ErrShutdown})
		waits, asks := slices.Contains(unanswered, r.id), r.bodies.asking.Load() > 0
		switch {
		case waits && (b == nil || asks):
		case b == nil && !r.isLoaded(), asks: // the store has not answered its creation, its load, or a read of its own
			unanswered = append(unanswered, r.id)
		default:
			deaf = append(deaf, fmt.Sprintf("run %s in %s", r.id, at))
		}
	}
	slices.Sort(unanswered)
	slices.Sort(deaf)
	var errs []error
	if len(unanswered) > 0 {
		errs = append(errs, fmt.Errorf("durable: Close gave up on %s with a commit that the store has not answered: %v. Recovery treats them like runs of a process that was killed", count.Of(len(unanswered), "run"), unanswered))
	}
	if len(deaf) > 0 {
		errs = append(errs, fmt.Errorf("durable: Close gave up on %s whose code ignores its context: %v", count.Of(len(deaf), "run"), deaf))
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

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Grace returns how long Close waits for running step bodies, so that a program that
// is told to stop can say how long that takes at most.
func (e *Engine) Grace() time.Duration { return max(0, e.options.Grace) }

// runsOf yields the rows that match, page by page; after an error it ends.
func (e *Engine) runsOf(ctx context.Context, f store.Filter) iter.Seq2[*store.Run, error] {
	return func(yield func(*store.Run, error) bool) {
		for f := f; ; {
			if f.Limit == 0 {
				f.Limit = scanPage
			}
			page, err := e.store.List(ctx, f)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Runs {
				if !yield(&page.Runs[i], nil) {
					return
				}
			}
			if f.After = page.Next; f.After == "" {
				return
			}
		}
	}
}

// scanPage is how many rows are read at a time when all matching rows are read.
const scanPage = 1000

// sign makes an event that claims a run say who claims it. The executor's record in
// the store goes when its process ends; the history must still say who had the run.
func (e *Engine) sign(d *history.Claim) *history.Claim {
	d.Executor, d.Name, d.Host, d.PID, d.Build = e.id, e.options.Name, host.Name(), os.Getpid(), e.program.build
	return d
}

// newTracing returns what makes the spans of an engine that is about to be opened.
func newTracing(e *Engine) telemetry.Tracing {
	return telemetry.Tracing{
		Tracer: telemetry.NewTracer(e.options.TracerProvider), Store: e.store, ExecutorID: e.id, Link: e.options.TraceMode == TraceLink,
		TextOf: e.log.TextOf(), KindOf: e.program.errors.KindOf, StoreTime: e.storeTime,
	}
}

// parkedCodes are the reasons for which an interrupted run may be unable to go on.
var parkedCodes = []string{CodeDefinitionChanged, CodeUndecodable, CodeDamaged, CodeNotRegistered, CodeChildNotRegistered, CodeChildMissing, CodeUnrecorded}

// quarantinedRuns are failed runs, as far as the store knows, about which an
// operator is to decide.
var quarantinedRuns = store.Filter{Statuses: []store.Status{store.Failed}, Codes: []string{CodeQuarantined}}

// newMetrics returns the instruments of an engine that is about to be opened. They
// ask for its state at each collection, until they are stopped.
func newMetrics(e *Engine) (*telemetry.Metrics, error) {
	return telemetry.NewMetrics(telemetry.MetricsOptions{
		Meter: e.options.MeterProvider, ExecutorID: e.id, Workflows: slices.Collect(maps.Keys(e.program.defs.byName)),
		Store: e.store, Now: e.now, StoreError: storeError,
		Executed: e.roster.count, Closing: e.roster.isClosing, Unserved: e.recovery.EachUnserved,
		Parked: parkedCodes, Quarantine: CodeQuarantined, Quarantined: quarantinedRuns,
	})
}

// commitOne is commitKnown for one change.
func (e *Engine) commitOne(ctx context.Context, change store.Change) error {
	return e.commitKnown(ctx, ctx, []store.Change{change})[0]
}

// commitKnown commits changes that belong to no execution, and gives the store the
// context send; see commit.Committer.CommitKnown.
func (e *Engine) commitKnown(ctx, send context.Context, batch []store.Change) []error {
	if err := errInTransaction(ctx); err != nil {
		return slices.Repeat([]error{err}, len(batch))
	}
	defer asksIn(ctx)()
	return e.committer.CommitKnown(ctx, send, batch)
}

// halfImported returns why a run whose import has not finished takes no act; nil: it is none.
func halfImported(row *store.Run) error {
	if row.Code != CodeImporting {
		return nil
	}
	return &NotResumableError{RunID: row.ID, Status: row.Status, Reason: row.Reason}
}

// act carries out an act on a run, and returns the branch that the run is on; see
// commit.Act.Change. A run that is being imported takes none: its import could not find its place
// behind another event, and would never be finished.
func (e *Engine) act(ctx context.Context, row *store.Run, branches []store.Branch, a commit.Act) (int32, error) {
	if err := halfImported(row); err != nil {
		return row.Branch, err
	}
	now := e.now()
	change, branch, err := a.Change(row, branches, now, e.sealer)
	if err != nil {
		return branch, damaged(err)
	}
	err = e.commitOne(ctx, change)
	if err == nil && change.Row != nil && change.Row.Status != nil {
		status := *change.Row.Status
		e.archiver.Want(row.ID, status)
		if status.Terminal() && !row.Status.Terminal() {
			e.metrics.OrphanEnded(row, status, max(row.Last.At, now))
		}
	}
	return branch, err
}
