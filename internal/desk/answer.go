package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// Overtaken reports whether err says that somebody else acted on a run first.
func Overtaken(err error) bool {
	return errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrStatus) || errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrNotFound)
}

// Occupied returns err with the words for a person, where it says that an exclusive key
// is held by another run. meaning is what has not happened to this one, and what to do.
func Occupied(meaning string, err error) error {
	var o *store.OccupiedError
	if !errors.As(err, &o) {
		return err
	}
	return fmt.Errorf("durable: run %s %s: its exclusive key %q is held by run %s: %w", o.RunID, meaning, o.Key, o.Holder, err)
}

// Answered reports whether err is an answer of the store, or says what is wrong with what
// it has. Any other says that the store could not be asked.
func Answered(err error) bool {
	if future := (*history.FutureEventError)(nil); errors.As(err, &future) {
		return true
	}
	for _, known := range []error{
		store.ErrNotFound, store.ErrClosed, store.ErrInvalid, store.ErrCorrupt, store.ErrSchema,
		store.ErrStatus, store.ErrOwned, store.ErrOccupied, store.ErrFenced, store.ErrTooLarge, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
