package durabletest

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

// A death ends a process at one of its writes, from 1, just before or just after
// it; 0 never does.
type death struct {
	at    int
	after bool
}

// A mortal store is what one process has of the data. When it dies every further
// call fails, as if there were nobody any more to make it, and its executor is
// taken out of the store, as the end of its lease would do.
type mortal struct {
	store.Store
	die death

	mu       sync.Mutex
	writes   int
	dead     bool
	died     chan struct{}
	executor string
}

func newMortal(s store.Store, d death) *mortal {
	return &mortal{Store: s, die: d, died: make(chan struct{})}
}

// step counts a write and reports whether it is done and whether the process
// lives on.
func (m *mortal) step() (do, alive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false
	}
	m.writes++
	if m.writes != m.die.at {
		return true, true
	}
	m.dead = true
	close(m.died)
	return m.die.after, false
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// bury removes the executor, so that others take its runs at once.
func (m *mortal) bury(ctx context.Context) {
	m.mu.Lock()
	id := m.executor
	m.mu.Unlock()
	if id != "" {
		_, _ = m.Store.Beat(ctx, store.Executor{ID: id, Leaving: true})
	}
}

func (m *mortal) Commit(ctx context.Context, batch []store.Change) []error {
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

// Claim counts as a write if it has taken something: how often an engine looks
// in vain depends on the moment. To die before it is to die after the write
// before it.
func (m *mortal) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	if m.isDead() {
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

// Notify passes on what the store tells, so that signals and answers arrive at
// once.
func (m *mortal) Notify(ctx context.Context, fn func(store.Notice)) error {
	n, ok := m.Store.(store.Notifier)
	if !ok {
		<-ctx.Done()
		return ctx.Err()
	}
	return n.Notify(ctx, fn)
}

func (m *mortal) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	m.mu.Lock()
	dead := m.dead
	if !dead {
		m.executor = x.ID
	}
	m.mu.Unlock()
	if dead {
		return store.Pulse{}, store.ErrClosed
	}
	return m.Store.Beat(ctx, x)
}

func (m *mortal) Load(ctx context.Context, id string, c store.Cursor) (*store.History, error) {
	if m.isDead() {
		return nil, store.ErrClosed
	}
	return m.Store.Load(ctx, id, c)
}
