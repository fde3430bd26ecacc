package durable

import (
	"context"
	"fmt"
	"reflect"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A published value is an event of the run's own log, with the name in its
// Data, so that it is found whatever scope published it. An answer to a request
// (request.go) is an event of the same type, which also carries the request's
// id: that tells it from a value published under the same name.

// Publish makes v known under key: any caller that knows the run's id reads it
// with Published, or waits for it with WaitPublished, from any process, also
// after the run has ended. v is durable when Publish returns, which costs one
// write; a value published later under the same key replaces it, and Continue
// keeps it. A replay publishes nothing again: the recorded value stays.
//
// It is a durable call of a workflow function, branch or item. Errors:
// *EncodeError for a value that cannot be kept, ErrInvalid for a key that is
// not a valid name (see store.CheckName), ErrNested in the body of a step.
func Publish(ctx context.Context, key string, v any) error {
	s, err := scopeOf(ctx, key)
	if err != nil {
		return err
	}
	if err := store.CheckName("published key", key); err != nil {
		return err
	}
	payload, err := s.run.eng.sealer.EncodeAny(s.run.origin.maxPayload, v)
	if err != nil {
		return s.run.refuses(&EncodeError{RunID: s.run.id, Key: "publishing " + key, Type: fmt.Sprintf("%T", v), Err: err})
	}
	var c call
	if err := s.begin(&c, key, history.CallPublish); err != nil {
		return err
	}
	defer s.end()
	if c.done() {
		s.lastAt = c.rec.LastAt
		return nil
	}
	if err := s.stopped(); err != nil {
		return err
	}
	_, err = s.record(&c, store.Event{Type: store.Published, Payload: payload, Data: history.Encode(&history.Publication{Name: key})})
	return err
}

// Published returns the value that a run last published under key; ok is false
// if there is none. Any process may be executing the run, or it may have ended.
//
// Errors: ErrNotFound when there is no such run; *UndecodableError when the
// value is not a T; ErrInWorkflow in a workflow function, where a replay would
// see another value: read it in a step.
func Published[T any](ctx context.Context, runID, key string) (v T, ok bool, err error) {
	e, err := readerOf(ctx, "Published", key)
	if err != nil {
		return v, false, err
	}
	ev, _, _, err := e.watchers.lastPublished(ctx, runID, key)
	if err != nil || ev == nil {
		return v, false, err
	}
	v, err = readPublished[T](e, runID, key, ev)
	return v, err == nil, err
}

// WaitPublished waits until a run has published, under key, a value that accept
// returns true for (nil: any), and returns it: the current value if accept
// takes it, else the first such value that comes. Many callers may wait for one
// run. A change of the run wakes them; if the process hears of none, each looks
// into the store again within two seconds.
//
// Errors: ErrNotFound; *NotRunningError when the run ends, or has ended,
// without such a value; *UndecodableError at the first value that is not a T;
// the cause of ctx's end; ErrInWorkflow in a workflow function: wait in a step.
func WaitPublished[T any](ctx context.Context, runID, key string, accept func(T) bool) (T, error) {
	var zero T
	e, err := readerOf(ctx, "WaitPublished", key)
	if err != nil {
		return zero, err
	}
	take := func(ev *store.Event) (T, bool, error) {
		v, err := readPublished[T](e, runID, key, ev)
		return v, err == nil && (accept == nil || accept(v)), err
	}
	ev, after, status, err := e.watchers.lastPublished(ctx, runID, key)
	if err != nil {
		return zero, err
	}
	if ev != nil {
		if v, ok, err := take(ev); ok || err != nil {
			return v, err
		}
	}
	if !status.Terminal() {
		for ev, err := range e.watchers.events(ctx, runID, after) {
			if err != nil {
				return zero, err
			}
			if ev.Type != store.Published {
				continue
			}
			if d, err := history.Of[history.Publication](&ev); err != nil || !d.Publishes(key) {
				continue
			}
			if v, ok, err := take(&ev); ok || err != nil {
				return v, err
			}
		}
		if ctx.Err() != nil {
			return zero, fmt.Errorf("waiting for run %s to publish %q: %w", runID, key, context.Cause(ctx))
		}
	}
	return zero, e.watchers.endedWithout(ctx, runID, fmt.Sprintf("publishing %q as it was waited for", key))
}

// readerOf returns the engine for a call that reads what may change. It refuses
// such a call where a replay would see something else.
func readerOf(ctx context.Context, what, name string) (*Engine, error) {
	e, err := engineOf(ctx)
	if err != nil {
		return nil, err
	}
	return e, outsideFunction(ctx, what+" "+strconv.Quote(name))
}

// firstTail is how many events lastPublished reads at first.
const firstTail = 64

// lastPublished finds the last event that published something under key, nil
// if there is none; it reads a long history from its end. after is the number
// of the last event read, and the status is no newer than that event.
func (w *watchers) lastPublished(ctx context.Context, runID, key string) (found *store.Event, after int64, status store.Status, err error) {
	for tail := firstTail; ; tail *= 8 {
		h, err := w.eng.store.Load(ctx, runID, store.Cursor{Tail: tail, All: true})
		if err != nil {
			return nil, 0, "", fmt.Errorf("durable: reading what run %s has published: %w", runID, storeError(err))
		}
		n, line := 0, history.LifelineOf(h) // Continue takes nothing back
		for ev, err := range h.Events {
			if err != nil {
				return nil, 0, "", fmt.Errorf("durable: reading what run %s has published: %w", runID, storeError(err))
			}
			n, after = n+1, ev.Seq
			if ev.Type != store.Published || !line.Has(&ev) {
				continue
			}
			d, err := history.Of[history.Publication](&ev)
			if err != nil {
				return nil, 0, "", &DamagedError{RunID: runID, Seq: ev.Seq, Err: err}
			}
			if d.Publishes(key) {
				found = &ev
			}
		}
		if found != nil || n < tail {
			return found, after, h.Run.Status, nil
		}
	}
}

func readPublished[T any](e *Engine, runID, key string, ev *store.Event) (v T, err error) {
	if recorded, err := e.sealer.Decode(payload.PlaceOf(runID, ev), ev.Payload, &v); err != nil {
		var zero T
		return zero, &UndecodableError{RunID: runID, Key: "the value published as " + key, Recorded: recorded, Wanted: reflect.TypeFor[T]().String(), Err: err}
	}
	return v, nil
}

// endedWithout returns the error for a caller that waited for something that a
// run did not do before it ended.
func (w *watchers) endedWithout(ctx context.Context, runID, missing string) error {
	h, err := w.eng.store.Load(ctx, runID, store.Cursor{NoEvents: true})
	if err != nil {
		return fmt.Errorf("durable: run %s: %w", runID, storeError(err))
	}
	return &NotRunningError{RunID: runID, Status: h.Run.Status, Missing: missing}
}
