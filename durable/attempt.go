package durable

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/retry"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
	"github.com/holdfast-dev/holdfast/store"
)

// step is one step that is being performed. Its memory is used again for another one if
// nothing else can know it; what its body may keep is the attempt.
type step struct {
	call    call
	policy  *retry.Policy // with its defaults
	relaxed bool
	long    bool
	once    bool // its body must not run twice
	// cutOff: the lease could not be renewed while a body of the step ran, and the
	// error that the body returned does not count; it may have had its effect.
	cutOff   bool
	given    any                  // to WithInput
	input    *payload.Fingerprint // of WithInput; nil: none
	failures []Failure
	start    store.Time // when the first attempt began
	ended    time.Time  // when the last attempt ended, until that is recorded

	tx *transaction // in which its body runs; nil: it is no transactional step

	saved atomic.Pointer[map[string][]byte] // progress saved in this execution, by name; see keepSaved
	spans *telemetry.Step                   // nil: none were begun
	write *stepWrite                        // memory for its next event; nil: none yet
	code  body                              // the body of the step, or of the one before it; nil: none yet
	// unseen: there was one attempt, and nobody has seen it. reusable: the step has come to
	// its result, and only the step's own goroutine knows it.
	unseen, reusable bool
	tried, said      bool // there was an attempt; the step_started of the next one is recorded already
}

// attempt is one run of a step's body; it is the context the body gets.
type attempt struct {
	context.Context
	step   *step // for those to whom see gave the attempt
	scope  *scope
	key    string // of the step
	number int
	policy *retry.Policy
	term   *heart.Term // of the lease, in which it began
	idle   bool        // its body was kept from beginning, after ready
	// Why it is idle: its run was stopped, or paused; the lease ended, or did not hold while its time ran.
	barred, vain atomic.Bool
	bounds       atomic.Pointer[bounds]
	own          atomic.Pointer[attemptOwn] // nil, or a state: there is none; see attempt.use
}

// attempts runs the body until it succeeds or fails for good, and records each
// outcome. It begins with the attempt that the history has reached.
func (st *step) attempts(ctx context.Context, b body) error {
	r := st.call.scope.run
	r.bodies.begin()
	defer r.bodies.end()
	n, wait, err := st.restore()
	if err != nil {
		return err
	}
	if limit := st.policy.MaxAttempts; limit > 0 && n > limit {
		// The policy now allows fewer attempts than have already failed.
		return st.giveUp(ctx, n-1, st.failures[n-2].Err, "no attempt is left")
	}
	if err := r.rehearsal.frontier(); err != nil {
		return err
	}
	st.awaitClock()
	if !st.begun() && (st.long || r.undoing.dependsOn(&st.call)) {
		if err := st.recordBegin(n, !st.long); err != nil {
			return st.mustRecord(err)
		}
		st.said = true
	}
	for {
		onRecord := st.said || r.claimed.onProbation()
		clock, err := st.ready(n, wait)
		if err != nil {
			return err
		}
		if err := st.deadlinePassed(); err != nil {
			// The failure is the previous attempt's, or that of the first one, which
			// did not live to fail.
			return st.giveUp(ctx, max(n-1, 1), err, "")
		}
		a, payload, err := st.run(ctx, n, b)
		took := time.Since(clock)
		st.ended = clock.Add(took)
		r.eng.metrics.AttemptEnded(st.measuredIn(), r.row.Workflow, took, err)
		if err == nil {
			recorded := st.endWell(ctx, a, payload, took)
			if err = st.tx.failure(recorded); err == nil {
				return recorded
			}
			payload = nil
		}
		if n, wait, err = st.endBadly(ctx, a, payload, took, err); err != nil {
			return err
		}
		st.said = onRecord && (a.idle || st.tx != nil) && n == a.number // a transaction may be made a hundred times; a body of Once begins yet
	}
}

