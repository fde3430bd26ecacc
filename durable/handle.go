package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/internal/waiting"
	"github.com/holdfast-dev/holdfast/store"
)

// Run is a typed handle on a run. It holds no resource and may be copied.
type Run[O any] struct {
	eng *Engine
	id  string
	run *run // when it is executed here

	child *child // when it is a child of the run that holds the handle
}

// ID returns the run's id, the one name that it has everywhere.
func (h *Run[O]) ID() string { return h.id }

// String returns the run's id, which is what a handle prints.
func (h *Run[O]) String() string { return h.id }

// Handle returns a handle on the run with this id. It does not check that the run
// exists; Wait does.
//
// Error: ErrNoEngine.
func (w *Workflow[I, O]) Handle(ctx context.Context, id string) (*Run[O], error) {
	e, err := engineOf(ctx)
	if err != nil {
		return nil, err
	}
	return &Run[O]{eng: e, id: id}, nil
}

// Wait returns the run's output once it has completed. Errors:
//
//   - *RunError when it failed (ErrRunFailed) or was cancelled (ErrRunCancelled, and not
//     ErrCancelled); errors.Is and errors.As look through it at the recorded error
//   - *InterruptedError when it stopped without an outcome and no executor is about to
//     continue it; the message names the call that does
//   - ErrNotFound when there is no such run
//   - the cause of ctx's end, or an error that wraps it and says why nothing executes the run;
//     the run goes on
//
// Within a workflow function Wait is for the children it has started: the
// outcome is recorded, and a replay returns the same one. ErrInWorkflow for any other run:
// wait for that in a step.
func (h *Run[O]) Wait(ctx context.Context) (O, error) {
	var out O
	var env []byte
	var at payload.Place
	var err error
	s, inRun := inScope(ctx)
	if inRun {
		env, at, err = h.child.wait(ctx, s, h.id)
	} else {
		env, at, err = h.eng.watchers.wait(ctx, h.id, h.run)
	}
	if err != nil {
		return out, err
	}
	if recorded, err := h.eng.sealer.DecodeOutcome(at, env, &out); err != nil {
		var zero O
		if inRun {
			// The outcome stays recorded: other code can read it.
			return zero, s.run.undecodable("the output of child "+h.id, recorded, reflect.TypeFor[O](), err)
		}
		return zero, h.undecodable(recorded, err)
	}
	return out, nil
}

// undecodable is the error for an output that does not decode into O, outside a run.
func (h *Run[O]) undecodable(recorded string, err error) error {
	return &UndecodableError{RunID: h.id, Key: "the output", Recorded: recorded, Wanted: reflect.TypeFor[O]().String(), Err: err}
}

// Status returns where the run stands. ErrNotFound if there is no such run; ErrInWorkflow in a
// workflow function.
func (h *Run[O]) Status(ctx context.Context) (store.Status, error) {
	if err := outsideFunction(ctx, "Status of run "+h.id); err != nil {
		return "", err
	}
	i, err := h.eng.store.Load(ctx, h.id, store.Cursor{NoEvents: true})
	if err != nil {
		return "", fmt.Errorf("durable: run %s: %w", h.id, storeError(err))
	}
	return i.Run.Status, nil
}

// Result returns what Wait would, without waiting; done is false as long as the run has no
// outcome. It answers also if ctx has ended. Errors are those of Wait, and ErrInWorkflow in a
// workflow function.
func (h *Run[O]) Result(ctx context.Context) (out O, done bool, err error) {
	if err := outsideFunction(ctx, "Result of run "+h.id); err != nil {
		return out, false, err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), resultWithin)
	defer stop()
	v, told := h.eng.watchers.looks.Once(ctx, h.id)
	switch {
	case !told:
		return out, false, nil
	case v.Unread != nil:
		return out, false, fmt.Errorf("durable: run %s: %w", h.id, storeError(v.Unread))
	case v.Err != nil:
		var ended *RunError
		return out, errors.As(v.Err, &ended), v.Err
	}
	if recorded, err := h.eng.sealer.DecodeOutcome(payload.PlaceOf(h.id, &v.End), v.End.Payload, &out); err != nil {
		var zero O
		return zero, true, h.undecodable(recorded, err)
	}
	return out, true, nil
}

// resultWithin limits how long Result waits for the store.
const resultWithin = 5 * time.Second

