package durable

import (
	"context"
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// SaveProgress records v in the middle of a step, from its body. After a crash, the
// attempt that runs again reads it with Progress: a body that has opened a session
// elsewhere finds its handle and continues instead of starting over. v is durable when
// SaveProgress returns. The last value saved counts, also for the attempts of a failed
// step that a person resumes.
//
// Once the attempt has ended, a goroutine that the body left behind saves nothing: it
// gets an error that matches ErrOutsideRun.
//
// Each call adds an event to the history, and the event is kept as long as the run:
// save a handle or a position, not the work done so far.
//
// Errors: ErrOutsideRun outside of the body of a step; *EncodeError for a value that cannot be
// kept; those that stop a run (package documentation, Errors).
func SaveProgress[T any](ctx context.Context, v T) error {
	return saveProgress(ctx, "SaveProgress", "", v)
}

// SaveNamedProgress is SaveProgress for one of several things that a body keeps
// track of: each name has a slot of its own, beside the one without a name. A
// helper that runs in other people's bodies saves under a name of its own, such as its
// import path, so that it does not overwrite what they save.
//
// The name is valid UTF-8 without control characters, of 1 to 255 bytes. Any other name
// is refused with an error that matches store.ErrInvalid, and nothing is saved.
func SaveNamedProgress[T any](ctx context.Context, name string, v T) error {
	if err := store.CheckName("progress name", name); err != nil {
		return err
	}
	return saveProgress(ctx, "SaveNamedProgress", name, v)
}

func saveProgress[T any](ctx context.Context, call, slot string, v T) error {
	a, ok := inBody(ctx)
	if !ok {
		return fmt.Errorf("%w: %s is for the body of a step, with the context it is given", ErrOutsideRun, call)
	}
	if err := errInTransaction(ctx); err != nil {
		return err
	}
	st := a.step
	r := st.call.scope.run
	if err := r.deathOf(); err != nil && !st.pausing() {
		return err
	}
	env, _, err := payload.Encode(r.eng.sealer, r.origin.maxPayload, v)
	if err != nil {
		return r.refuses(&EncodeError{RunID: r.id, Key: st.call.key, Type: reflect.TypeFor[T]().String(), Err: err})
	}
	o := a.use()
	o.saving.Lock()
	defer o.saving.Unlock()
	if o.over {
		return a.errOver(call)
	}
	ev := st.newEvent(store.ProgressSaved, a.number, history.Encode(&history.Progress{Input: st.inputHash(), Slot: slot}))
	ev.Payload = env
	w := &commit.Write{Events: []store.Event{ev}}
	answered := r.bodies.asks()
	err = r.write(w)
	if answered(); definite(err) && !ofContent(err) {
		err = r.unrecorded(st.call.key, err) // what the body makes of it is no outcome of the step
	}
	if err != nil {
		return err
	}
	st.call.scope.preface = preface{}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.saved = w.At()
	st.keepSaved(slot, env)
	return nil
}

// Progress returns what SaveProgress last recorded in the step whose context ctx is, in
// this attempt or an earlier one, in this process or an earlier one. ok is false if
// nothing was recorded. A value that cannot be read as T stops the run, which stays
// resumable; the body should return the error.
//
// Errors: ErrOutsideRun outside of the body of a step; *UndecodableError.
func Progress[T any](ctx context.Context) (v T, ok bool, err error) {
	return progressOf[T](ctx, "Progress", "")
}

// NamedProgress is Progress for what SaveNamedProgress has recorded under a name.
//
// Errors are those of Progress; store.ErrInvalid for the name.
func NamedProgress[T any](ctx context.Context, name string) (v T, ok bool, err error) {
	if err := store.CheckName("progress name", name); err != nil {
		return v, false, err
	}
	return progressOf[T](ctx, "NamedProgress", name)
}

func progressOf[T any](ctx context.Context, call, slot string) (v T, ok bool, err error) {
	a, inStep := inBody(ctx)
	if !inStep {
		return v, false, fmt.Errorf("%w: %s is for the body of a step, with the context it is given", ErrOutsideRun, call)
	}
	st := a.step
	r := st.call.scope.run
	env, saved := st.savedHere(slot)
	var at payload.Place // not needed for what this execution has saved
	if ev := st.call.rec.LastSaved(slot); !saved && ev != nil {
		env, at, saved = ev.Payload, payload.PlaceOf(r.id, ev), true
	}
	if !saved {
		return v, false, nil
	}
	if recorded, err := r.eng.sealer.DecodeOutcome(at, env, &v); err != nil {
		var zero T
		return zero, false, r.undecodable(stuck.NameOfProgress(st.call.key, slot), recorded, reflect.TypeFor[T](), err)
	}
	return v, true, nil
}