// endBadly records that an attempt ended in err, unless that is no failure of the step, and
// returns the number of the next attempt and when it may begin. An error ends the step. It is
// apart from attempts, whose frame is on the stack of every body.
func (st *step) endBadly(ctx context.Context, a *attempt, output []byte, took time.Duration, err error) (next int, wait store.Time, _ error) {
	r, n := st.call.scope.run, a.number
	end := telemetry.AttemptEnd{Number: n, At: st.ended, Took: took, Outcome: telemetry.OutcomeFailed, Err: err}
	if stopped := st.externalStop(a); stopped != nil {
		// Stopped from outside: however the body reacted, it is not a failure of
		// the step.
		end.Outcome = telemetry.OutcomeStopped
		st.report(ctx, end)
		return 0, 0, stopped
	}
	if wait, again := st.repeats(a, err); again {
		end.Outcome, st.ended = telemetry.OutcomeStopped, time.Time{} // it is not recorded
		st.report(ctx, end)
		return n, wait, nil
	}
	v := st.policy.Judge(n, err, &marks, st.start, r.eng.now(), rand.Float64())
	if v.Fault != nil {
		err = fmt.Errorf("%w; and Policy.RetryIf: %w", err, v.Fault)
	}
	if v.Final {
		err = st.fail(a, err, v.Reason, took)
		unrecorded := notOfStep(err)
		if unrecorded == nil {
			st.measureStep(err)
		}
		st.report(ctx, end.Settled(unrecorded, true))
		return 0, 0, err
	}
	wait, err = st.failOnce(a, err, output, v.Pause, took)
	st.report(ctx, end.Settled(err, false))
	if err != nil {
		return 0, 0, err
	}
	r.eng.metrics.StepRetried(st.measuredIn(), r.row.Workflow)
	return n + 1, wait, nil
}

// repeats reports whether the attempt that ended in err is made again without counting, and when.
func (st *step) repeats(a *attempt, err error) (wait store.Time, again bool) {
	if a.idle && a.vain.Load() || a.term.Over() {
		// The body was told to stop because of the lease: its error is not a failure of the step
		// either. If the run turns out still to be ours, the attempt is made again.
		st.cutOff = st.cutOff || !a.idle
		return 0, true
	}
	if st.tx.repeats() {
		return st.call.scope.run.eng.now().Add(st.tx.pause(err)), true
	}
	return 0, false
}

// ready waits until attempt n may begin, not before wait, and records what must be
// recorded before its body runs. It returns the time at which the attempt begins.
func (st *step) ready(n int, wait store.Time) (clock time.Time, err error) {
	r := st.call.scope.run
	if err := st.pauseUntil(wait); err != nil && !st.goesOn() {
		return clock, err
	}
	if st.said || !r.claimed.onProbation() {
		if err := r.claimed.recordRunning(); err != nil {
			return clock, err
		}
	} else {
		if err := st.recordBegin(n, true); err != nil {
			return clock, st.mustRecord(err)
		}
		r.claimed.silent.Store(false) // this write has said so in the row, too
	}
	if err := st.mayKeep(); err != nil {
		return clock, err
	}
	clock = time.Now()
	if !r.eng.heart.Lease.Holds(clock) {
		// Another executor may have taken the run and be running this body now.
		if err := st.awaitLease(); err != nil {
			return clock, err
		}
		clock = time.Now()
	}
	if err := st.barred(); err != nil {
		// The run was taken, or stopped. A beginning that was recorded before is answered only now.
		return clock, err
	}
	if st.start == 0 {
		st.start = r.eng.storeTime(clock)
	}
	return clock, nil
}

// endWell records the outcome of an attempt whose body returned no error.
func (st *step) endWell(ctx context.Context, a *attempt, payload []byte, took time.Duration) error {
	at := st.ended // recording clears it
	err := st.succeed(a, payload, took)
	switch {
	case err == nil:
		st.measureStep(nil)
	case st.tx.failure(err) != nil:
		return err
	case ofContent(err):
		// The store refuses the result: the step ends with that failure.
		err = st.fail(a, Permanent(err), "", took)
	default:
		err = st.mustRecord(err)
	}
	if st.traced(ctx) {
		st.report(ctx, telemetry.AttemptEnd{Number: a.number, At: at, Took: took, Outcome: telemetry.OutcomeOK}.Settled(err, true))
	}
	return err
}

