package termview

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// Source is the means to follow a run: an engine, or a server's client.
type Source interface {
	Watch(ctx context.Context, id string, after int64) iter.Seq2[store.Event, error]
	History(ctx context.Context, id string) iter.Seq2[store.Event, error]
}

// Executor is a Source that executes runs itself and knows which steps it is
// executing.
type Executor interface {
	Executing(id string) (key string, ok bool)
}

// refresh is how often the live line is redrawn and an Executor is polled.
const refresh = 100 * time.Millisecond

// Follow prints what happens to a run, starting after event number after (0: from
// its beginning), until it ends or ctx does, which is not an error. If see is not
// nil, each event is passed to it before it is printed.
func (v *View) Follow(ctx context.Context, src Source, id string, after int64, see func(store.Event)) error {
	return follow(ctx, src, id, follower{
		event: func(ev store.Event) error {
			if ev.Seq <= after {
				return v.Skip(ev)
			}
			if see != nil {
				see(ev)
			}
			return v.Event(ev)
		},
		restart: func(cut store.Event, history []store.Event) error {
			if cut.Seq <= after {
				return v.Skip(cut)
			}
			if see != nil {
				see(cut)
			}
			return v.Restart(cut, history)
		},
		tick: func() {
			if x, ok := src.(Executor); ok {
				key, _ := x.Executing(id)
				v.Running(key)
			}
			v.Tick()
		},
		stop: v.Stop,
	})
}

// A follower receives what happens to a run.
type follower struct {
	event   func(store.Event) error
	restart func(cut store.Event, history []store.Event) error
	tick    func()
	stop    func()
}

// follow watches a run from its first event. It calls the follower only on the
// caller's goroutine.
func follow(ctx context.Context, src Source, id string, f follower) error {
	ctx, cancel := context.WithCancel(ctx)
	type told struct {
		ev  store.Event
		err error
	}
	events, over := make(chan told), make(chan struct{})
	go func() {
		defer close(over)
		defer close(events)
		for ev, err := range src.Watch(ctx, id, 0) {
			select {
			case events <- told{ev, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		<-over
		f.stop()
	}()
	ticker := time.NewTicker(refresh)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f.tick()
		case t, ok := <-events:
			switch {
			case !ok:
				return nil
			case t.err != nil:
				return t.err
			}
			if !operate.Cuts(&t.ev) {
				if err := f.event(t.ev); err != nil {
					return err
				}
				continue
			}
			history, err := collect(src.History(ctx, id), t.ev.Seq)
			if err != nil {
				return err
			}
			if err := f.restart(t.ev, history); err != nil {
				return err
			}
		}
	}
}

// collect returns the events up to a number.
func collect(events iter.Seq2[store.Event, error], upTo int64) (all []store.Event, err error) {
	for ev, err := range events {
		switch {
		case err != nil:
			return nil, err
		case ev.Seq > upTo:
			return all, nil
		}
		all = append(all, ev)
	}
	return all, nil
}