// wait returns the output of a run, executed here or elsewhere, and its place.
func (w *watchers) wait(ctx context.Context, id string, r *run) ([]byte, payload.Place, error) {
	if r == nil {
		r = w.eng.roster.active(id)
	}
	if r != nil {
		before := ended(r)
		if err := awaitEnd(ctx, r); err != nil {
			return nil, payload.Place{}, err
		}
		if o := r.outcome; o.final() && !(before && w.wentOn(ctx, r)) {
			return o.output, payload.Place{}, o.err // not sealed
		}
	}
	return w.waitElsewhere(ctx, id)
}

// wentOn reports whether a run whose execution came to nothing went on since: it was resumed, or
// another executor has ended it. Its end here has raised its epoch once, if there was one.
func (w *watchers) wentOn(ctx context.Context, r *run) bool {
	if r.outcome.status == store.Completed {
		return false
	}
	h, err := w.eng.store.Load(ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	return err == nil && (h.Run.Resumes != r.row.Resumes || h.Run.Epoch > r.row.Epoch+1)
}

// awaitEnd waits until the execution is over, or the engine is closed: an execution
// that Close has left behind may never end.
func awaitEnd(ctx context.Context, r *run) error {
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for run %s: %w", r.id, context.Cause(ctx))
	case <-r.eng.roster.closed:
	}
	if ended(r) {
		return nil
	}
	return fmt.Errorf("waiting for run %s: %w", r.id, ErrClosed)
}

// ended reports whether an execution is over.
func ended(r *run) bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (w *watchers) waitElsewhere(ctx context.Context, id string) ([]byte, payload.Place, error) {
	for {
		if r := w.eng.roster.active(id); r != nil {
			if err := awaitEnd(ctx, r); err != nil {
				return nil, payload.Place{}, err
			}
			if o := r.outcome; o.final() {
				return o.output, payload.Place{}, o.err
			}
		}
		v, err := w.told(ctx, id)
		switch {
		case err != nil:
			return nil, payload.Place{}, err
		case !v.Here:
			return v.End.Payload, payload.PlaceOf(id, &v.End), v.Err
		}
	}
}

// told waits until there is something to tell of a run that is not executed here.
func (w *watchers) told(ctx context.Context, id string) (waiting.Verdict, error) {
	waiter := w.looks.Join(id)
	defer waiter.Leave()
	var v waiting.Verdict
	select {
	case v = <-waiter.C:
	case <-ctx.Done():
		if why := waiter.Idle(); why != "" {
			return v, fmt.Errorf("waiting for run %s: %w; nothing executes it: %s", id, context.Cause(ctx), why)
		}
		return v, fmt.Errorf("waiting for run %s: %w", id, context.Cause(ctx))
	case <-w.eng.roster.closed:
		var told bool
		if v, told = w.looks.Once(ctx, id); !told {
			return v, fmt.Errorf("waiting for run %s: %w", id, ErrClosed)
		}
	}
	if v.Unread != nil {
		v.Err = fmt.Errorf("waiting for run %s: %w", id, storeError(v.Unread))
	}
	return v, nil
}

// newLooks returns what looks at the runs that are waited for and not executed here.
func (w *watchers) newLooks() *waiting.Set {
	return waiting.New(waiting.Options{
		Store: w.eng.store, Judge: w.judge, Idle: w.idle, Go: w.eng.roster.loops.Go,
		Here:  func(id string) bool { return w.eng.roster.active(id) != nil },
		Near:  w.eng.dormitory.has,
		First: firstLook, Last: lastLook, NearLast: dormantLook,
	})
}

// judge says what those who wait for a run are told: the event that completed it, or an error;
// told is false while the run goes on.
func (w *watchers) judge(row *store.Run, executors func() ([]store.Executor, error)) (v waiting.Verdict, told bool) {
	switch row.Status {
	case store.Completed:
		if row.Last == nil || row.Last.Type != store.WorkflowCompleted {
			return waiting.Verdict{Err: &DamagedError{RunID: row.ID, Err: fmt.Errorf("it is %s and its log does not end so", row.Status)}}, true
		}
		return waiting.Verdict{End: *row.Last}, true
	case store.Failed, store.Cancelled:
		return waiting.Verdict{Err: w.runError(row)}, true
	case store.Interrupted:
		if row.Paused || row.Code == "" && w.somebodyServes(row, executors) {
			return v, false
		}
		return waiting.Verdict{Err: &InterruptedError{RunID: row.ID, Workflow: row.Workflow, Code: row.Code, Reason: row.Reason, Err: w.recordedCause(row)}}, true
	}
	return v, false
}

