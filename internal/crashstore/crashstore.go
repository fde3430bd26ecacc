// Package crashstore wraps the store of one process, for tests that end the process
// as kill -9 does. It is here and not in test/ because durable/durabletest, which
// users import, is built on it.
package crashstore

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// A Store dies at a chosen write or when Die is called: from then on nothing of the
// process reaches the wrapped store, and every call fails.
type Store struct {
	store.Store

	mu     sync.Mutex
	writes int
	at     int  // the write it dies at, from 1; 0: none
	after  bool // the write is still carried out
	dead   bool
	died   chan struct{}
}

// New returns a Store that is alive.
func New(s store.Store) *Store { return &Store{Store: s, died: make(chan struct{})} }

// DieAt makes it die just before or just after the given write, from 1; 0: at none.
func (s *Store) DieAt(write int, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.after = write, after
}

// Die makes it die now.
func (s *Store) Die() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.die()
}

// die is Die with the mutex held.
func (s *Store) die() {
	if !s.dead {
		s.dead = true
		close(s.died)
	}
}

// IsDead reports whether it has died.
func (s *Store) IsDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// Died is closed when it dies.
func (s *Store) Died() <-chan struct{} { return s.died }

// Writes returns how many writes there were, including the one it died at.
func (s *Store) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// step counts a write and reports whether to carry it out and whether the process
// is alive afterwards.
func (s *Store) step() (do, alive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return false, false
	}
	s.writes++
	if s.writes != s.at {
		return true, true
	}
	s.die()
	return s.after, false
}

// Commit counts as a write.
func (s *Store) Commit(ctx context.Context, batch []store.Change) []error {
	do, alive := s.step()
	errs := make([]error, len(batch))
	if do {
		errs = s.Store.Commit(ctx, batch)
	}
	if !alive {
		for i := range errs {
			errs[i] = store.ErrClosed
		}
	}
	return errs
}

// Claim counts as a write only if it has claimed something, because the number of
// fruitless claims depends on timing. Dying before a claim is the same as dying after
// the write before it.
func (s *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if s.IsDead() {
		return nil, store.ErrClosed
	}
	rows, err := s.Store.Claim(ctx, c)
	if len(rows) > 0 {
		if _, alive := s.step(); !alive {
			return nil, store.ErrClosed
		}
	}
	return rows, err
}

// Delete counts as a write.
func (s *Store) Delete(ctx context.Context, d store.Deletion) (n int, err error) {
	do, alive := s.step()
	if do {
		n, err = s.Store.Delete(ctx, d)
	}
	if !alive {
		return 0, store.ErrClosed
	}
	return n, err
}

// Beat fails once it is dead.
func (s *Store) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if s.IsDead() {
		return store.Pulse{}, store.ErrClosed
	}
	return s.Store.Beat(ctx, x)
}

// Load fails once it is dead.
func (s *Store) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if s.IsDead() {
		return nil, store.ErrClosed
	}
	return s.Store.Load(ctx, id, c)
}

// LoadAll fails once it is dead.
func (s *Store) LoadAll(ctx context.Context, loads []store.RunCursor) []store.Loaded {
	if s.IsDead() {
		return store.LoadedNothing(len(loads), store.ErrClosed)
	}
	return store.LoadAll(ctx, s.Store, loads)
}

// A Notifier is a Store that passes on the notices of its backend, so that signals and
// answers arrive at once. With a plain Store an engine polls.
type Notifier struct{ *Store }

// Notify implements store.Notifier.
func (n Notifier) Notify(ctx context.Context, fn func(store.Notice)) error {
	backend, ok := n.Store.Store.(store.Notifier)
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	return backend.Notify(ctx, fn)
}

// A Requester is a Notifier that passes on the requests table of its backend.
type Requester struct{ Notifier }

// DrainRequests counts as a write only if it has answered something. Dying before it is
// the same as dying after the write before it.
func (r Requester) DrainRequests(ctx context.Context, d store.Drain) (store.Drained, error) {
	if r.IsDead() {
		return store.Drained{}, store.ErrClosed
	}
	got, err := r.Store.Store.(store.Requests).DrainRequests(ctx, d)
	if len(got.Answers) > 0 {
		if _, alive := r.step(); !alive {
			return store.Drained{}, store.ErrClosed
		}
	}
	return got, err
}

// DropRequests fails once it is dead.
func (r Requester) DropRequests(ctx context.Context, before store.Time, limit int) (int, error) {
	if r.IsDead() {
		return 0, store.ErrClosed
	}
	return r.Store.Store.(store.Requests).DropRequests(ctx, before, limit)
}

// Queues is a Notifier whose backend keeps queues. PutQueue counts as a write.
type Queues struct{ Notifier }

// NewQueues returns one that is alive.
func NewQueues(s store.Store) Queues { return Queues{Notifier{New(s)}} }

func (q Queues) backend() store.Queues { return q.Store.Store.(store.Queues) }

// PutQueue implements store.Queues.
func (q Queues) PutQueue(ctx context.Context, queue store.Queue) (err error) {
	do, alive := q.step()
	if do {
		err = q.backend().PutQueue(ctx, queue)
	}
	if !alive {
		return store.ErrClosed
	}
	return err
}

// Queue fails once it is dead.
func (q Queues) Queue(ctx context.Context, name string) (store.Queue, error) {
	if q.IsDead() {
		return store.Queue{}, store.ErrClosed
	}
	return q.backend().Queue(ctx, name)
}

// Queues fails once it is dead.
func (q Queues) Queues(ctx context.Context, names ...string) ([]store.QueueState, error) {
	if q.IsDead() {
		return nil, store.ErrClosed
	}
	return q.backend().Queues(ctx, names...)
}

// Ahead fails once it is dead.
func (q Queues) Ahead(ctx context.Context, runID string) (int64, bool, error) {
	if q.IsDead() {
		return 0, false, store.ErrClosed
	}
	return q.backend().Ahead(ctx, runID)
}
