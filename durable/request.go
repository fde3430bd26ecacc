package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A request is a message like a signal, with a kind of its own. Its answer is an
// event of the run that received it, and carries the message's id. So both
// survive a crash of either side: a caller that asks again under the same id
// finds the message delivered already, and the answer in the log.

// Request sends v to a run and waits for what the run replies. In the run,
// AwaitRequest takes the request. A request is durable like a signal: if ctx
// ends before the answer comes, the request remains, and a caller that makes it
// again with the same SignalID waits for the same answer, or finds it. Within a
// step such an id is the default: it is made from the step's IdempotencyKey and
// the place of the request among those of this name that the attempt has made to
// this run, so that the step may run again. Requests that an attempt makes at
// the same time under one name need a SignalID each.
//
// Errors: ErrNotFound when there is no such run; *NotRunningError when it has
// ended, or ends, without having answered; *RefusedError with the error that the
// run passed to Refuse; *EncodeError for a value that cannot be kept,
// *UndecodableError for an answer that is not an O; the cause of ctx's end;
// ErrInWorkflow in a workflow function: make the request in a step.
func Request[O any](ctx context.Context, runID, name string, v any, o ...SignalOption) (O, error) {
	var out O
	e, err := readerOf(ctx, "Request", name)
	if err != nil {
		return out, err
	}
	if err := store.CheckName("request name", name); err != nil {
		return out, err
	}
	env, err := e.sealer.EncodeAny(e.sealer.Limit(), v)
	if err != nil {
		return out, &EncodeError{RunID: runID, Key: "request " + name, Type: fmt.Sprintf("%T", v), Err: err}
	}
	m := store.Message{To: runID, Kind: store.KindRequest, Name: name, At: e.now(), Payload: env}
	if tx, err := signalOptions(&m, o); err != nil || tx != nil {
		return out, cmp.Or(err, fmt.Errorf("durable: Request %q: an answer cannot come before the transaction has ended: send a signal with InTx: %w", name, ErrInvalid))
	}
	if a, inStep := inBody(ctx); inStep && m.ID == "" {
		m.ID = a.requestID(ctx, runID, name)
	}
	answer, err := e.mailroom.ask(ctx, m)
	if err != nil {
		return out, err
	}
	d, err := history.Of[history.Publication](answer)
	if err != nil {
		return out, &DamagedError{RunID: runID, Seq: answer.Seq, Err: err}
	}
	if d.Error != nil {
		return out, &RefusedError{RunID: runID, Name: name, Err: e.program.errors.Restore(d.Error)}
	}
	if recorded, err := e.sealer.Decode(payload.PlaceOf(runID, answer), answer.Payload, &out); err != nil {
		var zero O
		return zero, &UndecodableError{RunID: runID, Key: "the answer to request " + name, Recorded: recorded, Wanted: reflect.TypeFor[O]().String(), Err: err}
	}
	return out, nil
}

// requestID returns the id of the attempt's next request. Attempts that make the
// same requests give them the same ids.
func (a *attempt) requestID(ctx context.Context, runID, name string) string {
	o := a.use()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.requests == nil {
		o.requests = map[[2]string]int{}
	}
	place := [2]string{runID, name}
	o.requests[place]++
	return fmt.Sprintf("%s/%s#%d", IdempotencyKey(ctx), name, o.requests[place])
}

