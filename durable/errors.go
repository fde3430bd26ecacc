package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/claims"
	"github.com/holdfast-dev/holdfast/internal/commit"
	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/stuck"
	"github.com/holdfast-dev/holdfast/store"
)

// The errors a caller may branch on with errors.Is. Where there is more to
// know, a struct type carries it and matches the sentinel.
var (
	// ErrOutsideRun: a durable call was made with a context that belongs to no run.
	ErrOutsideRun = errors.New("durable: this call needs the context a workflow function was given")
	// ErrNested: a durable call was made with the context of a step's body.
	ErrNested = errors.New("durable: a step's body cannot make durable calls with its own context")
	// ErrConcurrent: two durable calls were under way in one scope.
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
	// ErrRunCancelled: the run was cancelled.
	ErrRunCancelled = errors.New("durable: run cancelled")
	// ErrDefinitionChanged: the code makes other durable calls than the history recorded.
	ErrDefinitionChanged = errors.New("durable: definition changed")
	// ErrNotResumable: the run is in a status from which it cannot be resumed.
	ErrNotResumable = errors.New("durable: run not resumable")
	// ErrNotRunning: the run has ended and receives nothing any more.
	ErrNotRunning = errors.New("durable: run has ended")
	// ErrTimeout: a wait has run out. It is recorded.
	ErrTimeout = errors.New("durable: wait timed out")
	// ErrCancelled: the run was cancelled; no further body begins.
	ErrCancelled = errors.New("durable: run was cancelled")
	// ErrDeadline: the run's deadline has passed; no further body begins.
	ErrDeadline = errors.New("durable: run deadline has passed")
	// ErrOccupied: an exclusive key is held by another run. It is
	// store.ErrOccupied; *store.OccupiedError names the key and the run.
	ErrOccupied = store.ErrOccupied
	// ErrUnknownOutcome: the body of Once had begun and nobody knows what it did.
	ErrUnknownOutcome = errors.New("durable: outcome unknown")
	// ErrUnrecoverable: the run is inconsistent and cannot be repaired without a
	// person.
	ErrUnrecoverable = errors.New("durable: run unrecoverable")
	// ErrUnavailable: the store could not be reached.
	ErrUnavailable = commit.ErrUnavailable
)

// The causes (context.Cause) with which a step's context ends before its body
// has returned. None of them is recorded as a failed attempt.
var (
	// ErrShutdown: the engine is being closed.
	ErrShutdown = errors.New("durable: the engine is shutting down")
	// ErrLost: another executor has taken the run; whatever this one still
	// does is not recorded.
	ErrLost = commit.ErrLost
	// ErrUnloaded: the run waits, and its goroutines were ended; it is loaded
	// again when something happens (Options.UnloadAfter).
	ErrUnloaded = errors.New("durable: the run is unloaded while it waits")
	// ErrAttemptTimeout: Policy.Timeout has passed. The attempt's error is
	// recorded, as a failed attempt.
	ErrAttemptTimeout = fmt.Errorf("durable: attempt timed out: %w", context.DeadlineExceeded)
)

// storeError says of an error of the store that is none of its declared ones
// what it means: the store could not be reached.
func storeError(err error) error { return commit.StoreError(err) }

// StepError is the recorded failure of a step: what Step and Retry return, the
// same live and on replay.
type StepError struct {
	RunID     string
	Key       string // of the step
	Attempt   int    // the last attempt
	Max       int    // attempts allowed; 0: no limit
	Permanent bool   // the error was marked Permanent or is one that cannot be mended
	Err       error  // as recorded: message, registered sentinels and types
}

