package durable

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// outcome is how an execution ended.
type outcome struct {
	status store.Status // empty: the run did not end; see err
	output []byte
	err    error
	next   *run // the execution of the next generation
}

// final reports whether callers that wait for the run have their answer. They have none
// if the run goes on: if another executor has it, if it is paused or unloaded, or if it
// continues with a new input.
func (o *outcome) final() bool {
	if o.status != "" || o.err == nil {
		return o.status != ""
	}
	return !errors.Is(o.err, ErrLost) && !errors.Is(o.err, ErrPaused) && !errors.Is(o.err, ErrUnloaded) && o.next == nil
}

// end records how the execution ended.
func (r *run) end(output []byte, err error) outcome {
	r.ending.Store(true)
	if d := r.dead.Load(); d != nil {
		return r.endDead(d)
	}
	// Decided now, and recorded with the first compensation: a deadline that passes
	// while the run is undone changes nothing, whichever executor goes on with it.
	stopped := r.stop.cause()
	late, _ := stopped.(*deadlineError)
	if err != nil || stopped != nil {
		if undoErr := r.undoing.compensate(&err, late != nil); undoErr != nil {
			return r.end(nil, undoErr)
		}
	}
	switch {
	case r.stop.isCancel():
		// Whatever the function returned: swallowing a cancel is not success.
		return r.endCancelled()
	case late != nil:
		return r.failLate(late, err)
	case err == nil:
		return r.complete(output)
	}
	if n := r.renewing.asked(err); n != nil {
		return r.renewing.renew(n)
	}
	return r.fail(err)
}

// endDead ends an execution that is dead. What the function returned does not matter.
func (r *run) endDead(d *death) outcome {
	switch d.kind {
	case deathLost, deathUnloaded:
		if errors.Is(d.err, store.ErrFenced) || errors.Is(d.err, store.ErrOwned) {
			r.logLine(slog.LevelWarn, "durable: a write was fenced: another executor has the run, and this execution of it ends", slog.String("executor", r.eng.id))
		}
		return outcome{err: d.err}
	case deathPaused:
		return r.endPaused(d)
	}
	if d.kind == deathShutdown && r.saysWaiting() {
		// It waits, and goes on waiting: the executor that finds it due claims it.
		return outcome{err: &InterruptedError{RunID: r.id, Workflow: r.def.name, Reason: "it waits; this engine is closed"}}
	}
	code, reason := d.code, d.reason
	if d.kind == deathShutdown && r.eng.options.bootPolicy(r.def) != ResumeOnBoot && !r.stop.isCancel() {
		// Only a person may resume it, so it must not be claimable. A cancel is carried out: a
		// person has asked for it.
		code, reason = CodeShutdown, "stopped by a shutdown"
	}
	if reason == "" && code != "" {
		reason = faults.Message(d.err)
	}
	interrupted := store.Interrupted
	data := &history.Stop{Code: code, Reason: reason, Executor: r.eng.id}
	cause := d.err
	if d.kind == deathParked {
		data.Error = r.eng.program.errors.Record(d.err)
		cause = r.eng.program.errors.Restore(data.Error)
	}
	err := r.write(&commit.Write{
		Events: []store.Event{{Type: store.WorkflowInterrupted, Data: history.Encode(data)}},
		Row:    &store.RowPatch{Status: &interrupted, Code: &code, Reason: &reason},
		Yield:  true, Alone: true,
	})
	switch {
	case err != nil:
		r.logLine(slog.LevelWarn, "durable: an interruption could not be recorded; the run is recovered when the lease has run out", slog.Any("error", err))
	case d.kind == deathShutdown:
		r.logLine(slog.LevelInfo, "durable: run interrupted")
	default:
		r.logEnd(slog.LevelWarn, "durable: run parked", interrupted, slog.String("code", code), parkedAttr(&r.eng.log, code, d.err))
	}
	return outcome{err: &InterruptedError{RunID: r.id, Workflow: r.def.name, Code: code, Reason: reason, Err: cause}}
}

// endPaused records that the execution has stopped for a pause. After a crash before
// that, the message is still there: the next owner finds it before it calls the
// function.
func (r *run) endPaused(d *death) outcome {
	yes := true
	patch := &store.RowPatch{Paused: &yes}
	if !r.saysWaiting() {
		patch = stoppedByPause(d.reason)
	}
	err := r.write(&commit.Write{
		Events: []store.Event{{Type: store.WorkflowPaused, Data: history.Encode(&history.Stop{Reason: d.reason, Message: r.inbox.Seen(), Executor: r.eng.id})}},
		Row:    patch,
		Yield:  true, Alone: true,
	})
	if err != nil {
		return outcome{err: err}
	}
	r.logLine(slog.LevelInfo, "durable: run paused", slog.String("reason", d.reason))
	return outcome{err: ErrPaused}
}

// saysWaiting reports whether the row says that r waits and nothing is left to write.
func (r *run) saysWaiting() bool {
	r.log.Lock()
	defer r.log.Unlock()
	return r.waits.rowSays.status == store.Waiting && !r.log.StashesLocked()
}

// tellParent returns the message by which an ending run tells its parent; none if it has
// no parent.
func (r *run) tellParent(status store.Status, reason string, recoverable bool, rec *history.Error, output []byte) []store.Message {
	if r.row.Parent == "" {
		return nil
	}
	return r.eng.families.tellParentOf(&r.row, history.ChildData{Status: status, Workflow: r.def.name, Reason: reason, Recoverable: recoverable, Error: rec, Trace: r.spans.Trace()}, output)
}