// ask delivers a request and returns the event that answers it.
func (mr *mailroom) ask(ctx context.Context, m store.Message) (*store.Event, error) {
	before, err := mr.eng.store.Load(ctx, m.To, store.Cursor{NoEvents: true, AfterMessage: math.MaxInt64})
	if err != nil {
		return nil, fmt.Errorf("durable: request %q to run %s: %w", m.Name, m.To, storeError(err))
	}
	fresh := m.ID == ""
	if fresh {
		m.ID = newExecutorID()
	}
	if err := mr.send(ctx, m); err != nil {
		return nil, err
	}
	if !fresh {
		// If it has only just come, it cannot have been answered before.
		if fresh, err = mr.hasCome(ctx, &m, before.Run.Inbox); err != nil {
			return nil, err
		}
	}
	after := int64(0)
	if fresh && before.Run.Last != nil {
		after = before.Run.Last.Seq
	}
	for ev, err := range mr.eng.watchers.events(ctx, m.To, after) {
		if err != nil {
			return nil, err
		}
		if ev.Type != store.Published {
			continue
		}
		if d, err := history.Of[history.Publication](&ev); err != nil || d.Reply == m.ID {
			return &ev, err
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("request %q to run %s was delivered and is not answered yet: %w", m.Name, m.To, context.Cause(ctx))
	}
	return nil, mr.eng.watchers.endedWithout(ctx, m.To, fmt.Sprintf("answering request %q (%s)", m.Name, m.ID))
}

// hasCome reports whether a request is among the messages that came after the
// one with this number.
func (mr *mailroom) hasCome(ctx context.Context, m *store.Message, after int64) (bool, error) {
	h, err := mr.eng.store.Load(ctx, m.To, store.Cursor{NoEvents: true, AfterMessage: after})
	if err != nil {
		return false, fmt.Errorf("durable: request %q to run %s: %w", m.Name, m.To, storeError(err))
	}
	for i := range h.Inbox {
		if h.Inbox[i].Kind == m.Kind && h.Inbox[i].ID == m.ID {
			return true, nil
		}
	}
	return false, nil
}

// Received is a request that AwaitRequest has taken. Only this value or a copy
// of it can answer the request; one that was encoded and decoded cannot.
type Received[I any] struct {
	Value I
	asked
}

// asked is a Received without its type.
type asked struct {
	run  *run
	id   string // of the message
	name string
}

// ID returns the id of the request: its SignalID, or the one it was given.
func (q asked) ID() string { return q.id }

// AwaitRequest waits for the next request of this name. It is to requests what
// Await is to signals, with the same options, order and errors; neither takes
// what was sent to the other. Answer every request with Reply or Refuse, in this
// function, branch or item or in another one.
//
// If the value is not an I, AwaitRequest returns a *SignalTypeError. The request
// has been taken nevertheless, and can be answered.
func AwaitRequest[I any](ctx context.Context, name string, o ...AwaitOption) (Received[I], error) {
	var q Received[I]
	a := &awaiting{name: name, kind: store.KindRequest, call: history.CallRequest, wanted: reflect.TypeFor[I]()}
	a.read = func(s *payload.Sealer, at payload.Place, env []byte) (sent string, err error) {
		var v I
		if sent, err = s.Decode(at, env, &v); err == nil {
			q.Value = v
		}
		return sent, err
	}
	err := a.perform(ctx, o)
	if a.request == "" || err != nil && !isTypeError(err) {
		var zero Received[I]
		return zero, err
	}
	s, _ := scopeOf(ctx, name) // perform has found it
	q.asked = asked{run: s.run, id: a.request, name: name}
	return q, err
}

func isTypeError(err error) bool {
	_, ok := faults.Find[*SignalTypeError](err)
	return ok
}

// Reply answers the request with v; its sender gets v as the result of Request.
// Reply is a durable call, made with the context of a workflow function, branch
// or item, and costs one write. The answer is durable when Reply returns.
//
// Errors: *EncodeError for a value that cannot be kept; *AnsweredError when the
// request has an answer already, which is recorded; ErrInvalid for a Received
// that AwaitRequest did not return in this run.
func (q asked) Reply(ctx context.Context, v any) error {
	s, err := q.scope(ctx, "Reply")
	if err != nil {
		return err
	}
	env, err := s.run.eng.sealer.EncodeAny(s.run.origin.maxPayload, v)
	if err != nil {
		return s.run.refuses(&EncodeError{RunID: s.run.id, Key: "the answer to request " + q.name, Type: fmt.Sprintf("%T", v), Err: err})
	}
	return q.answer(s, env, nil)
}

// Refuse answers the request with an error, which must not be nil: the sender of
// the request gets a *RefusedError that wraps it. The error keeps its message,
// and its identity if it is registered (Options.Errors) in both processes. For
// the rest see Reply.
func (q asked) Refuse(ctx context.Context, reason error) error {
	s, err := q.scope(ctx, "Refuse")
	if err != nil {
		return err
	}
	if reason == nil {
		return fmt.Errorf("durable: Refuse of request %q: the error is nil; use Reply: %w", q.name, ErrInvalid)
	}
	return q.answer(s, nil, s.run.eng.program.errors.Record(reason))
}

func (q asked) scope(ctx context.Context, what string) (*scope, error) {
	s, err := scopeOf(ctx, what)
	switch {
	case err != nil:
		return nil, err
	case q.id == "":
		return nil, fmt.Errorf("durable: %s on a request that AwaitRequest did not return: %w", what, ErrInvalid)
	case s.run != q.run:
		return nil, fmt.Errorf("durable: %s in run %s on request %q of run %s: %w", what, s.run.id, q.name, q.run.id, ErrInvalid)
	}
	return s, nil
}

// answer records the answer to a request, or that there was one already.
func (q asked) answer(s *scope, env []byte, refused *history.Error) error {
	var c call
	if err := s.begin(&c, "reply", history.CallReply); err != nil {
		return err
	}
	defer s.end()
	r := s.run
	if c.done() {
		s.lastAt = c.rec.LastAt
		d, err := history.Of[history.Publication](&c.rec.Outcome)
		switch {
		case err != nil:
			return r.damaged(c.rec.Outcome.Seq, err)
		case d.Reply == "":
			return r.eng.program.errors.Restore(d.Error)
		case d.Reply != q.id:
			return s.replay.changed(ChangeInput, &c, fmt.Sprintf("%s was recorded as the answer to request %s and is given to %s now.", c.key, d.Reply, q.id))
		}
		return nil
	}
	if err := s.stopped(); err != nil {
		return err
	}
	// Branches may answer at the same time: the first answer in the log counts.
	var late *history.Error
	w := &commit.Write{Compose: func(w *commit.Write) {
		d := &history.Publication{Kind: history.CallReply, Name: q.name, Reply: q.id, Error: refused}
		if first, ok := r.decided.answers[q.id]; ok {
			late = r.eng.program.errors.Record(&AnsweredError{RunID: r.id, Name: q.name, ID: q.id, Key: first})
			d.Reply, d.Error, w.Events[0].Payload = "", late, nil
		} else {
			r.decided.answers = put(r.decided.answers, q.id, c.key)
		}
		w.Events[0].Data = history.Encode(d)
	}}
	if _, err := s.recordWith(&c, store.Event{Type: store.Published, Payload: env}, w); err != nil {
		return err
	}
	return r.eng.program.errors.Restore(late)
}

// AnsweredError says that a request was answered for a second time. The first
// answer stands.
type AnsweredError struct {
	RunID string
	Name  string // of the request
	ID    string // of the request
	Key   string // of the call that answered it
}

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("run %s: request %q (%s) was answered already, by %s; that answer stands", e.RunID, e.Name, e.ID, e.Key)
}

// RefusedError says that a run has refused a request, and with which error.
type RefusedError struct {
	RunID string
	Name  string // of the request
	Err   error  // as recorded: message, registered sentinels and types
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("run %s refused request %q: %v", e.RunID, e.Name, e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

type refusedErrorJSON struct{ RunID, Name, Err string }

// MarshalJSON encodes the error, so that it is found again where it was
// recorded.
func (e *RefusedError) MarshalJSON() ([]byte, error) {
	return json.Marshal(refusedErrorJSON{e.RunID, e.Name, fmt.Sprint(e.Err)})
}

// UnmarshalJSON reverses MarshalJSON; only the message of Err is kept, and what
// it wraps is recorded beside it.
func (e *RefusedError) UnmarshalJSON(b []byte) error {
	var j refusedErrorJSON
	err := json.Unmarshal(b, &j)
	*e = RefusedError{RunID: j.RunID, Name: j.Name, Err: errors.New(j.Err)}
	return err
}
