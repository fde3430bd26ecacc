// Package declared stores the queues and schedules that a program declares.
package declared

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/queues"
	"github.com/holdfast-dev/holdfast/internal/schedules"
	"github.com/holdfast-dev/holdfast/store"
)

// Declared are the queues and schedules of a program, checked and encoded. An engine that only looks,
// or only starts runs, has them and never stores them: it would change what holds for the processes
// that execute (ADR 87).
type Declared struct {
	Queues    []store.Queue // none if the store keeps none
	Schedules []Schedule    // likewise
	then      func()        // what follows once they are stored

	storing chan struct{} // holds a value while they are being stored, which guards stored
	stored  bool
}

// New returns a declaration of nothing; then is called once it is stored.
func New(then func()) *Declared { return &Declared{then: then, storing: make(chan struct{}, 1)} }

// A Schedule is one of them, as it is stored.
type Schedule struct {
	Name       string
	Definition *schedules.Definition
	Paused     bool // it is when it is stored for the first time
}

// Store stores them, once: two programs that declare different things do not take turns. After an
// error, which is one that package durable returns, the next call tries it again. A call waits for
// another one no longer than until ctx ends.
func (d *Declared) Store(ctx context.Context, st store.Store, by string, log *slog.Logger) error {
	select {
	case d.storing <- struct{}{}:
		defer func() { <-d.storing }()
	case <-ctx.Done():
		return fmt.Errorf("durable: Recover has not stored the queues and schedules: %w", context.Cause(ctx))
	}
	if d.stored {
		return nil
	}
	keeps := store.CapabilitiesOf(st)
	if len(d.Queues) > 0 {
		if err := queues.Declare(ctx, keeps.Queues, d.Queues, log, by); err != nil {
			return commit.StoreError(err)
		}
	}
	for _, s := range d.Schedules {
		if err := schedules.Declare(ctx, keeps.Schedules, by, log, s.Name, s.Definition, s.Paused); err != nil {
			return fmt.Errorf("durable: storing schedule %s: %w", s.Name, commit.StoreError(err))
		}
	}
	d.stored = true
	d.then()
	return nil
}
