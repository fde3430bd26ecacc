package durable

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/internal/waiting"
	"github.com/holdfast-dev/holdfast/store"
)

// events is Watch without the announcement of pending waits.
func (w *watchers) events(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		changed, stop := w.watch(id)
		defer stop()
		w.tail(ctx, id, after, changed, yield)
	}
}

// tail yields the events after a number, and those that follow.
func (w *watchers) tail(ctx context.Context, id string, after int64, changed <-chan struct{}, yield func(store.Event, error) bool) {
	for pause := firstLook; ; {
		seen, ended, err := w.follow(ctx, id, after, yield)
		switch {
		case ctx.Err() != nil || ended && err == nil:
			return
		case err != nil:
			yield(store.Event{}, fmt.Errorf("durable: watching run %s: %w", id, storeError(err)))
			return
		case seen > after:
			after, pause = seen, firstLook
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-w.eng.roster.closed:
			t.Stop()
			yield(store.Event{}, fmt.Errorf("durable: watching run %s: %w", id, ErrClosed))
			return
		case <-changed:
			pause = firstLook
		case <-t.C:
			pause = min(2*pause, lastLook)
		}
		t.Stop()
	}
}

// follow yields the events after a number. ended says that nothing more will
// come, or is wanted.
func (w *watchers) follow(ctx context.Context, id string, after int64, yield func(store.Event, error) bool) (seen int64, ended bool, err error) {
	h, err := w.eng.store.Load(ctx, id, store.Cursor{After: after, All: true})
	if err != nil {
		return after, false, err
	}
	seen = after
	line := history.LifelineOf(h)
	for ev, err := range h.Events {
		if err != nil {
			return seen, false, err
		}
		if !line.Has(&ev) {
			continue
		}
		seen = ev.Seq
		if !yield(ev, nil) {
			return seen, true, nil
		}
	}
	// Row and events are of one moment: an end that the row knows of is among them.
	return seen, h.Run.Status.Terminal(), nil
}

// pendingWaits returns the waits of a run that were asked for and neither
// answered nor closed.
func (w *watchers) pendingWaits(ctx context.Context, id string) ([]store.Event, error) {
	h, err := w.eng.store.Load(ctx, id, store.Cursor{})
	if err != nil {
		return nil, err
	}
	return history.OpenWaits(h)
}

// watchers has the callers in this process that follow a run from outside.
type watchers struct {
	eng   *Engine
	count atomic.Int64 // how many there are
	looks *waiting.Set // for those who only wait for the end

	mu sync.Mutex
	of map[string][]chan struct{} // by run id
}

// watch returns a channel that gets a value when the run with this id may have
// changed.
func (w *watchers) watch(id string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	w.of = put(w.of, id, append(w.of[id], ch))
	w.mu.Unlock()
	w.count.Add(1)
	return ch, func() {
		w.count.Add(-1)
		w.mu.Lock()
		defer w.mu.Unlock()
		chs := w.of[id]
		for i := range chs {
			if chs[i] == ch {
				chs = append(chs[:i:i], chs[i+1:]...)
				break
			}
		}
		if len(chs) == 0 {
			delete(w.of, id)
		} else {
			w.of[id] = chs
		}
	}
}

// any reports whether any run is watched.
func (w *watchers) any() bool { return w.count.Load() > 0 }

// notify wakes the watchers of these runs; with no ids, all of them.
func (w *watchers) notify(ids []string) {
	w.looks.Changed(ids)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(ids) == 0 {
		for _, chs := range w.of {
			for _, ch := range chs {
				nudge.Send(ch)
			}
		}
		return
	}
	for _, id := range ids {
		for _, ch := range w.of[id] {
			nudge.Send(ch)
		}
	}
}

// How often a run that is executed elsewhere is looked at when no notice comes.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = 2 * time.Second
	// dormantLook is for a run that is unloaded in this process, of which the
	// engine hears first.
	dormantLook = time.Minute
)