// restore takes over the failed attempts of the history, and returns the number of
// the next attempt and when it may begin.
func (st *step) restore() (n int, wait store.Time, err error) {
	rec := st.call.rec
	if rec == nil {
		return 1, 0, nil
	}
	r := st.call.scope.run
	st.start = rec.Began
	for i := range rec.Failures {
		ev := &rec.Failures[i]
		d, err := history.Of[history.StepEnd](ev)
		if err != nil || d.Error == nil || int(ev.Attempt) != i+1 {
			return 0, 0, r.damaged(ev.Seq, errors.New("its failure is not readable"))
		}
		st.failures = append(st.failures, st.failureOf(ev, &d))
		wait = d.NextAt
		if st.start == 0 {
			st.start = ev.At.Add(-ev.Took)
		}
	}
	return len(rec.Failures) + 1, wait, nil
}

// begun reports whether a body of the step may have begun before this attempt.
func (st *step) begun() bool { return st.cutOff || st.call.rec != nil && !st.call.rec.Fresh }

// pauseUntil waits until at, or until no further body may begin.
func (st *step) pauseUntil(at store.Time) error {
	s := st.call.scope
	if err := s.stopped(); err != nil || at == 0 {
		return err
	}
	// Not parked: the run counts as running, and stays loaded.
	if at > s.run.eng.now() {
		if err := s.run.claimed.recordRunning(); err != nil {
			return err
		}
	}
	_, err := s.waitFor(&parking{until: at}, nil)
	return err
}

// externalStop returns the stop from outside that may have caused the error of an attempt that has just ended; nil: none. A
// pause is none of a body that began: it leaves contexts alone. Nor is what Once goes on in spite of, if it is idle for another reason.
func (st *step) externalStop(a *attempt) error {
	if !(a.idle && a.barred.Load()) && (st.pausing() || a.idle && st.goesOn()) {
		return nil
	}
	return st.call.scope.stopped()
}

// pausing reports whether the run is being paused, and nothing else stops it: the bodies that run go on.
func (st *step) pausing() bool {
	r := st.call.scope.run
	d := r.dead.Load()
	return d != nil && d.kind == deathPaused && !d.stuck.Load() && r.ctx.Err() == nil
}

// run makes attempt n. A panic of the body becomes its error.
func (st *step) run(ctx context.Context, n int, b body) (a *attempt, payload []byte, err error) {
	s := st.call.scope
	ctx = st.trace(ctx).Attempt(ctx, n)
	// Of its own: the body, and goroutines that it leaves behind, may keep it.
	a = &attempt{Context: ctx, step: st, scope: s, key: st.call.key, number: n, policy: st.policy, term: s.run.eng.heart.Lease.Term()}
	alone := !st.tried
	s.seat.perform()
	st.tried = true
	if len(st.failures) > 0 {
		a.use().failures = st.failures
	}
	if st.call.rec != nil {
		a.see() // what is recorded of the step, such as its progress, is in no attempt
	}
	if limit, cause := st.limit(); limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, cause)
		defer cancel()
		a.Context = limited
	}
	r := st.call.scope.run
	r.bodies.under.Begin(&a.key)
	returned := false
	defer func() {
		r.bodies.under.End(&a.key)
		st.unseen = a.end() && alone
		if at := a.lastSaved(); at != 0 {
			st.recorded(at)
		}
		if !returned || err != nil {
			st.tx.undo(err) // before the failure is recorded: the transaction may hold what that needs
		}
		if returned {
			return
		}
		if v := recover(); v != nil {
			payload, err = nil, guard.Panicked(v)
			return
		}
		// The goroutine is ending (runtime.Goexit): nothing can be returned to
		// the workflow, so the failure is recorded here.
		end := telemetry.AttemptEnd{Number: n, At: time.Now(), Outcome: telemetry.OutcomeStopped, Err: ErrGoexit}
		if r.dead.Load() == nil || st.pausing() {
			end.Outcome = telemetry.OutcomeFailed
			end = end.Settled(notOfStep(st.fail(a, ErrGoexit, "", 0)), true)
			r.bodies.exited.Store(&a.key)
		}
		st.report(ctx, end)
	}()
	if st.call.scope.undo {
		payload, err = st.guardedBody(a, b)
	} else {
		payload, err = st.body(a, b)
	}
	returned = true
	return a, payload, err
}

