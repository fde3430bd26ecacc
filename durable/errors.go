package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/claims"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/store"
)

// The errors on which a caller may branch with errors.Is. If there is more to know,
// a struct type carries it and matches the sentinel.
var (
	// ErrOutsideRun: a durable call was made with a context that belongs to no run.
	ErrOutsideRun = errors.New("durable: this call needs the context a workflow function was given")
	// ErrNested: a durable call was made with the context of a step's body.
	ErrNested = commit.ErrNested
	// ErrConcurrent: two durable calls were in progress in one scope.
	ErrConcurrent = misuse.ErrConcurrent
	// ErrNoEngine: the context carries no engine and there is no default one.
	ErrNoEngine = errors.New("durable: no engine: use durable.SetDefault(eng) or ctx = durable.NewContext(ctx, eng)")
	// ErrClosed: the engine was closed.
	ErrClosed = commit.ErrClosed
	// ErrInvalid: an argument cannot be used. It is store.ErrInvalid.
	ErrInvalid = store.ErrInvalid
	// ErrNotFound: there is no run with this id. It is store.ErrNotFound.
	ErrNotFound = store.ErrNotFound
	// ErrConflict: the run id is in use by another workflow or another input.
	ErrConflict = errors.New("durable: the run exists already with another workflow or input")
	// ErrNotRegistered: this engine has no code for the workflow or version.
	ErrNotRegistered = claims.ErrNotRegistered
	// ErrInterrupted: the run stopped without an outcome and can be resumed.
	ErrInterrupted = errors.New("durable: run interrupted")
	// ErrRunFailed: the run ended in an error.
	ErrRunFailed = errors.New("durable: run failed")
	// ErrRunCancelled: the run that was waited for, which may be a child, was cancelled: an
	// outcome (*RunError). In a run that is cancelled itself, calls return ErrCancelled, and
	// neither error matches the other, so that a parent can tell its own end from a child's.
	ErrRunCancelled = errors.New("durable: run cancelled")
	// ErrDefinitionChanged: the code makes other durable calls than the history recorded.
	ErrDefinitionChanged = errors.New("durable: definition changed")
	// ErrNotResumable: the run is in a status from which it cannot be resumed.
	ErrNotResumable = commit.ErrNotResumable
	// ErrNotRunning: the run has ended and no longer receives anything.
	ErrNotRunning = errors.New("durable: run has ended")
	// ErrTimeout: a wait has timed out. It is recorded.
	ErrTimeout = errors.New("durable: wait timed out")
	// ErrCancelled: the run that made this call was cancelled; no further body begins. Run.Wait
	// tells others of that with ErrRunCancelled.
	ErrCancelled = errors.New("durable: run was cancelled")
	// ErrDeadline: the run's deadline has passed; no further body begins.
	ErrDeadline = errors.New("durable: run deadline has passed")
	// ErrOccupied: an exclusive key is held by another run. It is
	// store.ErrOccupied; *store.OccupiedError names the key and the run.
	ErrOccupied = store.ErrOccupied
	// ErrUnknownOutcome: the body of Once had begun and it is not known what it
	// did.
	ErrUnknownOutcome = errors.New("durable: outcome unknown")
	// ErrUnrecoverable: the run is inconsistent and cannot be repaired without a
	// person.
	ErrUnrecoverable = errors.New("durable: run unrecoverable")
	// ErrUnavailable: the store could not be reached.
	ErrUnavailable = commit.ErrUnavailable
)

// The causes (context.Cause) with which a step's context ends before its body
// has returned. Only ErrAttemptTimeout is recorded as a failed attempt.
var (
	// ErrShutdown: the engine is being closed.
	ErrShutdown = errors.New("durable: the engine is shutting down")
	// ErrLost: another executor has taken the run; nothing that this one still does
	// is recorded.
	ErrLost = commit.ErrLost
	// ErrUnloaded: the run waits, and its goroutines were ended; it is loaded
	// again when something happens (Options.UnloadAfter).
	ErrUnloaded = errors.New("durable: the run is unloaded while it waits")
	// ErrAttemptTimeout: Policy.Timeout has passed. The attempt's error is
	// recorded, as a failed attempt.
	ErrAttemptTimeout = fmt.Errorf("durable: attempt timed out: %w", context.DeadlineExceeded)
)

// storeError returns an error of the store as users know it: if it is not one of
// the store's declared errors, the store could not be reached.
func storeError(err error) error { return commit.StoreError(err) }

// PanicError is a contained panic of user code: the step or run failed, and the
// process goes on. Value is the argument of panic, as printed by %v; Stack is the
// stack of the goroutine that panicked.
type PanicError = guard.PanicError

// ErrGoexit: user code ended its goroutine with runtime.Goexit (t.FailNow does)
// instead of returning.
var ErrGoexit = guard.ErrGoexit
