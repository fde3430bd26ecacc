package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/goroutine"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/mail"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/telemetry"
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
func Prompt(text string) AwaitOption {
	return func(o *awaitOptions) { o.prompt = store.CleanText(text) }
}

// Timeout limits the wait; without it, a wait has no limit. One that has timed out returns an error
// that matches ErrTimeout, on replay too, even if a signal has come since. A signal that was durable
// before that counts. d must not be negative: of what is left until a moment, give max(d, 0).
func Timeout(d time.Duration) AwaitOption {
	return func(o *awaitOptions) { o.timeout, o.limited = d, true }
}

// TimeoutError is the recorded end of a wait that was not answered in time.
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
// the workflow waits for. The signal is consumed nevertheless: the next Await of that
// name gets the one after it.
type SignalTypeError struct {
	RunID  string
	Key    string // of the wait
	Sent   string // type of the value that was sent
	Wanted string
	Err    error
}

func (e *SignalTypeError) Error() string {
	return fmt.Sprintf("run %s: the signal for %s holds a %s and cannot be read as %s: %v", e.RunID, e.Key, payload.OrUnknown(e.Sent), e.Wanted, e.Err)
}

func (e *SignalTypeError) Unwrap() error { return e.Err }

type signalTypeErrorJSON struct{ RunID, Key, Sent, Wanted, Err string }

// MarshalJSON encodes the error, so that a replay finds it again.
func (e *SignalTypeError) MarshalJSON() ([]byte, error) {
	return json.Marshal(signalTypeErrorJSON{e.RunID, e.Key, e.Sent, e.Wanted, fmt.Sprint(e.Err)})
}

// UnmarshalJSON reverses MarshalJSON; only the message of Err is kept.
func (e *SignalTypeError) UnmarshalJSON(b []byte) error {
	var j signalTypeErrorJSON
	err := json.Unmarshal(b, &j)
	*e = SignalTypeError{RunID: j.RunID, Key: j.Key, Sent: j.Sent, Wanted: j.Wanted, Err: errors.New(j.Err)}
	return err
}