// idle returns why nothing will end a run that is waited for here, and what to do; empty: something
// will. Unless it was warned of that before, it logs it.
func (w *watchers) idle(row *store.Run, executors func() ([]store.Executor, error), warned bool) string {
	e := w.eng
	here := e.program.defs.find(row.Workflow, row.Version) != nil && (e.claims.Serves(row.Queue) || row.Owner == e.id)
	if row.Paused || here && e.claims.Recovered() || e.claims.Deferred()[row.ID] || e.roster.isClosing() {
		return ""
	}
	all, err := executors()
	if err != nil {
		return ""
	}
	reason, next, ok := stuck.LiveOf(all, e.id).Unended(row, here, e.program.defs.notServed(row))
	if !ok {
		return ""
	}
	// Meanwhile it may have been claimed here: it is read again.
	now, err := e.store.Load(e.life.loops, row.ID, store.Cursor{NoEvents: true})
	if err != nil || now.Run.Epoch != row.Epoch || now.Run.Status != row.Status || now.Run.Owner == e.id {
		return ""
	}
	if !warned {
		e.log.AboutRun(slog.LevelWarn, row, "durable: Wait: nothing executes this run", slog.String("reason", reason), slog.String("next", next))
	}
	return reason + "; " + next
}

func (w *watchers) runError(row *store.Run) error {
	err := &RunError{RunID: row.ID, Workflow: row.Workflow, Status: row.Status, Reason: row.Reason, Recoverable: row.Recoverable}
	err.Err = w.recordedCause(row)
	return err
}

// recordedCause returns the error that the last event of a run holds, nil if
// there is none.
func (w *watchers) recordedCause(row *store.Run) error {
	if row.Last == nil {
		return nil
	}
	why, err := history.WhyOf(row.Last)
	if err != nil {
		return nil
	}
	return w.eng.program.errors.Restore(why.Error)
}

// somebodyServes reports whether a live executor has the code of a run, and so will
// claim it.
func (w *watchers) somebodyServes(row *store.Run, executors func() ([]store.Executor, error)) bool {
	if !w.eng.roster.isClosing() && w.eng.claims.Recovered() && w.eng.program.defs.find(row.Workflow, row.Version) != nil && w.eng.claims.Serves(row.Queue) {
		return true
	}
	all, err := executors()
	if err != nil {
		return false
	}
	for _, x := range all {
		if x.Live && x.ID != w.eng.id && store.Takes(x.Serves, row) {
			return true
		}
	}
	return false
}

// RunError says how a run without a result ended.
type RunError struct {
	RunID       string
	Workflow    string
	Status      store.Status // Failed or Cancelled
	Reason      string
	Recoverable bool
	Err         error // as recorded; nil when the engine failed the run
}

func (e *RunError) Error() string {
	return fmt.Sprintf("run %s (%s) %s: %s", e.RunID, e.Workflow, e.Status, e.Reason)
}

func (e *RunError) Unwrap() error { return e.Err }

// Is matches ErrRunFailed and ErrRunCancelled by the status.
func (e *RunError) Is(target error) bool {
	return target == ErrRunFailed && e.Status == store.Failed ||
		target == ErrRunCancelled && e.Status == store.Cancelled
}

// InterruptedError says that a run stopped without an outcome, why, and how to
// continue it.
type InterruptedError struct {
	RunID    string
	Workflow string
	Code     string // empty: a graceful stop; see the Code constants
	Reason   string
	Err      error // what stopped it, as recorded; nil: only the stop itself
}

func (e *InterruptedError) Error() string {
	why := ""
	if e.Reason != "" {
		why = ": " + strings.TrimRight(e.Reason, ".")
	}
	next := fmt.Sprintf("Resume it with operate.On(engine).Resume(ctx, %q), or let durable.Recover(ctx) of a process that serves it continue it", e.RunID)
	if e.Code != "" && e.Code != CodeNotRegistered { // nobody claims it by itself
		next = "To continue it, " + stuck.Of(&store.Run{ID: e.RunID, Workflow: e.Workflow}, e.Code, e.Reason).Next
	}
	return fmt.Sprintf("run %s (%s) was interrupted%s. %s", e.RunID, e.Workflow, why, next)
}

func (e *InterruptedError) Is(target error) bool { return target == ErrInterrupted }

func (e *InterruptedError) Unwrap() error { return e.Err }

// NotResumableError says in which status a run was from which it cannot be resumed.
type NotResumableError struct {
	RunID  string
	Status store.Status
	Reason string
	// Paused is set if Unpause lets the run go on.
	Paused bool
}

func (e *NotResumableError) Error() string {
	s := fmt.Sprintf("Session %s is not resumable (status: %s)", e.RunID, e.Status)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is matches ErrNotResumable.
func (e *NotResumableError) Is(target error) bool { return target == ErrNotResumable }
