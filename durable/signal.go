package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// SignalOption changes how a signal is sent.
type SignalOption func(*store.Message)

// SignalID makes a signal idempotent: a run receives at most one signal with the
// same id. Without it every Signal is another one.
func SignalID(id string) SignalOption { return func(m *store.Message) { m.ID = id } }

// Signal sends a value to a run. It is durable when Signal returns, and waits in
// the run's inbox until an Await of that name takes it: first come, first
// served. The run may be executed by any process, or by none at the moment.
//
// Errors: ErrNotFound when there is no such run; *NotRunningError when it has
// ended; *EncodeError for a value that cannot be kept.
func Signal(ctx context.Context, runID, name string, v any, o ...SignalOption) error {
	e, err := engineOf(ctx)
	if err != nil {
		return err
	}
	return e.Signal(ctx, runID, name, v, o...)
}

// Signal is the function Signal for this engine.
func (e *Engine) Signal(ctx context.Context, runID, name string, v any, o ...SignalOption) error {
	if err := store.CheckName("signal name", name); err != nil {
		return err
	}
	payload, err := encodeAny(e, v)
	if err != nil {
		return &EncodeError{RunID: runID, Key: "signal " + name, Type: fmt.Sprintf("%T", v), Err: err}
	}
	m := store.Message{To: runID, Kind: store.KindSignal, Name: name, At: e.now(), Payload: payload}
	for _, f := range o {
		f(&m)
	}
	return e.send(ctx, m)
}

// NotRunningError says that a run has ended and can receive nothing any more.
type NotRunningError struct {
	RunID  string
	Status store.Status
}

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("durable: run %s has ended (%s): it receives nothing any more", e.RunID, e.Status)
}

// Is matches ErrNotRunning.
func (e *NotRunningError) Is(target error) bool { return target == ErrNotRunning }

// send delivers a message and wakes its receiver if it is here.
func (e *Engine) send(ctx context.Context, m store.Message) error {
	if err := store.CheckRunID(m.To); err != nil {
		return err
	}
	if m.ID == "" {
		// Known before it is sent, so that it can be sent again safely.
		m.ID = newExecutorID()
	}
	e.sealMessage(&m)
	batch := []store.Change{{Send: []store.Message{m}}}
	for {
		err := e.store.Commit(ctx, batch)[0]
		var status *store.StatusError
		switch {
		case err == nil:
			if r := e.active(m.To); r != nil {
				r.eng.background(r.fetchMail)
			}
			return nil
		case errors.As(err, &status):
			return &NotRunningError{RunID: m.To, Status: status.Status}
		case errors.Is(err, store.ErrUnknown) && ctx.Err() == nil:
			sleep(ctx, 20*time.Millisecond)
		default:
			return fmt.Errorf("durable: sending %s %q to run %s: %w", m.Kind, m.Name, m.To, err)
		}
	}
}
