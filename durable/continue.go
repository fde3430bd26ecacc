package durable

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A run that renews itself continues under its id with a new input and a short
// history, as a new generation. It keeps its one log: the generation begins on a
// root branch, so that its lineage has none of the events before it.
//
//	seq  branch
//	  1       0  workflow_created    input 1
//	  …       0
//	 17       0  workflow_continued  input 2        closes generation 0
//	 18       1  workflow_started    input 2, seed  begins generation 1
//	  …       1
//
// 17 and 18 are one Change, so there is no moment at which the run has ended and
// not begun again.

// ErrContinued is matched by the error that Continue returns.
var ErrContinued = errors.New("durable: the run continues with a new input")

// renewal is the error that Continue returns, with the input for the next
// generation.
type renewal struct {
	run   *run
	input []byte // envelope
}

func (n *renewal) Error() string {
	return fmt.Sprintf("run %s continues with a new input: return this error from the workflow function", n.run.id)
}

func (n *renewal) Is(target error) bool { return target == ErrContinued }

// A renewing is the part of a run that renews it: it keeps what Continue was last
// called with, and makes the change that begins the next generation.
type renewing struct {
	run  *run
	last atomic.Pointer[renewal]
}

// Continue lets the run start afresh with a new input, under the same id. It is for
// a workflow that goes on for ever or whose history grows long. Return its error
// from the workflow function, wrapped or not:
//
//	return out, durable.Continue(ctx, next)
//
// Nothing is recorded before the function has returned. Then one durable write
// closes the generation and begins the next one: the function is called with the
// new input and a history that has nothing else in it. Callers that wait for the
// run wait until the last generation ends. Signals that were not taken wait for the
// next generation. Children that have not ended are cancelled, unless they were
// started with Abandon; branches that First left behind are stopped, and the run
// waits for their bodies. IdempotencyKey, NewID and Rand return other values than
// before.
//
// Errors: return the one that matches ErrContinued to continue. Continue refuses,
// before anything changes: a type other than that of the workflow's input
// (ErrInvalid); a value that cannot be kept (*EncodeError); a call in a branch or
// an item, or while compensations are registered, which no other generation could
// run; and a call in a step's body (ErrNested). A run that was cancelled does not
// continue. A function that calls Continue and returns a result fails, and so does
// one that has not waited for its branches of Go.
func Continue[I any](ctx context.Context, in I) error {
	s, err := scopeOf(ctx, "Continue")
	if err != nil {
		return err
	}
	r := s.run
	if err := r.alive(); err != nil {
		return err
	}
	if err := s.enterAs("Continue"); err != nil {
		return err
	}
	defer s.end()
	if want := reflect.TypeFor[I](); r.def.input != want {
		return fmt.Errorf("durable: Continue: run %s: workflow %s takes an input of type %s, not %s: %w", r.id, r.def.name, r.def.input, want, ErrInvalid)
	}
	if err := r.renewing.refuse(s); err != nil {
		return err
	}
	input, _, err := payload.Encode(r.eng.sealer, r.origin.maxPayload, in)
	if err != nil {
		return r.refuses(&EncodeError{RunID: r.id, Type: reflect.TypeFor[I]().String(), Err: err})
	}
	n := &renewal{run: r, input: input}
	r.renewing.last.Store(n)
	return n
}

// refuse returns why Continue is refused in a scope at this moment.
func (rn *renewing) refuse(s *scope) error {
	if s.path != "" || s.undo {
		return &misuse.ContinueError{RunID: rn.run.id, Reason: fmt.Sprintf("Continue was called in %s. Return from it first, and call Continue in the workflow function itself", s.path)}
	}
	if err := rn.run.undoing.refuse(); err != nil {
		return err
	}
	return s.stopped()
}

// refuse returns why a run that has something to undo does not continue.
func (un *undoing) refuse() error {
	r := un.run
	undos, _, _ := un.all()
	if len(undos) == 0 {
		return nil
	}
	var names []string
	for _, u := range undos {
		names = append(names, u.name)
	}
	return &misuse.ContinueError{RunID: r.id, Reason: fmt.Sprintf("compensations are registered (%s), and no later generation could run them. Put what may need undoing into a child run", strings.Join(names, ", "))}
}

