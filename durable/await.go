package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// AwaitOption changes how Await waits.
type AwaitOption func(*awaitOptions)

type awaitOptions struct {
	prompt  string
	timeout time.Duration
	limited bool
}

// Prompt makes the wait an approval: a person is asked, with this text. The run
// is listed as waiting for a person until somebody answers.
func Prompt(text string) AwaitOption { return func(o *awaitOptions) { o.prompt = text } }

// Timeout limits the wait; without it, it has no limit. A wait that has run out
// returns an error that matches ErrTimeout, on replay too, whatever has come
// later.
func Timeout(d time.Duration) AwaitOption {
	return func(o *awaitOptions) { o.timeout, o.limited = d, true }
}

// TimeoutError is the recorded end of a wait that nobody answered in time.
type TimeoutError struct {
	RunID string
	Key   string // of the wait
	After time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("run %s: no signal for %s within %s", e.RunID, e.Key, e.After)
}

// Is matches ErrTimeout.
func (e *TimeoutError) Is(target error) bool { return target == ErrTimeout }

// SignalTypeError says that a signal came whose value is not of the type that
// the workflow waits for. The signal stays in the inbox.
type SignalTypeError struct {
	RunID  string
	Key    string // of the wait
	Sent   string // type of the value that was sent
	Wanted string
	Err    error
}

func (e *SignalTypeError) Error() string {
	return fmt.Sprintf("run %s: the signal for %s holds a %s and cannot be read as %s: %v", e.RunID, e.Key, orUnknown(e.Sent), e.Wanted, e.Err)
}

func (e *SignalTypeError) Unwrap() error { return e.Err }

// Await waits for the next signal of this name and returns its value. A signal
// that came before is taken at once; several are taken in the order in which
// they were sent. The wait survives restarts, and may last for years.
//
// Errors: *TimeoutError with Timeout; *SignalTypeError, and the signal is kept;
// ErrCancelled.
func Await[T any](ctx context.Context, name string, o ...AwaitOption) (T, error) {
	var value T
	s, err := scopeOf(ctx, name)
	if err != nil {
		return value, err
	}
	var opts awaitOptions
	for _, f := range o {
		f(&opts)
	}
	if opts.limited && (opts.timeout < 0 || opts.timeout > MaxSleep) {
		return value, fmt.Errorf("durable: Await %q: the time limit %s is not between 0 and %s: %w", name, opts.timeout, MaxSleep, ErrInvalid)
	}
	if len(opts.prompt) > maxMessage {
		return value, fmt.Errorf("durable: Await %q: the prompt is %d bytes long; at most %d are allowed: %w", name, len(opts.prompt), maxMessage, ErrInvalid)
	}
	read := func(at place, payload []byte) (sent string, err error) {
		var v T
		if sent, err = s.run.eng.decode(at, payload, &v); err == nil {
			value = v
		}
		return sent, err
	}
	if err := s.await(name, &opts, reflect.TypeFor[T](), read); err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// await is Await without the type; read decodes a payload.
func (s *scope) await(name string, o *awaitOptions, wanted reflect.Type, read func(place, []byte) (string, error)) error {
	var c call
	if err := s.begin(&c, name, callWait); err != nil {
		return err
	}
	defer s.end()
	r := s.run
	if c.done() {
		return s.answered(&c, o, wanted, read)
	}
	if err := s.stopped(); err != nil {
		return err
	}
	// A plain signal is for whoever waits for its name; an answer names the
	// wait it answers, so that a person is asked again after a jump back.
	wait := WaitKey(c.key, r.row.Branch)
	mail := r.inbox.ask(func(m *store.Message) bool {
		return m.Kind == store.KindSignal && (m.Name == name || m.Name == wait)
	})
	consumed := false
	defer func() { r.inbox.leave(mail, consumed) }()

	m, err := s.open(&c, o, mail)
	if err != nil {
		return err
	}
	if m == nil {
		if _, err := s.recordWith(&c, store.Event{Type: store.WaitTimedOut}, &write{}); err != nil {
			return err
		}
		return &TimeoutError{RunID: r.id, Key: c.key, After: o.timeout}
	}
	payload, err := r.eng.unseal(r.placeOfMail(m), m.Payload)
	sent := ""
	if err == nil {
		sent, err = read(place{}, payload)
	}
	switch {
	case err == nil:
	case readable(err):
		return &SignalTypeError{RunID: r.id, Key: c.key, Sent: sent, Wanted: wanted.String(), Err: err}
	default:
		// Not what it holds, but that this program cannot read it: another one
		// will, and until then the signal stays in the inbox.
		return r.undecodable(c.key, sent, wanted, err)
	}
	if _, err := s.record(&c, store.Event{Type: store.SignalReceived, Payload: payload, Data: (&eventData{Message: m.Seq}).encode()}); err != nil {
		return err
	}
	consumed = true
	return nil
}

// WaitKey is the signal name that answers one wait and no other.
func WaitKey(key string, branch int32) string { return fmt.Sprintf("%s@%d", key, branch) }

// open asks for a message and waits for it; a nil message is a time-out.
func (s *scope) open(c *call, o *awaitOptions, mail *mailWait) (*store.Message, error) {
	r := s.run
	var until store.Time
	switch {
	case c.opened():
		until = c.rec.until
	case o.limited:
		until = max(r.eng.now().Add(o.timeout), 1)
	}
	select {
	case <-mail.ready: // it was there before it was asked for: one write is enough
		return mail.got, nil
	default:
	}
	p := &parking{until: until}
	if o.prompt != "" {
		p.code, p.text = CodeApproval, o.prompt
	}
	r.park(p)
	defer r.unpark(p)
	var err error
	if c.opened() {
		err = r.syncRow()
	} else {
		_, err = s.record(c, store.Event{Type: store.WaitRequested, Data: (&eventData{Prompt: o.prompt, Until: until, Name: c.name}).encode()})
	}
	if err != nil {
		return nil, err
	}
	late, err := s.waitFor(mail.ready, until)
	switch {
	case err != nil:
		return nil, err
	case late && !r.inbox.withdraw(mail):
		return nil, nil
	}
	return mail.got, nil
}

// answered returns what the history says of a wait that has ended.
func (s *scope) answered(c *call, o *awaitOptions, wanted reflect.Type, read func(place, []byte) (string, error)) error {
	r := s.run
	s.lastAt = c.rec.lastAt
	ev := &c.rec.outcome
	switch ev.Type {
	case store.SignalReceived:
		if sent, err := read(placeOf(r.id, ev), ev.Payload); err != nil {
			return r.undecodable(c.key, sent, wanted, err)
		}
		return nil
	case store.WaitTimedOut:
		return &TimeoutError{RunID: r.id, Key: c.key, After: o.timeout}
	}
	return r.damaged(ev.Seq, errors.New("a wait cannot end with "+string(ev.Type)))
}