// completedData returns what workflow_completed says beside the output: if calls are
// matched by name, which recorded ones were not made.
func (r *run) completedData() []byte {
	if !r.matching.ByName {
		return nil
	}
	return history.Encode(&history.End{Uncalled: r.matching.Uncalled()})
}

func (r *run) complete(output []byte) outcome {
	completed, none := store.Completed, ""
	ended := r.eng.now()
	err := r.write(&commit.Write{
		Events:  []store.Event{{Type: store.WorkflowCompleted, Payload: output, Data: r.completedData()}},
		Row:     &store.RowPatch{Status: &completed, EndedAt: &ended, WakeAt: new(store.Time), Code: &none, Reason: &none},
		Expect:  store.Expect{NoCancel: true},
		Send:    append(r.tellParent(store.Completed, "", false, nil, output), r.offspring.cancelMessages()...),
		Release: true, Yield: true,
	})
	switch {
	case errors.Is(err, store.ErrCancelAsked):
		return r.cancelledFirst(false)
	case ofContent(err):
		return r.end(nil, fmt.Errorf("recording the result of run %s: %w", r.id, err))
	case err != nil:
		return r.notEnded(err)
	}
	r.eng.program.lengths.Completed(&r.row)
	r.logLine(slog.LevelInfo, "durable: run completed")
	return outcome{status: store.Completed, output: output}
}

// cancelledFirst ends a run that was about to end otherwise when its cancel came: only one
// of the two can win. undone: what was registered is undone already.
func (r *run) cancelledFirst(undone bool) outcome {
	r.inbox.fetchNow()
	r.inbox.readCancel()
	r.stop.cancel("") // in case the mail cannot be read
	if !undone {
		return r.end(nil, nil)
	}
	return r.endCancelled()
}

// endCancelled ends a run that was cancelled.
func (r *run) endCancelled() outcome {
	cancelled, no, none := store.Cancelled, false, ""
	reason := r.stop.cancelled().Reason
	if reason == "" {
		reason = "cancelled"
	}
	ended, seen := r.eng.now(), r.inbox.Seen()
	err := r.write(&commit.Write{
		Events:  []store.Event{{Type: store.WorkflowCancelled, Data: history.Encode(&history.End{Reason: reason})}},
		Row:     &store.RowPatch{Status: &cancelled, CancelAsked: &no, Code: &none, Reason: &reason, EndedAt: &ended, WakeAt: new(store.Time), Seen: &seen},
		Send:    append(r.tellParent(store.Cancelled, reason, false, nil, nil), r.offspring.cancelMessages()...),
		Release: true, Yield: true,
	})
	if err != nil {
		return r.notEnded(err)
	}
	r.logEnd(slog.LevelInfo, "durable: run cancelled", cancelled, slog.String("reason", reason))
	return outcome{status: store.Cancelled, err: &RunError{RunID: r.id, Workflow: r.def.name, Status: store.Cancelled, Reason: reason}}
}

// notEnded returns the outcome when the end of r could not be recorded because of err.
// If the store refuses the end, the run is parked, so that it is not left owned and
// executed by nobody.
func (r *run) notEnded(err error) outcome {
	if !definite(err) {
		return outcome{err: err}
	}
	_ = r.unrecorded("its end", err)
	return r.endDead(r.dead.Load())
}

func (r *run) fail(err error) outcome {
	code := CodeError
	if _, panicked := faults.Find[*PanicError](err); panicked {
		code = CodePanic
	}
	permanent := marks.Permanent(err)
	recoverable := !permanent && !r.undoing.some.Load() // a run that was undone cannot go on from where it was
	if s, ok := faults.Find[*StepError](err); ok && s.Permanent {
		recoverable = false
	}
	return r.failAs(err, code, recoverable)
}

// failLate ends a run that its deadline has stopped. The function's own error is
// recorded with it, and changes nothing.
func (r *run) failLate(late *deadlineError, err error) outcome {
	if err == nil {
		err = late
	} else if found, ok := faults.Find[*deadlineError](err); !ok || found != late {
		err = errors.Join(late, err)
	}
	return r.failAs(err, CodeDeadline, false)
}

// failAs records that the run failed with err.
func (r *run) failAs(err error, code string, recoverable bool) outcome {
	rec := r.eng.program.errors.Record(err)
	failed, reason := store.Failed, guard.Text(rec.Message, 4<<10)
	ended := r.eng.now()
	data := &history.End{Error: rec, Code: code, Reason: reason, Recoverable: &recoverable, Uncalled: r.matching.Uncalled()}
	writeErr := r.write(&commit.Write{
		Events:  []store.Event{{Type: store.WorkflowFailed, Data: history.Encode(data)}},
		Row:     &store.RowPatch{Status: &failed, Code: &code, Reason: &reason, Recoverable: &recoverable, EndedAt: &ended, WakeAt: new(store.Time)},
		Expect:  store.Expect{NoCancel: true},
		Send:    append(r.tellParent(store.Failed, reason, recoverable, rec, nil), r.offspring.cancelMessages()...),
		Release: true, Yield: true,
	})
	if errors.Is(writeErr, store.ErrCancelAsked) {
		return r.cancelledFirst(true)
	}
	if writeErr != nil {
		return r.notEnded(writeErr)
	}
	r.logEnd(slog.LevelWarn, "durable: run failed", failed, slog.String("code", code), r.eng.log.ErrorAttr(err), slog.Bool("recoverable", recoverable))
	return outcome{status: store.Failed, err: &RunError{
		RunID: r.id, Workflow: r.def.name, Status: store.Failed, Reason: reason, Recoverable: recoverable, Err: r.eng.program.errors.Restore(rec),
	}}
}
