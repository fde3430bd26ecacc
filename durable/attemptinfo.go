package durable

import (
	"bytes"
	"context"
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"time"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// AttemptInfo is what the body of a step can learn about its own attempt.
type AttemptInfo struct {
	RunID  string
	Key    string // of the step
	Number int    // of this attempt, from 1
	Max    int    // attempts allowed; 0: no limit
	// Failures of the attempts before this one, including those in earlier processes.
	Failures []Failure
	// Execution marks this execution of the body. No other execution has the same mark:
	// not another attempt, not the same attempt in another process, not a copy or a fork
	// of the run. A body that leaves something outside puts this mark on it and saves the
	// mark, so that it knows later whose it is. The mark consists of letters, digits and
	// dots; the part before its first dot is the same for the whole run.
	Execution string
}

// Failure is a failed attempt of a step.
type Failure struct {
	Attempt int
	Err     error // as recorded
	At      time.Time
	Took    time.Duration
	Notes   map[string]json.RawMessage // from Note
	output  []byte
	at      payload.Place // of output
	run     *run
}

// String says which attempt failed, and how.
func (f Failure) String() string { return fmt.Sprintf("attempt %d: %v", f.Attempt, f.Err) }

// Output decodes the result that Seek's check refused into v, a pointer. ok is false if
// the attempt failed without a result. An output that cannot be read as v stops the run,
// which stays resumable; the body should return the error.
//
// Error: *UndecodableError.
func (f Failure) Output(v any) (ok bool, err error) {
	if len(f.output) == 0 {
		return false, nil
	}
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(v).IsNil() {
		return false, fmt.Errorf("durable: Output needs a pointer that is not nil, and got a %T: %w", v, ErrInvalid)
	}
	if recorded, err := f.run.eng.sealer.Decode(f.at, f.output, v); err != nil {
		return false, f.run.undecodable(stuck.NameOfOutput(f.at.Key, f.Attempt), recorded, t.Elem(), err)
	}
	return true, nil
}

// Attempt describes the attempt whose context ctx is. It returns the zero AttemptInfo if
// ctx belongs to none.
func Attempt(ctx context.Context) AttemptInfo {
	a, ok := inBody(ctx)
	if !ok {
		return AttemptInfo{}
	}
	var failures []Failure
	if o := a.own.Load(); holds(o) {
		failures = append(failures, o.failures...)
	}
	return AttemptInfo{
		RunID: a.step.call.scope.run.id, Key: a.step.call.key, Number: a.number, Max: a.step.max(),
		Failures: failures, Execution: a.execution(),
	}
}

// execution returns AttemptInfo.Execution.
func (a *attempt) execution() string {
	type key struct{}
	return a.Local(key{}, func() any {
		r := a.step.call.scope.run
		// An import has the id and the seed of its original, and another epoch.
		born := r.row.Epoch
		if r.past != nil {
			born = r.past.Created.Epoch
		}
		h := sha256.New()
		fmt.Fprintf(h, "%s\x00%016x\x00%d", r.id, r.origin.seed, born)
		return fmt.Sprintf("%x.%s", h.Sum(nil)[:8], cryptorand.Text())
	}).(string)
}

// Local is part of stepbody.Body.
func (a *attempt) Local(key any, make func() any) any {
	o := a.use()
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.local.At(key, make)
}

// RunLocal is part of stepbody.Body.
func (a *attempt) RunLocal(key any, make func() any) any {
	r := a.step.call.scope.run
	r.bodies.mu.Lock()
	defer r.bodies.mu.Unlock()
	return r.bodies.local.At(key, make)
}

// Interrupted is part of stepbody.Body.
func (a *attempt) Interrupted(slot string) bool {
	rec := a.step.call.rec
	ev := rec.LastSaved(slot)
	_, here := a.step.savedHere(slot)
	return ev != nil && !here && ev.Seq > rec.Settled
}

// Notes is part of stepbody.Body.
func (a *attempt) Notes(name string, yield func(seq int64, note json.RawMessage)) {
	p := a.step.call.scope.run.past
	if p == nil {
		return
	}
	look := func(ev *store.Event) {
		if len(ev.Data) == 0 || !bytes.Contains(ev.Data, []byte(`"notes"`)) {
			return
		}
		if d, err := history.Of[history.StepEnd](ev); err == nil && d.Notes[name] != nil {
			yield(ev.Seq, d.Notes[name])
		}
	}
	for _, calls := range p.Scopes {
		for _, rec := range calls {
			look(&rec.Outcome)
			for i := range rec.Failures {
				look(&rec.Failures[i])
			}
		}
	}
}

// Input is part of stepbody.Body.
func (a *attempt) Input() any { return a.step.given }

// Anew is part of stepbody.Body.
func (a *attempt) Anew() (branch int32, reset int64) {
	c := &a.step.call
	if c.rec != nil && c.rec.Fresh {
		reset = c.rec.Settled
	}
	return c.scope.run.row.Branch, reset
}

// RunID returns the id of the run that ctx belongs to: in its workflow function,
// in branches, items, step bodies and compensations. It is empty outside a run.
func RunID(ctx context.Context) string {
	if r := runOf(ctx); r != nil {
		return r.id
	}
	return ""
}

// WorkflowName returns the name of the workflow of the run that ctx belongs to,
// as it was given to Define. It is empty outside a run.
func WorkflowName(ctx context.Context) string {
	if r := runOf(ctx); r != nil {
		return r.def.name
	}
	return ""
}

// maxNotes limits all notes of one attempt together, in bytes.
const maxNotes = 64 << 10

// Note keeps a debug output with the attempt whose context ctx is: it is
// recorded with the attempt's outcome and shown with it. v is kept as JSON. A
// note that cannot be kept (v has no JSON, the notes exceed 64 KiB together, the call is
// not within a step, or a goroutine makes it after its attempt has ended) is dropped and
// logged: a note must not make a step fail. A second note under one key replaces the
// first.
func Note(ctx context.Context, key string, v any) {
	a, ok := inBody(ctx)
	if !ok {
		if e, err := engineOf(ctx); err == nil {
			e.log.Warn("durable: Note was called outside a step and is dropped", "key", key)
		}
		return
	}
	var b []byte
	var err error
	if fault := guard.Call(func() { b, err = json.Marshal(v) }); fault != nil {
		err = fault
	}
	o := a.use()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil && o.over {
		err = a.errOver("Note")
	}
	size := o.size + len(key) + len(b)
	if old, ok := o.notes[key]; ok {
		size -= len(key) + len(old) // it is replaced
	}
	if err == nil && size > maxNotes {
		err = fmt.Errorf("the notes of one attempt are limited to %d bytes", maxNotes)
	}
	if err != nil {
		a.step.call.scope.run.logLine(slog.LevelWarn, "durable: a note is dropped", slog.String("step", a.step.call.key), slog.Int("attempt", a.number), slog.String("key", key), slog.Any("error", err))
		return
	}
	if o.notes == nil {
		o.notes = map[string]json.RawMessage{}
	}
	o.notes[key] = b
	o.size = size
}

// taken returns the notes made so far.
func (a *attempt) taken() map[string]json.RawMessage {
	if a == nil {
		return nil
	}
	o := a.own.Load()
	if !holds(o) {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.notes)
}

// IdempotencyKey names the effect of the step whose context ctx is, for services
// that accept such a key. It is the same in all attempts, after every crash and on every
// branch; every other step, run and generation has another key. A step that its
// compensation has undone, and the compensation itself, get another key when they are
// made again. The key is empty outside a step.
func IdempotencyKey(ctx context.Context) string {
	a, ok := inBody(ctx)
	if !ok {
		return ""
	}
	r := a.step.call.scope.run
	return IdempotencyKeyOf(r.id, int(r.row.Generation), history.AnewKey(r.past, a.step.call.key))
}

// IdempotencyKeyOf returns what IdempotencyKey returns in the body of the step
// with this key, in this generation of the run (0: the first). Use it to ask the other
// side whether something was done. It reads no store and does not check that there is
// such a step. A step that a fork has copied was made under the key of the run that it
// was copied from. For a step that was undone and is made again, on branch 2 for example,
// key is the step's key followed by "~b2".
func IdempotencyKeyOf(runID string, generation int, key string) string {
	h := sha256.New()
	var n [8]byte
	for _, part := range []string{runID, key} {
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write([]byte(part))
	}
	binary.BigEndian.PutUint64(n[:], uint64(generation))
	h.Write(n[:])
	return "hf-" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}