// body calls the step's function within those of Options.Around.
func (st *step) body(a *attempt, b body) ([]byte, error) {
	if len(st.call.scope.run.eng.options.Around) > 0 {
		return st.around(a, b)
	}
	return b.once(a)
}

// guardedBody lets no panic and no Goexit of a compensation out: the run's end is yet to be recorded.
func (st *step) guardedBody(a *attempt, b body) (payload []byte, err error) {
	if fault := guard.Call(func() { payload, err = st.body(a, b) }); fault != nil {
		return nil, fault
	}
	return payload, err
}

// deadlinePassed returns the error of a step whose deadline has passed before its next attempt.
func (st *step) deadlinePassed() error {
	d := st.policy.Deadline
	if d == 0 || st.call.scope.run.eng.now() < st.start.Add(d) {
		return nil
	}
	err := fmt.Errorf("the deadline of all attempts, %s, has passed: %w", d, context.DeadlineExceeded)
	if n := len(st.failures); n > 0 {
		err = fmt.Errorf("%w; the last attempt: %w", err, st.failures[n-1].Err)
	}
	return err
}

// limit returns how long the next attempt may take, 0 for no limit, and the cause with which its context ends.
func (st *step) limit() (time.Duration, error) {
	limit, cause := st.policy.Timeout, error(ErrAttemptTimeout)
	if st.policy.Deadline > 0 {
		left := max(st.start.Add(st.policy.Deadline).Sub(st.call.scope.run.eng.now()), time.Microsecond)
		if limit == 0 || left < limit {
			limit, cause = left, fmt.Errorf("durable: the deadline of all attempts, %s, has passed: %w", st.policy.Deadline, context.DeadlineExceeded)
		}
	}
	return limit, cause
}

func (st *step) newEvent(t store.Type, n int, data []byte) (ev store.Event) {
	st.fillEvent(&ev, t, n, data)
	return ev
}

// fillEvent makes ev, which is zero, an event of the step.
func (st *step) fillEvent(ev *store.Event, t store.Type, n int, data []byte) {
	ev.Type, ev.Key, ev.Attempt, ev.Ordinal, ev.Data = t, st.call.key, int32(n), st.call.ordinal, data
	st.call.scope.preface.tag(ev)
}

// recorded notes that an event of the step has its place in the log, at this time.
func (st *step) recorded(at store.Time) {
	s := st.call.scope
	s.lastAt, st.call.placed = at, false
	if !s.preface.empty() {
		s.preface = preface{}
	}
}

func (st *step) succeed(a *attempt, payload []byte, took time.Duration) error {
	var data []byte
	if notes := a.taken(); notes != nil || st.input != nil {
		data = history.Encode(&history.StepEnd{Notes: notes, Input: st.inputHash()})
	}
	took = took.Truncate(time.Microsecond)
	if st.tx.isOpen() || st.relaxed && len(st.failures) == 0 {
		ev := st.newEvent(store.StepCompleted, a.number, data)
		ev.Payload, ev.Took = payload, took
		if st.tx.isOpen() {
			return st.succeedIn(ev)
		}
		return st.stash(ev)
	}
	ev := &st.writing().event[0]
	st.fillEvent(ev, store.StepCompleted, a.number, data)
	ev.Payload, ev.Took = payload, took
	_, renewed, err := st.record()
	if renewed {
		st.call.scope.memory.results.Space.Return(payload)
	}
	return err
}

