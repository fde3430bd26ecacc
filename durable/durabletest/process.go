package durabletest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
)

// A death ends a process at one of its writes, from 1, just before or just after
// it; 0: never.
type death struct {
	at    int
	after bool
}

// A process is one process's view of the data: when it has died, its executor is
// removed from the store, as the end of its lease would do.
type process struct {
	crashstore.Notifier
	executor atomic.Pointer[string]

	// then is called after the write of this number, from 1, before its answer;
	// nil: never.
	thenAt int
	then   func()
	// wrote is called after each write, one at a time.
	wrote func()

	mu sync.Mutex
}

func newProcess(s store.Store) *process {
	return &process{Notifier: crashstore.Notifier{Store: crashstore.New(s)}}
}

// Beat remembers the executor's id.
func (p *process) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if !p.IsDead() {
		p.executor.Store(&x.ID)
	}
	return p.Notifier.Beat(ctx, x)
}

// Commit also does what follows a write.
func (p *process) Commit(ctx context.Context, batch []store.Change) []error {
	errs := p.Notifier.Commit(ctx, batch)
	p.written()
	return errs
}

// Claim is a write too, if it takes something.
func (p *process) Claim(ctx context.Context, c store.Claim) ([]store.Run, error) {
	rows, err := p.Notifier.Claim(ctx, c)
	if len(rows) > 0 {
		p.written()
	}
	return rows, err
}

func (p *process) written() {
	p.mu.Lock()
	if p.wrote != nil {
		p.wrote()
	}
	then := p.then
	if then == nil || p.IsDead() || p.Writes() < p.thenAt {
		p.mu.Unlock()
		return
	}
	p.then = nil
	p.mu.Unlock()
	then() // it may write, and come here again
}

// bury removes the executor, so that others can take its runs at once.
func (p *process) bury(ctx context.Context) {
	if id := p.executor.Load(); id != nil {
		_, _ = p.Store.Store.Beat(ctx, store.Executor{ID: *id, Leaving: true})
	}
}

// A birth is a run as it was started, before any execution. Each trial begins
// with a copy, so that all have the same seed and the same time of creation.
type birth struct {
	change store.Change
	at     time.Time
}

// write creates the run in a store.
func (b *birth) write(ctx context.Context, s store.Store) error {
	c := b.change
	row := *c.Create
	c.Create, c.Events, c.Send, c.Hold = &row, slices.Clone(c.Events), slices.Clone(c.Send), slices.Clone(c.Hold)
	return s.Commit(ctx, []store.Change{c})[0]
}

// clock counts from the birth, as if no time had passed since.
func (b *birth) clock() func() time.Time {
	from := time.Now()
	return func() time.Time { return b.at.Add(time.Since(from)) }
}

// A catcher captures the change that creates a run.
type catcher struct {
	store.Store
	caught atomic.Pointer[store.Change]
}

func (k *catcher) Commit(ctx context.Context, batch []store.Change) []error {
	for i := range batch {
		if c := batch[i]; c.Create != nil {
			row := *c.Create
			c.Create, c.Events, c.Send, c.Hold = &row, slices.Clone(c.Events), slices.Clone(c.Send), slices.Clone(c.Hold)
			k.caught.Store(&c)
		}
	}
	return k.Store.Commit(ctx, batch)
}
