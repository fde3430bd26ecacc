package durable

import (
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/store"
)

// Resumable yields the runs that Resume would continue: those that are
// interrupted, those that failed and may be resumed, and those whose executor is
// gone; in no particular order. A paused run is not among them: Unpause. After an
// error, which says that the store could not be read, it ends.
func (e *Engine) Resumable(ctx context.Context) iter.Seq2[store.Run, error] {
	return func(yield func(store.Run, error) bool) {
		for _, f := range []store.Filter{
			{Statuses: []store.Status{store.Interrupted, store.Failed}, WithLast: true},
			{Statuses: []store.Status{store.Running, store.Resuming}, Orphaned: true, WithLast: true},
		} {
			for row, err := range e.runsOf(ctx, f) {
				if err != nil {
					yield(store.Run{}, fmt.Errorf("durable: listing resumable runs: %w", storeError(err)))
					return
				}
				if row.Paused || row.Code == CodeImporting || row.Status == store.Failed && !row.Recoverable {
					continue
				}
				if !yield(*row, nil) {
					return
				}
			}
		}
	}
}

// LastInterrupted returns the run that was interrupted last: stopped gracefully,
// parked, or left by an executor that is gone, not failed. ErrNotFound when there
// is none.
func (e *Engine) LastInterrupted(ctx context.Context) (store.Run, error) {
	var last store.Run
	var at store.Time
	for row, err := range e.Resumable(ctx) {
		if err != nil {
			return store.Run{}, err
		}
		// A checkpoint leaves the row as it is.
		seen := row.UpdatedAt
		if row.Last != nil {
			seen = max(seen, row.Last.At)
		}
		if row.Status != store.Failed && (last.ID == "" || seen > at) {
			last, at = row, seen
		}
	}
	if last.ID == "" {
		return last, fmt.Errorf("durable: no run is interrupted, there is nothing to resume: %w", ErrNotFound)
	}
	return last, nil
}
