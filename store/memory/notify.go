package memory

import (
	"context"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// listener collects notices for one Notify call. Its fields are under data.mu.
type listener struct {
	wake chan struct{} // holds one token while there is something to report
	news notice.News
}

// Notify implements store.Notifier. fn runs on the caller's goroutine, outside
// the store's lock, so it may call the store.
func (s *Store) Notify(ctx context.Context, fn func(store.Notice)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	d := s.data
	l := &listener{wake: make(chan struct{}, 1), news: notice.Everything()} // earlier changes were missed
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
		news := l.news.Take()
		d.mu.Unlock()
		news.Tell(fn)
	}
}

// notify tells every listener.
func (d *data) notify(news notice.News) {
	if news.Empty() {
		return
	}
	for l := range d.listeners {
		l.news.Merge(news)
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}
