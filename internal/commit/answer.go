package commit

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// What a caller hears when the reason is not the store's decision about its change.
var (
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("durable: the engine is closed")
	// ErrLost: another executor has the run.
	ErrLost = errors.New("durable: the run was taken by another executor")
	// ErrUnavailable: the store could not be reached.
	ErrUnavailable = errors.New("durable: the store is not available")
)

// Definite reports whether the store has decided against a change as such.
func Definite(err error) bool {
	for _, d := range []error{store.ErrExists, store.ErrStatus, store.ErrOccupied, store.ErrCancelAsked, store.ErrTooLarge, store.ErrInvalid, store.ErrCorrupt, store.ErrSchema} {
		if errors.Is(err, d) {
			return true
		}
	}
	return false
}

// An answer is what the store's answer says of a change that was given to it.
type answer int

const (
	taken   answer = iota // it is durable
	refused               // it was decided against, because of itself
	lost                  // it was decided against, because of who owns the run
	closed                // the store is closed, and decides nothing any more
	failed                // it was not carried out, and nothing was decided
	open                  // nobody knows what became of it: the same change is sent again
)

// sent is what is known of a change that was given to the store.
type sent struct {
	// unknown: what became of it is not known. From then on only a decision of the
	// store about it ends that: that the store cannot be reached later says nothing
	// about the first time.
	unknown bool
}

// hear takes in what the store has answered.
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

// unanswered is the error of a change that is not sent again, because of why; last
// is what the store has said of it. If what became of it is not known, the error
// says so; else it is otherwise.
func (s *sent) unanswered(last, why, otherwise error) error {
	switch {
	case !s.unknown:
		return otherwise
	case errors.Is(last, store.ErrUnknown):
		return fmt.Errorf("%w: %w", last, why)
	}
	return fmt.Errorf("%w: %w: %w", store.ErrUnknown, last, why)
}