// Await waits for the next signal of this name and returns its value. It takes a signal
// that came earlier at once, and several in the order in which they were sent. The wait
// survives restarts, and may last for years. Timeout limits it. Await refuses a context
// to which the workflow has given a deadline of its own (context.WithTimeout), because a
// later process would not see it pass at the same moment: the run is parked
// (CodeUnrecorded) until the code is mended.
//
// Two waits of a run for one name must not be pending at once, unless they have
// a Prompt: answers to such waits name their wait (WaitKey), and a signal that names
// none goes to the wait that was asked first.
//
// Errors, all of them recorded: *TimeoutError with Timeout; *SignalTypeError for a
// signal that is not a T, which is consumed, so that those after it can be received; a
// refusal of a second wait for one name, which consumes none. ErrCancelled when the run
// was cancelled.
//
// An empty name is ErrInvalid, and is not recorded; nor are the errors of every durable call
// (package documentation, Errors).
func Await[T any](ctx context.Context, name string, o ...AwaitOption) (T, error) {
	var value T
	a := &awaiting{name: name, kind: store.KindSignal, call: history.CallWait, wanted: reflect.TypeFor[T]()}
	a.read = func(s *payload.Sealer, at payload.Place, env []byte) (sent string, err error) {
		var v T
		if sent, err = s.Decode(at, env, &v); err == nil {
			value = v
		}
		return sent, err
	}
	if err := a.perform(ctx, o); err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// awaiting is one wait for a message, without its type.
type awaiting struct {
	awaitOptions
	name   string
	kind   store.Kind // of the messages it takes
	call   history.CallKind
	wanted reflect.Type
	// read decodes the payload at a place, and keeps the value.
	read func(s *payload.Sealer, at payload.Place, env []byte) (sent string, err error)
	// request is the id of the message that was taken, if it is a request.
	request string
	// recorded: the receipt of the message is durable; see accept.
	recorded bool
}

// kindSaid returns the kind of call that the events of the wait name, where their types
// do not tell it.
func (a *awaiting) kindSaid() history.CallKind {
	if a.call == history.CallWait {
		return ""
	}
	return a.call
}

func (a *awaiting) perform(ctx context.Context, o []AwaitOption) error {
	s, err := scopeOf(ctx, a.name)
	if err != nil {
		return err
	}
	if err := guard.Options(&a.awaitOptions, o); err != nil {
		return fmt.Errorf("durable: Await %q: %w", a.name, err)
	}
	if a.limited && (a.timeout < 0 || a.timeout > MaxSleep) {
		return fmt.Errorf("durable: Await %q: the time limit %s is not between 0 and %s; what is left until a moment that may have passed is max(d, 0): %w", a.name, a.timeout, MaxSleep, ErrInvalid)
	}
	if len(a.prompt) > guard.MaxText {
		return fmt.Errorf("durable: Await %q: the prompt is %d bytes long; at most %d are allowed: %w", a.name, len(a.prompt), guard.MaxText, ErrInvalid)
	}
	return a.wait(ctx, s)
}

// wait performs the wait as a call of s.
func (a *awaiting) wait(ctx context.Context, s *scope) error {
	c := call{limited: s.limits(ctx)}
	if err := s.begin(&c, a.name, a.call); err != nil {
		return err
	}
	defer s.end()
	r := s.run
	if c.done() {
		return a.answered(&c)
	}
	if err := s.stopped(); err != nil {
		return err
	}
	began := r.eng.now()
	if c.opened() {
		began = c.rec.OpenedAt
	}
	wait := &mail.Wait{Key: c.key, Kind: a.kind, Name: a.name, Answer: history.WaitKey(c.key, r.row.Branch), Plain: a.prompt == ""}
	if c.opened() {
		wait.Asked = r.past.Waits[c.key].Seq
	}
	if r.rehearsal != nil {
		return a.rehearse(&c, wait)
	}
	if rival := r.inbox.Ask(wait); rival != "" {
		_, err := a.refuse(&c, began, 0, &misuse.SameWaitError{RunID: r.id, Name: a.name, Key: c.key, Other: rival})
		return err
	}
	consumed := false
	defer func() { r.inbox.Leave(wait, consumed) }()

	m, err := a.open(&c, wait)
	if err != nil {
		return err
	}
	if m == nil {
		a.trace(&c, began, telemetry.OutcomeTimedOut, nil)
		return &TimeoutError{RunID: r.id, Key: c.key, After: a.timeout}
	}
	if a.recorded {
		consumed = true
		a.trace(&c, began, telemetry.OutcomeOK, m)
		return nil
	}
	d := &history.WaitEnd{Kind: a.kindSaid(), Message: m.Seq}
	if a.call == history.CallRequest {
		a.request, d.Request = m.ID, m.ID
	}
	env, sent, err := a.receive(r, m)
	if err != nil && !payload.IsMismatch(err) {
		// The value is not wrong; this program cannot read it. Another one will, and
		// until then the message stays in the inbox.
		return r.undecodable(c.key, sent, a.wanted, err)
	}
	if err != nil {
		wrong := &SignalTypeError{RunID: r.id, Key: c.key, Sent: sent, Wanted: a.wanted.String(), Err: err}
		if a.call != history.CallRequest {
			// The event of the refusal consumes the signal: otherwise a loop around
			// Await would get this one for ever, and never one after it.
			consumed, err = a.refuse(&c, began, m.Seq, wrong)
			return err
		}
		// The request is consumed nevertheless: its sender waits for an answer, and the
		// run can give one.
		d.Error = r.eng.program.errors.Record(wrong)
	}
	if _, err := s.record(&c, store.Event{Type: store.SignalReceived, Payload: env, Data: history.Encode(d)}); err != nil {
		return err
	}
	consumed = true
	a.trace(&c, began, telemetry.OutcomeOK, m)
	return r.eng.program.errors.Restore(d.Error)
}

// rehearse looks whether the message that the wait would get can be read here, and goes no further.
func (a *awaiting) rehearse(c *call, wait *mail.Wait) error {
	r := c.scope.run
	if r.inbox.Ask(wait) == "" {
		defer r.inbox.Leave(wait, false)
	}
	select {
	case <-wait.Ready():
		if _, sent, err := a.receive(r, wait.Got()); err != nil && !payload.IsMismatch(err) {
			return r.undecodable(c.key, sent, a.wanted, err)
		}
	default:
	}
	return r.rehearsal.frontier()
}

// receive reads the value of a message, and returns its envelope.
func (a *awaiting) receive(r *run, m *store.Message) (env []byte, sent string, err error) {
	if env, err = r.eng.sealer.Unseal(payload.PlaceOfMessage(r.id, m), m.Payload); err != nil {
		return nil, "", err
	}
	if sent, err = a.read(r.eng.sealer, payload.Place{}, env); err == nil {
		err = payload.NotNothing(env, a.wanted)
	}
	return env, sent, err
}

// refuse records that a wait has ended without a value, because of why, and that this
// consumes the message with this number (0: none). It returns the error as a replay
// will.
func (a *awaiting) refuse(c *call, began store.Time, message int64, why error) (recorded bool, err error) {
	s := c.scope
	rec := s.run.eng.program.errors.Record(why)
	if _, err := s.record(c, store.Event{Type: store.WaitClosed, Data: history.Encode(&history.WaitEnd{Error: rec, Kind: a.kindSaid(), Message: message})}); err != nil {
		return false, err
	}
	a.trace(c, began, telemetry.OutcomeRefused, nil)
	return true, s.run.eng.program.errors.Restore(rec)
}

// WaitKey is the signal name that answers one wait and no other.
func WaitKey(key string, branch int32) string { return history.WaitKey(key, branch) }

// open asks for a message and waits for it. It returns nil if the wait times out.
func (a *awaiting) open(c *call, wait *mail.Wait) (*store.Message, error) {
	s, r := c.scope, c.scope.run
	var until store.Time
	switch {
	case c.opened():
		until = c.rec.Until
	case a.limited:
		s.awaitClock()
		until = max(r.eng.now().Add(a.timeout), 1)
	}
	select {
	case <-wait.Ready(): // the message came before the wait: one write is enough
		return wait.Got(), nil
	default:
	}
	p := &parking{until: until, open: true, own: goroutine.Ours(), unsaid: !c.opened()}
	if a.prompt != "" {
		p.code, p.text = CodeApproval, a.prompt
	}
	r.waits.park(p)
	defer r.waits.unpark(p)
	var err error
	if c.opened() {
		err = r.waits.sync()
	} else {
		var sample json.RawMessage
		if a.prompt != "" || a.call == history.CallWait && readsAsItLooks(a.wanted) {
			sample = payload.Sample(a.wanted)
		}
		w := p.said()
		w.Then = func(err error) {
			if err == nil {
				r.inbox.Placed(wait, w.Events[len(w.Events)-1].Seq)
			}
		}
		d := &history.WaitBegun{Kind: a.kindSaid(), Name: c.name, Prompt: a.prompt, Until: until, Beside: r.waits.othersGoOn(), Sample: sample}
		_, err = s.recordWith(c, store.Event{Type: store.WaitRequested, Data: history.Encode(d)}, w)
		if err == nil && a.prompt != "" {
			r.eng.log.OfRun(r.ctx, slog.LevelInfo, &r.row, "durable: approval requested", append(r.eng.log.PromptAttrs(a.prompt), slog.String("wait", c.key))...)
		}
	}
	if err != nil {
		return nil, err
	}
	r.eng.archiver.Waits(r.ctx, r.id)
	if a.kind == store.KindSignal {
		r.inbox.Listen(wait)
	}
	for tries := 0; ; {
		late, err := s.waitFor(p, wait.Ready())
		if err != nil {
			return nil, err
		}
		if late {
			if last, came := r.inbox.Withdraw(wait); !came {
				if timedOut, err := a.timeOut(c, p, last, tries); timedOut || err != nil {
					return nil, err
				}
				tries++
				r.inbox.Again(wait)
				r.inbox.fetchNow()
				continue
			}
		}
		if !r.inbox.Offered(wait) || a.accept(c, wait) {
			return wait.Got(), nil
		}
		if err := r.waits.sync(); err != nil {
			return nil, err
		}
	}
}

// timeOut records that the wait has timed out, unless the run has a message after the one with this
// number: it may be for the wait, and its sender was told that it is durable.
func (a *awaiting) timeOut(c *call, p *parking, last int64, tries int) (recorded bool, err error) {
	s, r := c.scope, c.scope.run
	w := &commit.Write{}
	if tries < 10 { // however fast messages come that it does not want
		w.Expect.Inbox, w.Alone = &last, true
	}
	r.waits.unpark(p)
	_, err = s.recordWith(c, store.Event{Type: store.WaitTimedOut, Data: history.Encode(&history.WaitEnd{Kind: a.kindSaid()})}, w)
	if w.Expect.Inbox == nil || !errors.Is(err, store.ErrFenced) {
		return err == nil, err
	}
	r.waits.park(p)
	return false, nil
}

// accept records a message that its sender has not recorded, with its receipt, in one change. If
// that cannot be done at once, or is refused, it declines, and the message comes again.
func (a *awaiting) accept(c *call, wait *mail.Wait) bool {
	s, r, m := c.scope, c.scope.run, wait.Got()
	env, _, err := a.receive(r, m)
	if err != nil || !s.preface.empty() || r.rehearsal != nil {
		r.inbox.Decline(wait)
		return false
	}
	before, sent := m.Seq-1, *m
	sent.Seq = 0
	ev := store.Event{Type: store.SignalReceived, Key: c.key, Ordinal: c.ordinal, Payload: env, Data: history.Encode(&history.WaitEnd{Kind: a.kindSaid(), Message: m.Seq})}
	w := &commit.Write{Events: []store.Event{ev}, Send: []store.Message{sent}, Expect: store.Expect{Inbox: &before}, Alone: true, FailFast: true}
	w.Then = func(err error) {
		if a.recorded = err == nil; a.recorded {
			r.inbox.Record(wait)
		}
	}
	r.sealEvents(w.Events, r.row.Branch)
	if _, err := r.eng.committer.CommitNow(&r.log, w); err != nil || !a.recorded {
		r.inbox.Decline(wait)
		return false
	}
	r.recordedOnce.Do(func() { close(r.recorded) })
	c.placed, s.lastAt = false, w.At()
	return true
}

// answered returns the recorded outcome of a wait that has ended.
func (a *awaiting) answered(c *call) error {
	s, r := c.scope, c.scope.run
	s.lastAt = c.rec.LastAt
	ev := &c.rec.Outcome
	if ev.Type == store.WaitTimedOut {
		return &TimeoutError{RunID: r.id, Key: c.key, After: a.timeout}
	}
	d, err := history.Of[history.WaitEnd](ev)
	switch {
	case err != nil:
		return r.damaged(ev.Seq, err)
	case ev.Type == store.WaitClosed && d.Error != nil:
		return r.eng.program.errors.Restore(d.Error)
	case ev.Type != store.SignalReceived:
		return r.damaged(ev.Seq, errors.New("a wait cannot end with "+string(ev.Type)))
	}
	a.request = d.Request
	if d.Error != nil {
		return r.eng.program.errors.Restore(d.Error)
	}
	if sent, err := a.read(r.eng.sealer, payload.PlaceOf(r.id, ev), ev.Payload); err != nil {
		return r.undecodable(c.key, sent, a.wanted, err)
	}
	return nil
}

// trace makes the span of a finished wait for a message; m is the message it has taken,
// if any.
func (a *awaiting) trace(c *call, began store.Time, outcome string, m *store.Message) {
	s := c.scope
	if s.trace == nil {
		return
	}
	kind := string(a.kind)
	if a.prompt != "" {
		kind = "approval"
	}
	w := telemetry.Wait{Name: "wait " + a.name, Began: began, Outcome: outcome, Attrs: []attribute.KeyValue{telemetry.AttrWait.String(kind)}}
	if m != nil {
		d, _ := history.DataOfMessage(m) // without its sender the wait has no link
		w.Link = telemetry.Link(telemetry.Parse(d.Trace), telemetry.LinkSender)
	}
	s.trace.Waited(s.run.ctx, c.key, w)
}
