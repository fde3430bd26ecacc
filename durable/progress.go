package durable

import (
	"context"
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/store"
)

// SaveProgress records v in the middle of a step, from its body: after a crash
// the attempt that runs again reads it with Progress. So a body that has opened
// a session elsewhere finds its handle again, and goes on instead of beginning
// anew. It is durable when SaveProgress returns; the last one counts, also for
// the attempts of a failed step that a person resumes.
//
// A goroutine that the body has left behind saves nothing any more once the attempt
// has ended: it gets an error that matches ErrOutsideRun.
//
// Each call adds an event to the history, which keeps it as long as the run is
// kept: save a handle or a position, not what was done up to there.
func SaveProgress[T any](ctx context.Context, v T) error {
	a, ok := ctx.Value(scopeKey{}).(*attempt)
	if !ok {
		return fmt.Errorf("%w: SaveProgress is for the body of a step, with the context it is given", ErrOutsideRun)
	}
	st := a.step
	r := st.call.scope.run
	if err := r.deathOf(); err != nil {
		return err
	}
	payload, _, err := encode(r.eng, r.maxPayload, v)
	if err != nil {
		return &EncodeError{RunID: r.id, Key: st.call.key, Type: reflect.TypeFor[T]().String(), Err: err}
	}
	a.saving.Lock()
	defer a.saving.Unlock()
	if a.over {
		return a.errOver("SaveProgress")
	}
	ev := st.newEvent(store.ProgressSaved, a.number, &eventData{Input: st.input.hash})
	ev.Payload = payload
	if err := r.write(&write{events: []store.Event{ev}}); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	st.progress = payload
	return nil
}

// Progress returns what SaveProgress has last recorded in the step whose context
// ctx is, in this attempt or an earlier one, of this process or an earlier one;
// ok is false when there is nothing. What cannot be read as T stops the run,
// which stays resumable; the body should return the error.
func Progress[T any](ctx context.Context) (v T, ok bool, err error) {
	a, inStep := ctx.Value(scopeKey{}).(*attempt)
	if !inStep {
		return v, false, fmt.Errorf("%w: Progress is for the body of a step, with the context it is given", ErrOutsideRun)
	}
	st := a.step
	a.mu.Lock()
	payload := st.progress
	a.mu.Unlock()
	r := st.call.scope.run
	var at place // of what this execution has saved none is needed
	if rec := st.call.rec; payload == nil && rec != nil && rec.progress != nil {
		payload, at = rec.progress.Payload, placeOf(r.id, rec.progress)
	}
	if payload == nil {
		return v, false, nil
	}
	if recorded, err := r.eng.decode(at, payload, &v); err != nil {
		var zero T
		return zero, false, r.undecodable(st.call.key+", its progress", recorded, reflect.TypeFor[T](), err)
	}
	return v, true, nil
}