// stash keeps the event of a relaxed step for the run's next write.
func (st *step) stash(ev store.Event) error {
	r := st.call.scope.run
	at, full := r.stash(ev)
	st.ended = time.Time{}
	st.recorded(at)
	if full {
		return r.flush()
	}
	return nil
}

// recordFailure is record for how a failed attempt ended.
func (st *step) recordFailure(ev store.Event) (store.Time, error) {
	st.writing().event[0] = ev
	at, _, err := st.record()
	return at, err
}

// fail records the final failure and returns it as a replay will.
func (st *step) fail(a *attempt, err error, reason string, took time.Duration) error {
	r := st.call.scope.run
	d := &history.StepEnd{Error: r.eng.program.errors.Record(err), Reason: reason, Max: st.max(), Notes: a.taken(), Input: st.inputHash()}
	ev := st.newEvent(store.StepFailed, a.number, history.Encode(d))
	ev.Took = took.Truncate(time.Microsecond)
	if _, err := st.recordFailure(ev); err != nil {
		return st.mustRecord(err)
	}
	return st.failure(a.number, d)
}

// failure returns the error that a recorded final failure stands for.
func (st *step) failure(n int, d *history.StepEnd) error {
	r := st.call.scope.run
	return &StepError{RunID: r.id, Key: st.call.key, Attempt: n, Max: d.Max, Permanent: d.Error.Permanent, Err: r.eng.program.errors.Restore(d.Error)}
}

// failOnce records a failed attempt and returns when the next may begin.
func (st *step) failOnce(a *attempt, err error, output []byte, pause, took time.Duration) (store.Time, error) {
	r := st.call.scope.run
	took = took.Truncate(time.Microsecond)
	st.call.scope.awaitClock()
	d := &history.StepEnd{Error: r.eng.program.errors.Record(err), NextAt: r.eng.now().Add(pause), Max: st.max(), Notes: a.taken(), Input: st.inputHash()}
	ev := st.newEvent(store.AttemptFailed, a.number, history.Encode(d))
	ev.Payload, ev.Took = output, took
	if ev.At, err = st.recordFailure(ev); err != nil {
		return 0, st.mustRecord(err)
	}
	st.failures = append(st.failures, st.failureOf(&ev, d))
	return d.NextAt, nil
}

func (st *step) max() int { return max(st.policy.MaxAttempts, 0) }

func (st *step) failureOf(ev *store.Event, d *history.StepEnd) Failure {
	r := st.call.scope.run
	return Failure{Attempt: int(ev.Attempt), Err: r.eng.program.errors.Restore(d.Error), At: ev.At.Time(), Took: ev.Took, Notes: d.Notes, output: ev.Payload, at: payload.PlaceOf(r.id, ev), run: r}
}

// hashInput hashes the value given to WithInput.
func (st *step) hashInput(e *Engine, o *stepOptions) error {
	if !o.hasIn {
		return nil
	}
	t := reflect.TypeOf(o.input)
	if t == nil {
		t = reflect.TypeFor[any]()
	}
	f, err := e.sealer.Fingerprint(o.input, t, 16)
	st.input = &f
	return err
}

// inputHash returns the hash of WithInput; empty: there is none.
func (st *step) inputHash() string {
	if st.input == nil {
		return ""
	}
	return st.input.Hash
}

// checkInput returns an error if a recorded step is called with another input.
func (st *step) checkInput() error {
	rec := st.call.rec
	if rec == nil || rec.Input == "" || st.input == nil || !st.input.Differs(rec.Input) {
		return nil
	}
	return st.call.scope.replay.changed(ChangeInput, &st.call,
		fmt.Sprintf("%s was recorded with another input (WithInput). Something before it that is no step gave another value this time.", st.call.key))
}