func (e *StepError) Error() string {
	if e.Max == 1 {
		return fmt.Sprintf("step %s: %v", e.Key, e.Err)
	}
	if e.Max == 0 {
		return fmt.Sprintf("step %s: attempt %d: %v", e.Key, e.Attempt, e.Err)
	}
	return fmt.Sprintf("step %s: attempt %d of %d: %v", e.Key, e.Attempt, e.Max, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// RunError says how a run ended that has no result.
type RunError struct {
	RunID       string
	Workflow    string
	Status      store.Status // Failed or Cancelled
	Reason      string
	Recoverable bool
	Err         error // as recorded; nil when the engine failed the run
}

func (e *RunError) Error() string {
	return fmt.Sprintf("run %s (%s) %s: %s", e.RunID, e.Workflow, e.Status, e.Reason)
}

func (e *RunError) Unwrap() error { return e.Err }

// Is matches ErrRunFailed and ErrRunCancelled by the status.
func (e *RunError) Is(target error) bool {
	return target == ErrRunFailed && e.Status == store.Failed ||
		target == ErrRunCancelled && e.Status == store.Cancelled
}

// InterruptedError says that a run stopped without an outcome, why, and how to
// go on.
type InterruptedError struct {
	RunID    string
	Workflow string
	Code     string // empty: a graceful stop; see the Code constants
	Reason   string
	Err      error // what stopped it, as recorded; nil: nothing but the stop itself
}

func (e *InterruptedError) Error() string {
	why := ""
	if e.Reason != "" {
		why = ": " + strings.TrimRight(e.Reason, ".")
	}
	return fmt.Sprintf("run %s (%s) was interrupted%s. Resume it with operate.On(engine).Resume(ctx, %q), or let durable.Recover(ctx) of a process that serves it continue it",
		e.RunID, e.Workflow, why, e.RunID)
}

func (e *InterruptedError) Is(target error) bool { return target == ErrInterrupted }
func (e *InterruptedError) Unwrap() error        { return e.Err }

// ConflictError says what a run id is already used for.
type ConflictError struct {
	RunID    string
	Have     string // workflow of the run that exists
	Want     string // workflow that was to be started
	SameFlow bool   // the workflow is the same and the input differs
	// OtherParent: workflow and input are the same, and it is not a child of the
	// run that was to start it, but of Parent; empty: of none.
	OtherParent bool
	Parent      string
}

func (e *ConflictError) Error() string {
	switch {
	case e.OtherParent && e.Parent == "":
		return fmt.Sprintf("durable: run %q of workflow %s exists already and is no child: use another id, or wait for it with Handle(%q) in a step", e.RunID, e.Have, e.RunID)
	case e.OtherParent:
		return fmt.Sprintf("durable: run %q of workflow %s exists already as a child of another call or run, %s: use another id", e.RunID, e.Have, e.Parent)
	case e.Have == "":
		return fmt.Sprintf("durable: run %q exists already and is another one than the run of workflow %s that was to be started: use another id", e.RunID, e.Want)
	case e.SameFlow:
		return fmt.Sprintf("durable: run %q of workflow %s exists already with another input: use another id, or read it with Handle(%q)", e.RunID, e.Have, e.RunID)
	}
	return fmt.Sprintf("durable: run %q exists already as a run of workflow %s, not %s: use another id", e.RunID, e.Have, e.Want)
}

func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// EncodeError says that a value cannot be kept: it has no faithful encoding,
// or it is too large.
type EncodeError struct {
	RunID string
	Key   string // of the step that made it; empty: the run's input or output
	Type  string
	Err   error
}

func (e *EncodeError) Error() string {
	where := "step " + e.Key
	if e.Key == "" {
		where = "the workflow's own value"
	}
	what := "a value of type " + e.Type
	if e.Type == "json.RawMessage" {
		what = "the value" // given as it is, to stand for one of another type
	}
	return fmt.Sprintf("run %s: %s: %s cannot be kept: %v", e.RunID, where, what, e.Err)
}

func (e *EncodeError) Unwrap() error { return e.Err }

type encodeErrorJSON struct{ RunID, Key, Type, Err string }

// MarshalJSON makes the error one that is found again on replay.
func (e *EncodeError) MarshalJSON() ([]byte, error) {
	return json.Marshal(encodeErrorJSON{e.RunID, e.Key, e.Type, fmt.Sprint(e.Err)})
}

// UnmarshalJSON is the other direction; of Err the message is kept.
func (e *EncodeError) UnmarshalJSON(b []byte) error {
	var j encodeErrorJSON
	err := json.Unmarshal(b, &j)
	*e = EncodeError{RunID: j.RunID, Key: j.Key, Type: j.Type, Err: errors.New(j.Err)}
	return err
}

// UndecodableError says that a recorded value cannot be read as the type the
// code asks for. The run stops, resumable, and nothing is changed.
type UndecodableError struct {
	RunID    string
	Key      string
	Recorded string // type name in the checkpoint, with its version above 1
	Wanted   string // type the code asks for; empty: not known
	Err      error
}

func (e *UndecodableError) Error() string {
	as := ""
	if e.Wanted != "" {
		as = " as " + e.Wanted
	}
	return fmt.Sprintf("run %s: the checkpoint of %s holds a %s and cannot be read%s: %v",
		e.RunID, e.Key, payload.OrUnknown(e.Recorded), as, e.Err)
}

func (e *UndecodableError) Unwrap() error { return e.Err }

type undecodableErrorJSON struct{ RunID, Key, Recorded, Wanted, Err string }

// MarshalJSON makes the error one that is found again where it was recorded.
func (e *UndecodableError) MarshalJSON() ([]byte, error) {
	return json.Marshal(undecodableErrorJSON{e.RunID, e.Key, e.Recorded, e.Wanted, fmt.Sprint(e.Err)})
}

// UnmarshalJSON is the other direction; of Err the message is kept.
func (e *UndecodableError) UnmarshalJSON(b []byte) error {
	var j undecodableErrorJSON
	err := json.Unmarshal(b, &j)
	*e = UndecodableError{RunID: j.RunID, Key: j.Key, Recorded: j.Recorded, Wanted: j.Wanted, Err: errors.New(j.Err)}
	return err
}

// ErrNoHistory is why a run is damaged of which a row is all that is left. There is
// nothing that it could be resumed or repaired from: a copy of it may be imported, once
// what is left is deleted.
var ErrNoHistory = history.ErrNoHistory

// DamagedError says that a run's history cannot be believed.
type DamagedError struct {
	RunID string
	Seq   int64 // of the event; 0: unknown
	Err   error
}

func (e *DamagedError) Error() string {
	if errors.Is(e.Err, ErrNoHistory) {
		return fmt.Sprintf("run %s is damaged: %v", e.RunID, e.Err)
	}
	if e.Seq == 0 {
		return fmt.Sprintf("run %s is damaged: %v. It stays as it is until it is repaired", e.RunID, e.Err)
	}
	return fmt.Sprintf("run %s: event %d is damaged: %v. Nothing after it is believed; the run stays as it is until it is repaired", e.RunID, e.Seq, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// UnrecordedError says that the outcome of a durable call could not be recorded,
// although the store was there. What comes after the call cannot be recorded
// either, so the run is parked: a resume makes the call again.
type UnrecordedError struct {
	RunID string
	Key   string // of the call
	Err   error
}

func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("run %s: the outcome of %s is not recorded: %s. The run is parked; find the cause, then resume it", e.RunID, e.Key, e.Err)
}

func (e *UnrecordedError) Unwrap() error { return e.Err }

type unrecordedErrorJSON struct{ RunID, Key, Err string }

// MarshalJSON makes the error one that is found again where it was recorded.
func (e *UnrecordedError) MarshalJSON() ([]byte, error) {
	return json.Marshal(unrecordedErrorJSON{e.RunID, e.Key, fmt.Sprint(e.Err)})
}

// UnmarshalJSON is the other direction; of Err the message is kept, and what it
// wraps is recorded beside it.
func (e *UnrecordedError) UnmarshalJSON(b []byte) error {
	var j unrecordedErrorJSON
	err := json.Unmarshal(b, &j)
	*e = UnrecordedError{RunID: j.RunID, Key: j.Key, Err: errors.New(j.Err)}
	return err
}

type damagedErrorJSON struct {
	RunID string
	Seq   int64
	Err   string
}

// MarshalJSON makes the error one that is found again where it was recorded.
func (e *DamagedError) MarshalJSON() ([]byte, error) {
	return json.Marshal(damagedErrorJSON{e.RunID, e.Seq, fmt.Sprint(e.Err)})
}

// UnmarshalJSON is the other direction; of Err the message is kept.
func (e *DamagedError) UnmarshalJSON(b []byte) error {
	var j damagedErrorJSON
	err := json.Unmarshal(b, &j)
	*e = DamagedError{RunID: j.RunID, Seq: j.Seq, Err: errors.New(j.Err)}
	return err
}

// Is matches store.ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == store.ErrCorrupt }

// PanicError is a panic of user code, contained: the step or run failed, the
// process goes on. Value is what was given to panic, as printed by %v; Stack is the
// stack of the goroutine that panicked.
type PanicError = guard.PanicError

// ErrGoexit: user code ended its goroutine with runtime.Goexit (t.FailNow does)
// instead of returning.
var ErrGoexit = guard.ErrGoexit

// The codes with which a run may be interrupted or failed, in Info.Code and in
// metrics.
const (
	CodeDefinitionChanged = stuck.CodeDefinitionChanged
	CodeUndecodable       = stuck.CodeUndecodable
	CodeDamaged           = stuck.CodeDamaged
	CodeNotRegistered     = store.CodeNotRegistered
	CodeQuarantined       = stuck.CodeQuarantined
	CodeRestarted         = claims.CodeRestarted  // FailOnBoot
	CodeShutdown          = "shutdown"            // stopped gracefully; its policy leaves resuming to a person
	CodeError             = "error"               // the workflow returned an error
	CodeRepaired          = history.CodeRepaired  // it had failed, and was repaired; Resume continues it
	CodeImporting         = history.CodeImporting // its import has not finished; import it again
	CodeImported          = history.CodeImported  // it was not ended where it was exported; Resume continues it here
	CodePanic             = "panic"
	CodeDeadline          = "deadline"           // the run's deadline has passed
	CodeApproval          = history.CodeApproval // waiting for a person
	// CodeChildMissing: it waits for a child that is not in the store.
	CodeChildMissing = stuck.CodeChildMissing
	// CodeRecovered: it was repaired; its policy leaves resuming to a person.
	CodeRecovered = history.CodeRecovered
	// CodeUnrecorded: the outcome of a durable call could not be recorded.
	CodeUnrecorded = "unrecorded"
	// CodeUnrecoverable: it is inconsistent and was left as it is.
	CodeUnrecoverable = stuck.CodeUnrecoverable
)

// NotResumableError says in which status a run was that cannot be resumed from
// it.
type NotResumableError struct {
	RunID  string
	Status store.Status
	Reason string
	// Paused is set where Unpause lets the run go on.
	Paused bool
}

func (e *NotResumableError) Error() string {
	s := fmt.Sprintf("Session %s is not resumable (status: %s)", e.RunID, e.Status)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Is matches ErrNotResumable.
func (e *NotResumableError) Is(target error) bool { return target == ErrNotResumable }

// CodeJump is the code of a run for which a jump was requested and not carried
// out.
const CodeJump = history.CodeJump

// CodeEdited is the code of a run whose history was edited and that waits for
// Resume.
const CodeEdited = history.CodeEdited
