package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// definite reports whether the store has decided against a change as such.
func definite(err error) bool {
	for _, d := range []error{store.ErrExists, store.ErrStatus, store.ErrOccupied, store.ErrCancelAsked, store.ErrTooLarge, store.ErrInvalid, store.ErrCorrupt, store.ErrSchema} {
		if errors.Is(err, d) {
			return true
		}
	}
	return false
}

// decided reports whether err is the store's decision against a change: because of
// the change itself, or because of who owns the run.
func decided(err error) bool {
	return definite(err) || errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrNotFound)
}

// unknownBecause is the error of a change that was sent and whose outcome nobody
// asks for any more, because of why; last is what the store has said of it.
func unknownBecause(last, why error) error {
	if errors.Is(last, store.ErrUnknown) {
		return fmt.Errorf("%w: %w", last, why)
	}
	return fmt.Errorf("%w: %w: %w", store.ErrUnknown, last, why)
}

// leftOpen says of changes that their outcome stays unknown, because of why.
func leftOpen(errs []error, open []int, why error) []error {
	for _, i := range open {
		errs[i] = unknownBecause(errs[i], why)
	}
	return errs
}

// commitOne is commitKnown for one change.
func (e *Engine) commitOne(ctx context.Context, change store.Change) error {
	return e.commitKnown(ctx, ctx, []store.Change{change})[0]
}

// commitKnown commits changes that belong to no execution, and gives the store the
// context send. A change whose outcome is unknown is sent again, as it is, until the
// store decides about it: that the store cannot be reached meanwhile says nothing
// about the first time. Only the end of ctx, or of the engine, leaves it open; the
// error then matches store.ErrUnknown. A change whose first answer says that it was
// not carried out is not sent again.
//
// What an execution writes goes by way of the committer, which holds to the same
// rule; see flight.unknown.
func (e *Engine) commitKnown(ctx, send context.Context, batch []store.Change) []error {
	errs := e.store.Commit(send, batch)
	var open []int // changes that are unknown
	for i, err := range errs {
		if errors.Is(err, store.ErrUnknown) {
			open = append(open, i)
		}
	}
	for pause := 5 * time.Millisecond; len(open) > 0; pause = min(2*pause, time.Second) {
		select {
		case <-ctx.Done():
			return leftOpen(errs, open, context.Cause(ctx))
		case <-e.committer.stop.Done():
			return leftOpen(errs, open, ErrClosed)
		case <-time.After(pause):
		}
		again := make([]store.Change, len(open))
		for j, i := range open {
			again[j] = batch[i]
		}
		var still []int
		for j, err := range e.store.Commit(send, again) {
			errs[open[j]] = err
			switch {
			case errors.Is(err, store.ErrClosed):
				leftOpen(errs, open[j:j+1], err)
			case err != nil && !decided(err):
				still = append(still, open[j])
			}
		}
		open = still
	}
	return errs
}
