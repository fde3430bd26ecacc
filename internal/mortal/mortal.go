// Package mortal has the way of one process to its data, for tests that end the
// process as kill -9 does.
package mortal

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// A Store ends its process, as far as the store can see, at a chosen write or when
// it is told to. From then on every call fails, as if there were nobody any more to
// make it.
type Store struct {
	store.Store

	mu     sync.Mutex
	writes int
	at     int  // the write it dies at, from 1; 0: none
	after  bool // the write is still done
	dead   bool
	died   chan struct{}
}

// New returns a Store that lives.
func New(s store.Store) *Store { return &Store{Store: s, died: make(chan struct{})} }

// DieAt has it die just before or just after a write, from 1; 0: at none.
func (m *Store) DieAt(write int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.after = write, after
}

// Die has it die now.
func (m *Store) Die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.die()
}

// die is Die with the mutex held.
func (m *Store) die() {
	if !m.dead {
		m.dead = true
		close(m.died)
	}
}

// IsDead reports whether it has died.
func (m *Store) IsDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// Died is closed when it dies.
func (m *Store) Died() <-chan struct{} { return m.died }

// Writes returns how many there were, the one it died at included.
func (m *Store) Writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// step counts a write and reports whether it is done and whether the process
// lives on.
func (m *Store) step() (do, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false
	}
	m.writes++
	if m.writes != m.at {
		return true, true
	}
	m.die()
	return m.after, false
}

// Commit counts as a write.
func (m *Store) Commit(ctx context.Context, batch []store.Change) []error {
	do, alive := m.step()
	errs := make([]error, len(batch))
	if do {
		errs = m.Store.Commit(ctx, batch)
	}
	if !alive {
		for i := range errs {
			errs[i] = store.ErrClosed
		}
	}
	return errs
}

// Claim counts as a write if it has taken something: how often an engine looks in
// vain depends on the moment. To die before it is to die after the write before
// it.
func (m *Store) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if m.IsDead() {
		return nil, store.ErrClosed
	}
	rows, err := m.Store.Claim(ctx, c)
	if len(rows) > 0 {
		if _, alive := m.step(); !alive {
			return nil, store.ErrClosed
		}
	}
	return rows, err
}

// Delete counts as a write.
func (m *Store) Delete(ctx context.Context, d store.Deletion) (n int, err error) {
	do, alive := m.step()
	if do {
		n, err = m.Store.Delete(ctx, d)
	}
	if !alive {
		return 0, store.ErrClosed
	}
	return n, err
}

// Beat fails once it is dead.
func (m *Store) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if m.IsDead() {
		return store.Pulse{}, store.ErrClosed
	}
	return m.Store.Beat(ctx, x)
}

// Load fails once it is dead.
func (m *Store) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if m.IsDead() {
		return nil, store.ErrClosed
	}
	return m.Store.Load(ctx, id, c)
}

// Telling is a Store that passes on what a backend tells, so that signals and
// answers arrive at once. With a Store alone an engine looks from time to time.
type Telling struct{ *Store }

// Notify implements store.Notifier.
func (t Telling) Notify(ctx context.Context, fn func(store.Notice)) error {
	n, ok := t.Store.Store.(store.Notifier)
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	return n.Notify(ctx, fn)
}
