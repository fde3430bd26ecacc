package durable

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// firstSignal is a signal that is sent with the start of its run.
type firstSignal struct {
	name    string
	value   any
	options []SignalOption
}

// WithSignal sends the run a signal in the same durable write that starts it:
// the run exists with the signal in its inbox, or neither does. If the run
// already exists with the same workflow and input, the signal is sent to it, and
// Start returns *NotRunningError if it has ended; SignalID keeps a repeated
// Start from sending the signal twice. If Start returns a *ConflictError,
// nothing is sent. The same holds for a child, except that nothing is sent to
// one that has already ended. The option may be given several times.
func WithSignal(name string, v any, o ...SignalOption) StartOption {
	return func(opts *startOptions) {
		if err := store.CheckName("signal name", name); err != nil {
			opts.refuse(err)
			return
		}
		opts.signals = append(opts.signals, firstSignal{name: name, value: v, options: o})
	}
}

// encodeSignals turns the signals into messages, whose receiver is not known
// yet.
func (o *startOptions) encodeSignals(e *Engine, id string) error {
	for _, s := range o.signals {
		payload, err := e.sealer.EncodeAny(e.sealer.Limit(), s.value)
		if err != nil {
			return &EncodeError{RunID: id, Key: "signal " + s.name, Type: fmt.Sprintf("%T", s.value), Err: err}
		}
		m := store.Message{Kind: store.KindSignal, Name: s.name, At: e.now(), Payload: payload}
		tx, err := signalOptions(&m, s.options)
		if err != nil {
			return err
		}
		if tx != nil {
			return fmt.Errorf("WithSignal %q: InTx is an option of the start, which the signal is part of: %w", s.name, ErrInvalid)
		}
		if m.ID == "" {
			m.ID = newExecutorID() // known before it is sent, so that it can be sent again safely
		}
		o.mail = append(o.mail, m)
	}
	return nil
}

// mailTo addresses the messages of a start, and seals them for their receiver.
func (mr *mailroom) mailTo(id string, mail []store.Message) []store.Message {
	if len(mail) == 0 {
		return nil
	}
	to := make([]store.Message, len(mail))
	for i, m := range mail {
		m.To = id
		mr.seal(&m)
		to[i] = m
	}
	return to
}

// firstMail returns the messages of a start as they are in the inbox of a run
// that was created with them (numbered from 1, each id once), so that the run
// need not read them.
func (mr *mailroom) firstMail(id string, mail []store.Message) []store.Message {
	var kept []store.Message
	for _, m := range mr.mailTo(id, mail) {
		if slices.ContainsFunc(kept, func(k store.Message) bool { return k.ID == m.ID && k.Kind == m.Kind }) {
			continue
		}
		m.Seq = int64(len(kept) + 1)
		kept = append(kept, m)
	}
	return kept
}

// sendFirst sends the messages of a start to a run that already existed.
func (mr *mailroom) sendFirst(ctx context.Context, id string, mail []store.Message) error {
	for _, m := range mr.mailTo(id, mail) {
		if err := mr.send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