// asked returns the renewal that the function's error asks for, nil if none.
func (rn *renewing) asked(err error) *renewal {
	if n, ok := faults.Find[*renewal](err); ok && n.run == rn.run {
		return n
	}
	return nil
}

// returned checks what the function returned against its calls of Continue.
func (rn *renewing) returned(err error) error {
	r := rn.run
	if rn.asked(err) != nil {
		if refused := r.undoing.refuse(); refused != nil {
			return refused // registered after the call of Continue
		}
		return err
	}
	if rn.last.Load() == nil || r.stop.cause() != nil {
		return err
	}
	if err == nil {
		return &misuse.ContinueError{RunID: r.id, Reason: "Continue was called and its error was not returned. Return it from the workflow function, as in: return out, durable.Continue(ctx, next)"}
	}
	return fmt.Errorf("%w (Continue was called before, and its error was not returned: the run does not continue)", err)
}

// renew closes the generation and begins the next one, in one change. The run
// is not given up in between: the next execution continues under the same epoch.
// After a crash before the write, the end of the function runs again; after a crash
// later than that, the new generation has begun.
func (rn *renewing) renew(n *renewal) outcome {
	r := rn.run
	r.goroutines.endLeftovers()
	if d := r.dead.Load(); d != nil && d.kind != deathRenewed {
		return r.endDead(d)
	}
	number, generation := r.decided.lastBranch+1, r.row.Generation+1
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails, according to its documentation
	seen, pending := r.inbox.Carry()
	b := &commit.Branching{
		At:     1,
		Branch: store.Branch{N: number, Parent: number, Generation: generation, Reason: "continued", CreatedAt: r.eng.now()},
		Data: history.Beginning{
			Seed: hex.EncodeToString(seed[:]), MaxPayload: r.eng.options.MaxPayload, Declared: r.def.steps, Executor: r.eng.id, Segment: r.spans.Trace(),
			Generation: generation, Inbox: seen, Pending: pending,
			Headers: r.origin.headers, Deadline: r.origin.deadline, Exclusive: r.origin.exclusive, Attributes: r.decided.attributes, Environment: r.eng.program.recorded, Scheduled: r.origin.scheduled,
			Run: history.IdentityOf(&r.row),
		},
	}
	r.origin.trace.KeepIn(&b.Data)
	r.eng.sign(&history.Claim{}).KeepIn(&b.Data)
	w := &commit.Write{
		Events: []store.Event{
			{Type: store.WorkflowContinued, Payload: n.input, Data: history.Encode(&history.Continued{Generation: generation})},
			{Type: store.WorkflowStarted, Payload: n.input, Data: history.Encode(&b.Data)},
		},
		// Strikes start from zero: what comes after workflow_started looks like a
		// claim with nothing recorded, which it is not.
		Row:       &store.RowPatch{Branch: &number, Generation: &generation, Seen: &seen, Strikes: new(int32)},
		Expect:    store.Expect{NoCancel: true},
		Send:      r.offspring.cancelMessages(),
		Branching: b,
	}
	switch err := r.write(w); {
	case errors.Is(err, store.ErrCancelAsked):
		return r.cancelledFirst(true)
	case ofContent(err):
		return r.fail(fmt.Errorf("continuing run %s with a new input: %w", r.id, err))
	case err != nil:
		return r.notEnded(err)
	}
	r.logLine(slog.LevelInfo, "durable: run continued", slog.Int("generation", int(generation)))
	if d := r.dead.Load(); d != nil && d.kind == deathLost {
		return outcome{err: d.err}
	}
	row := r.row
	row.Branch, row.Generation, row.Seen, row.Strikes = number, generation, seen, 0
	row.Status, row.Code, row.Reason, row.WakeAt = store.Running, "", "", 0
	row.Last = &w.Events[1]
	next := newRun(r.eng, row, r.def)
	next.ctx = next.spans.Enter(next.ctx, r.spans.Segment, row.Trace)
	next.source.from = &store.Cursor{After: row.Last.Seq - 1, AfterMessage: history.FloorOf(seen, pending)}
	return outcome{err: ErrContinued, next: next}
}
