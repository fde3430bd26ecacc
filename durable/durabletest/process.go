package durabletest

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/mortal"
	"github.com/holdfast-dev/holdfast/store"
)

// A death ends a process at one of its writes, from 1, just before or just after
// it; 0 never does.
type death struct {
	at    int
	after bool
}

// A process is what one process has of the data: when it has died, its executor
// is taken out of the store, as the end of its lease would do.
type process struct {
	mortal.Telling
	executor atomic.Pointer[string]
}

func newProcess(s store.Store) *process {
	return &process{Telling: mortal.Telling{Store: mortal.New(s)}}
}

// Beat keeps the executor's id in mind.
func (p *process) Beat(ctx context.Context, x store.Executor) (store.Pulse, error) {
	if !p.IsDead() {
		p.executor.Store(&x.ID)
	}
	return p.Telling.Beat(ctx, x)
}

// bury removes the executor, so that others take its runs at once.
func (p *process) bury(ctx context.Context) {
	if id := p.executor.Load(); id != nil {
		_, _ = p.Store.Store.Beat(ctx, store.Executor{ID: *id, Leaving: true})
	}
}
