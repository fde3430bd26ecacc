package durable

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/heart"
	"github.com/holdfast-dev/holdfast/store"
)

// newHeart makes the heart of an engine: internal/heart sends its heartbeats and
// keeps its lease.
func newHeart(e *Engine) *heart.Heart {
	can := store.CapabilitiesOf(e.store).Transactor
	return heart.New(heart.Options{
		Store: e.store, Log: e.log.Logger,
		Executor:  store.Executor{ID: e.id, Name: e.options.Name, Lease: e.options.Lease, Serves: e.program.defs.served},
		Late:      func(ctx context.Context) { e.metrics.LeaseLost(ctx) },
		Gap:       e.roster.loseTaken,
		OneWriter: can != nil && can.OneWriter(),
		Tend: func(p *store.Pulse) {
			for _, m := range p.Mail {
				e.mailroom.counted(m.RunID, m.Inbox)
			}
			e.recovery.Tend(p)
		},
	})
}
