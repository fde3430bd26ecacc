package store

import (
	"errors"
	"fmt"
)

// The errors a caller may branch on with errors.Is. Where more is known, a
// struct type of this package carries the details and matches the sentinel.
var (
	ErrClosed      = errors.New("store: closed")
	ErrInvalid     = errors.New("invalid argument")
	ErrNotFound    = errors.New("store: run not found")
	ErrExists      = errors.New("store: run exists already")
	ErrFenced      = errors.New("store: fenced: another owner has taken the run")
	ErrStatus      = errors.New("store: the run's status does not allow this")
	ErrOwned       = errors.New("store: a live executor owns the run")
	ErrOccupied    = errors.New("store: an exclusive key is held by another run")
	ErrCancelAsked = errors.New("store: a cancel is unread")
	ErrRevision    = errors.New("store: it was changed meanwhile; read it again")
	ErrTooLarge    = errors.New("store: too large")
	ErrUnknown     = errors.New("store: outcome unknown; send the same change again")
	ErrCorrupt     = errors.New("store: stored data is damaged")
	ErrUnsupported = errors.New("store: this store cannot do that")
	ErrSchema      = errors.New("store: schema not usable")
	// ErrReadOnly: the store cannot be written to, or was opened to be looked at alone. It stands in
	// the middle of a sentence.
	ErrReadOnly = errors.New("takes no writes")
)

// NotFoundError names the run that does not exist.
type NotFoundError struct{ RunID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("store: there is no run %q", e.RunID) }
func (e *NotFoundError) Unwrap() error { return ErrNotFound }

// ExistsError names the existing run.
type ExistsError struct{ RunID string }

func (e *ExistsError) Error() string        { return fmt.Sprintf("store: run %q exists already", e.RunID) }
func (e *ExistsError) Is(target error) bool { return target == ErrExists }

// StatusError says which status the run had and which transition was refused.
type StatusError struct {
	RunID  string
	Status Status
	To     Status // empty: the status alone was the obstacle
}

func (e *StatusError) Error() string {
	if e.To != "" {
		return fmt.Sprintf("store: run %q is %s and cannot become %s", e.RunID, e.Status, e.To)
	}
	return fmt.Sprintf("store: run %q is %s, which does not allow this", e.RunID, e.Status)
}
func (e *StatusError) Is(target error) bool { return target == ErrStatus }

// OwnedError names the live owner.
type OwnedError struct{ RunID, Owner string }

func (e *OwnedError) Error() string {
	return fmt.Sprintf("store: run %q is owned by the live executor %s", e.RunID, e.Owner)
}
func (e *OwnedError) Is(target error) bool { return target == ErrOwned }

// OccupiedError names the key and the run that holds it.
type OccupiedError struct{ RunID, Key, Holder string }

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("store: run %q: %s is occupied by %s", e.RunID, e.Key, e.Holder)
}
func (e *OccupiedError) Is(target error) bool { return target == ErrOccupied }

// TooLargeError says what exceeded which limit, in bytes.
type TooLargeError struct {
	RunID, Key  string // Key is empty when the change as a whole is too large
	Size, Limit int
}

func (e *TooLargeError) Error() string {
	what := "the change"
	if e.Key != "" {
		what = e.Key
	}
	return fmt.Sprintf("store: run %q: %s is %d bytes; the limit is %d", e.RunID, what, e.Size, e.Limit)
}
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// SchemaError says which schema version a store has and which this program
// knows. It is returned when a store is opened: the schema is newer than the
// program, or older and the program asked not to have it changed.
type SchemaError struct {
	Have, Know int
	// Todo says what to do about it, in the words of the backend; empty where
	// the only remedy is a newer program.
	Todo string
}

func (e *SchemaError) Error() string {
	todo := e.Todo
	if e.Have > e.Know {
		if todo == "" {
			todo = "use a newer program, or restore the backup that was made before the upgrade"
		}
		return fmt.Sprintf("store: schema version %d is newer than version %d, the newest this program knows: %s", e.Have, e.Know, todo)
	}
	if todo == "" {
		todo = "migrate it"
	}
	return fmt.Sprintf("store: schema version %d is older than version %d, which this program needs: %s", e.Have, e.Know, todo)
}
func (e *SchemaError) Is(target error) bool { return target == ErrSchema }
