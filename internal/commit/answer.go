package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// The errors a caller gets when the reason is not the store's decision about its
// change.
var (
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("durable: the engine is closed")
	// ErrLost: another executor has the run.
	ErrLost = errors.New("durable: the run was taken by another executor")
	// ErrUnavailable: the store could not be reached.
	ErrUnavailable = errors.New("durable: the store is not available")
	// ErrNested: a step's body has called what it must not. The store was not asked.
	ErrNested = errors.New("durable: a step's body cannot make durable calls with its own context")
	// ErrNotResumable: the run takes no such act. The store was not asked.
	ErrNotResumable = errors.New("durable: run not resumable")
)

// Definite reports whether the store has refused the change itself.
func Definite(err error) bool {
	if err == nil {
		return false
	}
	for _, d := range []error{store.ErrExists, store.ErrStatus, store.ErrOccupied, store.ErrCancelAsked, store.ErrTooLarge, store.ErrInvalid, store.ErrCorrupt, store.ErrSchema} {
		if errors.Is(err, d) {
			return true
		}
	}
	return false
}

// Overtaken reports whether err says that another process acted on a run first.
func Overtaken(err error) bool {
	return errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrStatus) || errors.Is(err, store.ErrOwned) || errors.Is(err, store.ErrNotFound)
}

// Occupied explains an error that says that another run holds an exclusive key: meaning
// says what has not happened to this run, and what to do. It returns any other err as it
// is.
func Occupied(meaning string, err error) error {
	var o *store.OccupiedError
	if !errors.As(err, &o) {
		return err
	}
	return fmt.Errorf("durable: run %s %s: its exclusive key %q is held by run %s: %w", o.RunID, meaning, o.Key, o.Holder, err)
}

// StoreError returns an error of the store as users know it: it matches ErrUnavailable if
// it is not an answer of the store.
func StoreError(err error) error {
	if missing, ok := err.(*store.NotFoundError); ok {
		return &noRun{missing}
	}
	if err == nil || answered(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// noRun is the store's answer that a run does not exist, in a text that names the run already.
type noRun struct{ *store.NotFoundError }

func (e *noRun) Error() string { return "not found" }
func (e *noRun) Unwrap() error { return e.NotFoundError }

// answered reports whether err is an answer of the store, or says what is wrong with its
// content or with the call. Any other says that the store could not be reached.
func answered(err error) bool {
	if future := (*history.FutureEventError)(nil); errors.As(err, &future) {
		return true
	}
	for _, known := range []error{
		store.ErrNotFound, store.ErrClosed, store.ErrInvalid, store.ErrCorrupt, store.ErrSchema,
		store.ErrStatus, store.ErrOwned, store.ErrOccupied, store.ErrFenced, store.ErrTooLarge, store.ErrExists, store.ErrRevision, store.ErrCancelAsked,
		store.ErrUnsupported, ErrNested, ErrNotResumable, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// An answer says what the store's answer means for a change that was sent to it.
type answer int

const (
	taken   answer = iota // it is durable
	refused               // it was refused because of its content
	lost                  // it was refused because another executor owns the run
	closed                // the store is closed and no longer decides anything
	failed                // it was not carried out, and nothing was decided
	open                  // its outcome is unknown: the same change is sent again
)

// sent is what is known about a change that was sent to the store.
type sent struct {
	// unknown: the outcome is not known. From then on only a decision of the store
	// about the change settles it: if the store cannot be reached later, that says
	// nothing about the first attempt.
	unknown bool
}

// hear records the store's answer.
func (s *sent) hear(err error) answer {
	s.unknown = s.unknown || errors.Is(err, store.ErrUnknown)
	switch {
	case err == nil:
		return taken
	case errors.Is(err, store.ErrClosed):
		return closed
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrOwned), errors.Is(err, store.ErrNotFound):
		return lost
	case Definite(err):
		return refused
	case s.unknown:
		return open
	}
	return failed
}

// unanswered returns the error of a change that is not sent again, because of why;
// last is the store's last answer. If the outcome is unknown, the error says so;
// otherwise it is otherwise.
func (s *sent) unanswered(last, why, otherwise error) error {
	switch {
	case !s.unknown:
		return otherwise
	case errors.Is(last, store.ErrUnknown):
		return fmt.Errorf("%w: %w", last, why)
	}
	return fmt.Errorf("%w: %w: %w", store.ErrUnknown, last, why)
}
