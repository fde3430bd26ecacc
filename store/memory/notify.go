package memory

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
)

// listener collects notices for one Notify call. Its fields are under data.mu.
type listener struct {
	wake chan struct{} // holds one token while there is something to report
	ids  []string
	all  bool
}

// maxNotice bounds what is kept for a slow listener; beyond it, the notice says
// to look at everything.
const maxNotice = 1024

// Notify implements store.Notifier. fn runs on the caller's goroutine, outside
// the store's lock, so it may call the store.
func (s *Store) Notify(ctx context.Context, fn func(store.Notice)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	d := s.data
	l := &listener{wake: make(chan struct{}, 1), all: true} // earlier changes were missed
	l.wake <- struct{}{}
	d.listeners[l] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.listeners, l)
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return store.ErrClosed
		case <-l.wake:
		}
		d.mu.Lock()
		n := store.Notice{RunIDs: l.ids}
		if l.all {
			n.RunIDs = nil
		}
		l.ids, l.all = nil, false
		d.mu.Unlock()
		fn(n)
	}
}

// notify makes every listener look at these runs, or at all runs if none is named.
func (d *data) notify(ids ...string) {
	for l := range d.listeners {
		l.ids = append(l.ids, ids...)
		if len(ids) == 0 || len(l.ids) > maxNotice {
			l.all, l.ids = true, nil
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}
