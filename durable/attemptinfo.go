package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"time"
)

// AttemptInfo is what the body of a step can know of itself.
type AttemptInfo struct {
	RunID  string
	Key    string // of the step
	Number int    // of this attempt, from 1
	Max    int    // attempts allowed; 0: no limit
	// Failures of the attempts before this one, also of earlier processes.
	Failures []Failure
}

// Failure is a failed attempt of a step.
type Failure struct {
	Attempt int
	Err     error // as recorded
	At      time.Time
	Took    time.Duration
	Notes   map[string]json.RawMessage // from Note
	output  []byte
	at      place // of output
	run     *run
}

// Output decodes into v, a pointer, the result that Seek's check refused; ok is
// false when the attempt failed without one. An output that cannot be read as v
// stops the run, which stays resumable; the body should return the error.
func (f Failure) Output(v any) (ok bool, err error) {
	if len(f.output) == 0 {
		return false, nil
	}
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || reflect.ValueOf(v).IsNil() {
		return false, fmt.Errorf("durable: Output needs a pointer that is not nil, and got a %T: %w", v, ErrInvalid)
	}
	if recorded, err := f.run.eng.decode(f.at, f.output, v); err != nil {
		return false, f.run.undecodable(fmt.Sprintf("%s, output of attempt %d", f.at.key, f.Attempt), recorded, t.Elem(), err)
	}
	return true, nil
}

// Attempt returns what is known of the attempt whose context ctx is; the zero
// AttemptInfo when ctx belongs to none.
func Attempt(ctx context.Context) AttemptInfo {
	a, ok := ctx.Value(scopeKey{}).(*attempt)
	if !ok {
		return AttemptInfo{}
	}
	return AttemptInfo{
		RunID: a.step.call.scope.run.id, Key: a.step.call.key, Number: a.number, Max: a.step.max(),
		Failures: append([]Failure(nil), a.failures...),
	}
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

// maxNotes bounds what the notes of one attempt take together, in bytes.
const maxNotes = 64 << 10

// Note keeps a debug output with the attempt whose context ctx is: it is
// recorded with the attempt's outcome and shown with it. v is kept as JSON. A
// note that cannot be kept (no JSON, more than 64 KiB together, not within a
// step, made by a goroutine after its attempt had ended) is dropped and logged: it
// must not make a step fail. A note under a key that has one replaces it.
func Note(ctx context.Context, key string, v any) {
	a, ok := ctx.Value(scopeKey{}).(*attempt)
	if !ok {
		if e, err := engineOf(ctx); err == nil {
			e.log.Warn("durable: Note was called outside a step and is dropped", "key", key)
		}
		return
	}
	var b []byte
	var err error
	if fault := guarded(func() { b, err = json.Marshal(v) }); fault != nil {
		err = fault
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && a.over {
		err = a.errOver("Note")
	}
	size := a.size + len(key) + len(b)
	if old, ok := a.notes[key]; ok {
		size -= len(key) + len(old) // it is replaced
	}
	if err == nil && size > maxNotes {
		err = fmt.Errorf("the notes of one attempt are limited to %d bytes", maxNotes)
	}
	if err != nil {
		a.step.call.scope.run.log(slog.LevelWarn, "durable: a note is dropped", slog.String("step", a.step.call.key), slog.Int("attempt", a.number), slog.String("key", key), slog.Any("error", err))
		return
	}
	if a.notes == nil {
		a.notes = map[string]json.RawMessage{}
	}
	a.notes[key] = b
	a.size = size
}

// taken returns the notes made so far.
func (a *attempt) taken() map[string]json.RawMessage {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.notes)
}
