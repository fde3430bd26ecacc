//go:build cgo

package sqlite

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/nudge"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// listeners are the Notify calls of one handle.
type listeners struct {
	out   noticer
	polls sync.Once // for the log line that says so

	mu  sync.Mutex
	set map[*listener]struct{}
}

// listener collects notices for one Notify call. Its fields are under
// listeners.mu.
type listener struct {
	wake chan struct{} // holds one token while there is something to report
	news notice.News
}

func (l *listeners) init(file string, alone bool) {
	l.set = make(map[*listener]struct{})
	l.out.init(file, alone)
}

// tell tells all listeners, in this process and in others.
func (s *Store) tell(news notice.News) {
	if !news.Empty() {
		s.listeners.tell(news)
		s.listeners.out.append(news)
	}
}

// tellAll notifies all listeners that they should look at all runs.
func (s *Store) tellAll() { s.tell(notice.Everything()) }

func (l *listeners) tell(news notice.News) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.set {
		n.news.Merge(news)
		nudge.Send(n.wake)
	}
}

func (l *listeners) take(n *listener) notice.News {
	l.mu.Lock()
	defer l.mu.Unlock()
	return n.news.Take()
}

func (l *listeners) close() error {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.out.close()
}

// Notify implements store.Notifier. It reports what this handle commits at
// once, and what other handles and processes commit when the kernel tells that
// their notices have come, or within Options.Watch where the kernel does not
// tell. All handles of a process share one goroutine, which ends with the last
// Notify.
func (s *Store) Notify(ctx context.Context, fn func(store.Notice)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	l := &s.listeners
	n := &listener{wake: make(chan struct{}, 1)}
	l.mu.Lock()
	l.set[n] = struct{}{}
	l.mu.Unlock()
	o := newLookout(s)
	l.mu.Lock()
	n.news.Merge(notice.Everything()) // earlier changes were missed
	nudge.Send(n.wake)
	l.mu.Unlock()
	s.leave()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.set, n)
	}()
	defer o.close()
	return s.listen(ctx, n, o, fn)
}

func (s *Store) listen(ctx context.Context, n *listener, o *lookout, fn func(store.Notice)) error {
	timer := o.timer()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return store.ErrClosed
		case <-n.wake:
			news := s.listeners.take(n)
			news.Tell(fn)
			continue
		case <-o.noticed:
			o.hear()
		case <-o.written:
			o.hearWAL()
		case <-timer.C:
		}
		o.look(ctx, fn)
		o.reset(timer)
	}
}
