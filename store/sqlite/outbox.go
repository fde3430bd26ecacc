//go:build cgo

package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// outbox has the notices of transactions that have not ended yet: what CommitIn has written
// is news only once the user has committed, which SQLite tells nobody. But while such a
// transaction is open, it holds the lock for writing, so whoever gets the lock
// knows that it has ended. If it was rolled back, somebody looks once for nothing.
type outbox struct {
	mu     sync.Mutex
	news   []notice.News // of one transaction each
	closed bool
	loop   sync.WaitGroup
}

// announce tells of these runs once the transaction that has just written has ended.
func (s *Store) announce(news notice.News) {
	if news.Empty() {
		return
	}
	o := &s.outbox
	o.mu.Lock()
	defer o.mu.Unlock()
	begin := len(o.news) == 0
	o.news = append(o.news, news)
	if begin && !o.closed {
		o.loop.Go(s.deliver)
	}
}

// deliver waits for the transactions in progress, and tells what they have written.
func (s *Store) deliver() {
	o := &s.outbox
	for pause := busyFirst; ; pause = min(2*pause, s.lookMost()) {
		o.mu.Lock()
		n := len(o.news) // what comes later may be of a transaction that begins later
		o.mu.Unlock()
		done, err := s.quiet()
		o.mu.Lock()
		var news notice.News
		if done {
			for _, one := range o.news[:n] {
				news.Merge(one)
			}
			o.news = o.news[n:]
		} else if err != nil {
			o.news = nil // the others find it at their next beat
		}
		left := len(o.news)
		o.mu.Unlock()
		s.tell(news)
		if left == 0 {
			return
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.closing:
			t.Stop()
			return
		}
	}
}

// lookMost is the longest pause between two looks.
func (s *Store) lookMost() time.Duration {
	if s.opts.Watch > 0 {
		return s.opts.Watch
	}
	return busyMost
}

// quiet reports whether no transaction is writing to the file. It holds the writer only
// for the look, because the transaction that it waits for may need it to go on.
func (s *Store) quiet() (done bool, err error) {
	ctx := context.Background() // the store ends the wait when it is closed
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer s.leave()
	c, err := s.take(ctx)
	if err != nil {
		return false, err
	}
	defer s.give(c)
	if err := c.control(s.q.begin); busy(err) {
		return false, nil
	} else if err != nil {
		s.undo(c, err)
		return false, err
	}
	return true, c.control(s.q.rollback)
}

// wait waits for the goroutine of the outbox, once the store is closing.
func (o *outbox) wait() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.loop.Wait()
}
