package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/mail"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// SignalOption changes how a signal is sent.
type SignalOption func(*startOptions)

// SignalID makes a signal idempotent: a run receives at most one signal with the
// same id. Without it every call of Signal sends another one.
func SignalID(id string) SignalOption { return func(o *startOptions) { o.signalID = id } }

// Signal sends a value to a run. It is durable when Signal returns, and waits in
// the run's inbox until an Await of that name takes it: first come, first
// served. The run may be executed by any process, or by none at the moment.
//
// A json.RawMessage, as people and other programs send it, is refused if it is JSON
// of another kind than the wait that is going to take it asks for, which is known while the
// run waits. null is taken only for what may be nothing: a pointer, an interface, a map, a
// slice, struct{}. A mismatch found when the signal is taken is a *SignalTypeError of the Await.
//
// A workflow function sends a signal in the body of a step, with a SignalID made from
// IdempotencyKey: a body may run again.
//
// Errors: ErrNotFound when there is no such run; *NotRunningError when it has
// ended; ErrInvalid for JSON of the wrong kind; *EncodeError for a value that cannot
// be kept; ErrUnavailable when the store could not be reached, and nothing was
// recorded; *UndecidedError when ctx ends while it is not known whether the signal
// was recorded: send it again with the id in the error; ErrInWorkflow in a workflow function.
func Signal(ctx context.Context, runID, name string, v any, o ...SignalOption) error {
	e, err := engineOf(ctx)
	if err != nil {
		return err
	}
	return e.Signal(ctx, runID, name, v, o...)
}

// Signal is the function Signal for this engine.
//
// Errors are those of Signal.
func (e *Engine) Signal(ctx context.Context, runID, name string, v any, o ...SignalOption) error {
	return e.mailroom.signal(ctx, runID, name, v, true, o...)
}

// signal is Signal; check says whether JSON is compared with what the wait for it
// asks for.
func (mr *mailroom) signal(ctx context.Context, runID, name string, v any, check bool, o ...SignalOption) error {
	if err := store.CheckName("signal name", name); err != nil {
		return err
	}
	if err := outsideFunction(ctx, fmt.Sprintf("Signal %q to run %s", name, runID)); err != nil {
		return err
	}
	payload, err := mr.eng.sealer.EncodeAny(mr.eng.sealer.Limit(), v)
	if err != nil {
		return &EncodeError{RunID: runID, Key: "signal " + name, Type: fmt.Sprintf("%T", v), Err: err}
	}
	m := store.Message{To: runID, Kind: store.KindSignal, Name: name, At: mr.eng.now(), Payload: payload}
	tx, err := signalOptions(&m, o)
	if err != nil {
		return err
	}
	if raw, ok := v.(json.RawMessage); ok && check {
		if err := mr.fits(ctx, &m, raw); err != nil {
			return err
		}
	}
	if tx != nil {
		return mr.sendIn(ctx, tx, m)
	}
	return mr.send(ctx, m)
}

// checkSignalID refuses an id that not every store could keep. An empty id is
// accepted: the signal is given one.
func checkSignalID(id string) error {
	if id == "" {
		return nil
	}
	if utf8.ValidString(id) && strings.IndexByte(id, 0) < 0 {
		return nil
	}
	return &store.NameError{Kind: "signal id", Value: id[:min(len(id), 80)], Reason: "is not valid UTF-8 without NUL"}
}

// fits returns why JSON that is to be sent cannot be what the wait that is going to
// take it asks for. It returns nil if that is not known, or if something is wrong
// with the run: sending reports that.
func (mr *mailroom) fits(ctx context.Context, m *store.Message, raw json.RawMessage) error {
	is := payload.KindOfJSON(raw)
	h, err := mr.eng.store.Load(ctx, m.To, store.Cursor{})
	if err != nil || h.Run.Status != store.Waiting {
		return nil
	}
	p, err := readPast(m.To, h.Events, 16)
	if err != nil {
		return nil
	}
	open, err := history.OpenWaits(h)
	if err != nil {
		return nil
	}
	key, sample := mail.Taker(m, open, h, p)
	if wants := payload.KindOfJSON(sample); len(sample) > 0 && is != wants && (is != "null" || string(sample) != "{}") {
		like := fmt.Sprintf("%s like %s", wants, sample)
		if wants == "a boolean" {
			like = "true or false"
		}
		return fmt.Errorf("durable: run %s: %s waits for %s, and the signal is %s: %w", m.To, key, like, is, ErrInvalid)
	}
	return nil
}

// NotRunningError says that a run has ended: it can no longer receive anything, and
// will not do what it has not done.
type NotRunningError struct {
	RunID  string
	Status store.Status
	// Missing is what was waited for and has not come, such as "publishing
	// \"progress\""; empty: something was to be sent.
	Missing string
}

func (e *NotRunningError) Error() string {
	if e.Missing != "" {
		return fmt.Sprintf("durable: run %s has ended (%s) without %s", e.RunID, e.Status, e.Missing)
	}
	return fmt.Sprintf("durable: run %s has ended (%s): there is nothing to send it, to cancel or to hold any more", e.RunID, e.Status)
}

// Is matches ErrNotRunning.
func (e *NotRunningError) Is(target error) bool { return target == ErrNotRunning }

// UndecidedError says that it is not known whether a signal, or a request, was
// recorded: its context, or the engine, ended before the store could say. Sent again
// with SignalID(ID), it is received once, whatever became of the first one; without,
// it may be received twice.
type UndecidedError struct {
	RunID string
	Name  string
	ID    string // given by the caller, or made for it
	// Request: it was sent by Request.
	Request bool
	Err     error
}

func (e *UndecidedError) Error() string {
	what := "signal"
	if e.Request {
		what = "request"
	}
	return fmt.Sprintf("durable: it is not known whether run %s has received %s %q: send it again with SignalID(%q): %v", e.RunID, what, e.Name, e.ID, e.Err)
}

// Unwrap returns the error of the store, which matches store.ErrUnknown, with the
// cause.
func (e *UndecidedError) Unwrap() error { return e.Err }
