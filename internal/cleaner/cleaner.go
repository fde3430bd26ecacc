// Package cleaner deletes runs that have ended. cleaner.go does so once or periodically,
// delete.go is one pass over the store, rules.go holds what it goes by.
package cleaner

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/internal/count"
	"github.com/holdfast-dev/holdfast/store"
)

// A Cleaner deletes ended runs of a store.
type Cleaner struct {
	Store store.Store
	Log   *slog.Logger
	// Now returns the store's time.
	Now func() store.Time
	// RunsOf yields the matching rows, page by page; it ends after an error.
	RunsOf func(context.Context, store.Filter) iter.Seq2[*store.Run, error]
	// StoreError returns the error that callers get for a store error.
	StoreError func(error) error
	// Retention applies where Options have none.
	Retention *Retention
	// Archives: the program has an archive, which must get every run before it is deleted.
	Archives bool
}

// Options say what one call of Clean deletes. operate.CleanOptions has the contract.
type Options struct {
	DryRun    bool
	Retention *Retention // nil: the Cleaner's
	All       bool
	Idle      bool
	Force     bool
	Statuses  []store.Status
	Workflows []string
	Progress  func(runIDs []string)
}

// Result is what Clean did, or with DryRun would do. operate.Cleaned has the contract.
type Result struct {
	Runs       int
	Kept       int
	Unarchived int
	IDs        []string
	Epochs     []int64
}

// Clean deletes runs that have ended, each as a whole. operate.Operator.Clean has the contract.
func (cl *Cleaner) Clean(ctx context.Context, o Options) (Result, error) {
	c := &cleaning{Cleaner: cl, options: o, keep: cl.Retention, now: cl.Now(), counted: map[string]int{}, gone: map[string]bool{}}
	if o.Retention != nil {
		c.keep = o.Retention
		if err := c.keep.Check(); err != nil {
			return Result{}, err
		}
	}
	if o.Idle && !o.All {
		return Result{}, fmt.Errorf("durable: CleanOptions.Idle is for All: a run that has not ended has no age: %w", store.ErrInvalid)
	}
	for _, s := range o.Statuses {
		if !s.Terminal() && !o.Idle {
			return Result{}, fmt.Errorf("durable: Clean deletes runs that have ended, and %s ones have not: %w", s, store.ErrInvalid)
		}
	}
	if !o.All && !c.keep.Active() {
		return Result{}, nil
	}
	if err := c.run(ctx); err != nil {
		return c.did, fmt.Errorf("durable: cleaning up, after %s: %w", count.Of(c.did.Runs, "run"), cl.StoreError(err))
	}
	if c.did.Runs > 0 && !o.DryRun {
		cl.Log.Info("durable: ended runs deleted", "runs", c.did.Runs, "kept", c.did.Kept)
		if m := store.CapabilitiesOf(cl.Store).Maintainer; m != nil {
			if err := m.Maintain(ctx); err != nil {
				cl.Log.Warn("durable: the store could not be maintained after runs were deleted", "error", err)
			}
		}
	}
	return c.did, nil
}

// Loop deletes runs as the Retention says, at intervals of every, until ctx ends. The first
// pass runs at once, because a program that lives for less than an interval would otherwise
// never delete anything.
func (cl *Cleaner) Loop(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		if _, err := cl.Clean(ctx, Options{}); err != nil && ctx.Err() == nil {
			cl.Log.Warn("durable: retention could not delete ended runs; it tries again", "retry_in_ms", float64(every.Microseconds())/1000, "error", err)
		}
	}
}
