package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A bare run makes steps without an engine. Each does what an engine promises of a step that
// succeeds at once, and has no code for anything else: so it is the least that a step can
// take on this store, and not an engine that anybody could use.
type bare struct {
	s     store.Store
	began time.Time

	// stopped ends the run from outside: a cancel, a pause, the end of the engine.
	stopped atomic.Pointer[error]
	// busy refuses a call beside the one in progress.
	busy atomic.Bool
	// The lease ends at one of these moments, by the monotonic and by the wall clock, which
	// also counts while the machine sleeps.
	until time.Duration
	wall  int64

	// The names of the calls: which one it was last, and how often.
	last  string
	calls int32
	keys  history.Keys

	// space is where a result is encoded. The store has copied it when Commit returns.
	space []byte

	// mu guards the end of the log, which branches share, and what is known of the commit in
	// flight: whoever closes the engine gives it up, whoever looks at its health reads it.
	mu       sync.Mutex
	inFlight time.Time // when it was sent
	paces    [1024]time.Duration
	log      log
	steps    int32
	lastAt   store.Time
	change   [1]store.Change
	event    [1]store.Event
	sealing  store.Sealing
}

type bareKey struct{}

// bareContext is the context of the run's function.
type bareContext struct {
	context.Context
	run *bare
}

func (c *bareContext) Value(key any) any {
	if key == (bareKey{}) {
		return c.run
	}
	return c.Context.Value(key)
}

// bareAttempt is the context of a body, which may keep it, and learns from it which attempt of
// what it is.
type bareAttempt struct {
	context.Context
	run    *bare
	key    string
	number int
	ended  atomic.Bool // nothing more is accepted from a goroutine that the body left behind
}

func (a *bareAttempt) Value(key any) any {
	if key == (bareKey{}) {
		return a
	}
	return a.Context.Value(key)
}

var errBare = errors.New("the step cannot be made")

// bareStep makes one step: encode appends the envelope of its result.
func bareStep[T any](ctx context.Context, name string, fn func(context.Context) (T, error), encode func([]byte, *T) []byte) (result T, err error) {
	r, ok := ctx.Value(bareKey{}).(*bare)
	if !ok {
		return result, errBare
	}
	if stop := r.stopped.Load(); stop != nil {
		return result, *stop
	}
	if !r.busy.CompareAndSwap(false, true) {
		return result, errBare
	}
	defer r.busy.Store(false)
	if r.last != name {
		r.last, r.calls = name, 0
	}
	r.calls++
	a := &bareAttempt{Context: ctx, run: r, key: r.keys.Join("", name, r.calls), number: 1}
	began := time.Now()
	if began.Sub(r.began) >= r.until || began.UnixNano() >= r.wall {
		return result, errBare
	}
	if result, err = guarded(a, fn); err != nil {
		return result, err // its failure would be recorded
	}
	took := time.Since(began)
	payload := encode(r.space[:0], &result)
	r.space = payload
	return result, r.record(a, began.Add(took), took, payload)
}

// guarded calls the body so that neither a panic nor a goroutine that it leaves behind harms the run.
func guarded[T any](a *bareAttempt, fn func(context.Context) (T, error)) (result T, err error) {
	defer func() {
		a.ended.Store(true)
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return fn(a)
}

// record makes the outcome durable, in the order of the log, with the fence.
func (r *bare) record(a *bareAttempt, at time.Time, took time.Duration, payload []byte) error {
	ev := &r.event[0]
	r.mu.Lock()
	if stop := r.stopped.Load(); stop != nil {
		r.mu.Unlock()
		return *stop
	}
	r.steps++
	r.lastAt = max(r.lastAt, store.TimeOf(at))
	r.log.seq++
	*ev = store.Event{
		Seq: r.log.seq, Type: store.StepCompleted, Key: a.key, Attempt: int32(a.number), Ordinal: r.calls, At: r.lastAt,
		Took: took.Truncate(time.Microsecond), Active: at.Sub(r.began).Truncate(time.Microsecond), Steps: r.steps, Payload: payload,
	}
	r.inFlight = at
	r.mu.Unlock()
	ev.Sum = r.sealing.Seal(r.log.id, r.log.sum, ev)
	r.log.sum = ev.Sum
	err := r.s.Commit(context.Background(), r.change[:])[0]
	pace := time.Since(at)
	r.mu.Lock()
	r.inFlight = time.Time{}
	r.paces[r.steps%int32(len(r.paces))] = pace
	r.mu.Unlock()
	return err
}

// newBare creates a run and returns the context of its function.
func newBare(h *hand) (context.Context, error) {
	l, err := h.create()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	r := &bare{s: h.s, began: now, until: time.Hour, wall: now.Add(time.Hour).UnixNano(), log: *l}
	r.change[0] = store.Change{RunID: l.id, Expect: expect, Events: r.event[:]}
	return &bareContext{context.Background(), r}, nil
}

var (
	intStart     = envelope.StartOf(envelope.Prefix("json", "int", 1))
	receiptStart = envelope.StartOf(envelope.Prefix("json", "main.receipt", 1))
)

func encodeInt(b []byte, v *int) []byte { return intStart.AppendInt(b, int64(*v)) }

// encodeReceipt is the code that a generator would write for this one type.
func encodeReceipt(b []byte, v *receipt) []byte {
	b = receiptStart.Begin(b)
	b = appendText(append(b, `{"ID":`...), v.ID)
	b = strconv.AppendInt(append(b, `,"Amount":`...), v.Amount, 10)
	b = strconv.AppendBool(append(b, `,"Paid":`...), v.Paid)
	b = appendText(append(b, `,"Currency":`...), v.Currency)
	return receiptStart.Finish(append(b, '}'))
}

func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= 0x80 {
			encoded, _ := json.Marshal(s) // a text always has an encoding
			return append(b, encoded...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func bareInts(ctx context.Context, n int) error {
	for i := range n {
		v, err := bareStep(ctx, "step", func(context.Context) (int, error) { return i, nil }, encodeInt)
		if err != nil || v != i {
			return errors.Join(err, errIf(v != i))
		}
	}
	return nil
}

func bareReceipts(ctx context.Context, n int) error {
	for i := range n {
		v, err := bareStep(ctx, "step", func(context.Context) (receipt, error) {
			return receipt{ID: "H-7", Amount: int64(i), Paid: true, Currency: "EUR"}, nil
		}, encodeReceipt)
		if err != nil || v.Amount != int64(i) {
			return errors.Join(err, errIf(v.Amount != int64(i)))
		}
	}
	return nil
}

func errIf(wrong bool) error {
	if wrong {
		return errBare
	}
	return nil
}

// measureBare measures a block of steps by hand, as watched.measure does those of an engine.
func (w *watched) measureBare(t *target) (err error) {
	s, err := t.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, err := newBare(&hand{s: s})
	if err != nil {
		return err
	}
	if err := w.bare(ctx, blockSize); err != nil { // warm
		return err
	}
	return w.add(func() (time.Duration, error) {
		began := time.Now()
		err := w.bare(ctx, engineSteps)
		return time.Since(began), err
	})
}
