package durable

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/faults"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrorKind makes an error survive being recorded: errors.Is or errors.As finds
// on replay what it found live. Give ErrorKinds to Options.Errors. errors.Is
// needs none for a target of the same concrete type and the same text as the
// recorded error; a registered error is found whatever it is called or says by
// now.
type ErrorKind struct{ kind faults.Kind }

// Sentinel registers an error value under a name that must never change: a
// recorded error that wraps it matches it again with errors.Is.
func Sentinel(name string, err error) ErrorKind {
	return ErrorKind{faults.Kind{Name: name, Sentinel: err}}
}

// ErrorType registers the error type E under a name that must never change: a
// recorded error that wraps one is found again with errors.As. Its exported
// fields are kept as JSON.
func ErrorType[E error](name string) ErrorKind {
	return ErrorKind{faults.Kind{Name: name, Type: reflect.TypeFor[E]()}}
}

// standardErrors are always registered.
func standardErrors() []ErrorKind {
	return []ErrorKind{
		Sentinel("context.Canceled", context.Canceled),
		Sentinel("context.DeadlineExceeded", context.DeadlineExceeded),
		Sentinel("io.EOF", io.EOF),
		Sentinel("io.ErrUnexpectedEOF", io.ErrUnexpectedEOF),
		Sentinel("fs.ErrNotExist", fs.ErrNotExist),
		Sentinel("fs.ErrExist", fs.ErrExist),
		Sentinel("fs.ErrPermission", fs.ErrPermission),
		Sentinel("errors.ErrUnsupported", errors.ErrUnsupported),
		Sentinel("durable.ErrAttemptTimeout", ErrAttemptTimeout),
		Sentinel("durable.ErrGoexit", ErrGoexit),
		Sentinel("durable.ErrOutsideRun", ErrOutsideRun),
		Sentinel("durable.ErrNested", ErrNested),
		Sentinel("durable.ErrNoEngine", ErrNoEngine),
		Sentinel("durable.ErrClosed", ErrClosed),
		Sentinel("durable.ErrUnavailable", ErrUnavailable),
		Sentinel("store.ErrInvalid", store.ErrInvalid),
		Sentinel("store.ErrNotFound", store.ErrNotFound),
		Sentinel("store.ErrTooLarge", store.ErrTooLarge),
		Sentinel("durable.ErrInWorkflow", ErrInWorkflow),
		Sentinel("durable.ErrNoResult", ErrNoResult),
		ErrorType[*NotRunningError]("durable.NotRunningError"),
		ErrorType[*SignalTypeError]("durable.SignalTypeError"),
		ErrorType[*misuse.SameWaitError]("durable.SameWaitError"),
		ErrorType[*misuse.ForgottenError]("durable.ForgottenError"),
		ErrorType[*AnsweredError]("durable.AnsweredError"),
		ErrorType[*RefusedError]("durable.RefusedError"),
		ErrorType[*misuse.ConcurrentCallError]("durable.ConcurrentCallError"),
		ErrorType[*ConflictError]("durable.ConflictError"),
		ErrorType[*DefinitionChangedError]("durable.DefinitionChangedError"),
		ErrorType[*UndecodableError]("durable.UndecodableError"),
		ErrorType[*DamagedError]("durable.DamagedError"),
		ErrorType[*UnrecordedError]("durable.UnrecordedError"),
		ErrorType[*misuse.ContextDeadlineError]("durable.ContextDeadlineError"),
		ErrorType[*store.NameError]("store.NameError"),
		ErrorType[*store.TooLargeError]("store.TooLargeError"),
		ErrorType[*PanicError]("durable.PanicError"),
		ErrorType[*UnknownOutcomeError]("durable.UnknownOutcomeError"),
		ErrorType[*EncodeError]("durable.EncodeError"),
		ErrorType[*deadlineError]("durable.DeadlineError"),
		ErrorType[*store.OccupiedError]("store.OccupiedError"),
		ErrorType[*misuse.ContinueError]("durable.ContinueError"),
		ErrorType[*PayloadSizeError]("durable.PayloadSizeError"),
		ErrorType[*FutureVersionError]("durable.FutureVersionError"),
		ErrorType[*UnregisteredTypeError]("durable.UnregisteredTypeError"),
		{faults.Wrapper("durable.StepError", (*StepError).fields, (*StepError).wrap)},
		{faults.Wrapper("durable.ItemError", (*ItemError).fields, (*ItemError).wrap)},
		{faults.Wrapper("durable.MapError", (*MapError).fields, (*MapError).wrap)},
		{faults.Wrapper("durable.RunError", (*RunError).fields, (*RunError).wrap)},
		Sentinel("durable.ErrNoKey", ErrNoKey),
		Sentinel("durable.ErrDecrypt", ErrDecrypt),
		Sentinel("durable.ErrWrongKey", ErrWrongKey),
	}
}

// newFaults returns the registry of the errors that are always registered and of
// the program's own; defs are the registered types that their fields may hold.
func newFaults(own []ErrorKind, defs *payload.Types) (*faults.Registry, error) {
	var kinds []faults.Kind
	for _, e := range append(standardErrors(), own...) {
		kinds = append(kinds, e.kind)
	}
	return faults.New(kinds, faults.Marks{Off: unmarked, Permanent: isPermanent}, defs)
}

// The errors of the engine that wrap errors of the user: of a step, an item, a
// Map, a run. They are recorded by their fields, and read back around the causes,
// which are beside them in the record, so that errors.As finds them wherever the
// error of a run is examined: here, in another process, after a replay. For each,
// fields returns what is recorded beside the causes, and wrap puts the causes
// back; see faults.Kind.

// The fields of the wrappers without the causes; each converts to and from its
// error.
type (
	stepErrorFields struct {
		RunID     string `json:"run_id"`
		Key       string `json:"key"`
		Attempt   int    `json:"attempt"`
		Max       int    `json:"max,omitempty"`
		Permanent bool   `json:"permanent,omitempty"`
		Err       error  `json:"-"`
	}
	itemErrorFields struct {
		Index    int    `json:"index"`
		Key      string `json:"key"`
		Err      error  `json:"-"`
		Attempts int    `json:"attempts"`
	}
	runErrorFields struct {
		RunID       string       `json:"run_id"`
		Workflow    string       `json:"workflow"`
		Status      store.Status `json:"status"`
		Reason      string       `json:"reason,omitempty"`
		Recoverable bool         `json:"recoverable,omitempty"`
		Err         error        `json:"-"`
	}
)

func (e *StepError) fields() any         { return (*stepErrorFields)(e) }
func (e *StepError) wrap(causes []error) { e.Err = faults.Cause(causes, 0) }

func (e *ItemError) fields() any         { return (*itemErrorFields)(e) }
func (e *ItemError) wrap(causes []error) { e.Err = faults.Cause(causes, 0) }

func (e *RunError) fields() any { return (*runErrorFields)(e) }

func (e *RunError) wrap(causes []error) {
	if len(causes) > 0 { // a run that the engine failed has no cause
		e.Err = causes[0]
	}
}

func (e *MapError) fields() any { return &mapErrorFields{e} }

// wrap takes each item from its own record or, if that was too large, from the
// list of the Map.
func (e *MapError) wrap(causes []error) {
	for i, f := range e.Failed {
		if i < len(causes) {
			if item, ok := causes[i].(*ItemError); ok {
				e.Failed[i] = item
				continue
			}
		}
		f.Err = faults.Cause(causes, i)
	}
}

// mapErrorFields is a MapError as JSON.
type mapErrorFields struct{ of *MapError }

type mapErrorJSON struct {
	RunID  string             `json:"run_id"`
	Key    string             `json:"key"`
	Failed []*itemErrorFields `json:"failed"`
	Undone int                `json:"undone,omitempty"`
	// Ranges are the indexes of the undone, each from the first to the last.
	Ranges [][2]int `json:"undone_ranges,omitempty"`
}

func (f *mapErrorFields) MarshalJSON() ([]byte, error) {
	e := f.of
	j := mapErrorJSON{RunID: e.RunID, Key: e.Key, Undone: e.Undone}
	for _, item := range e.Failed {
		j.Failed = append(j.Failed, (*itemErrorFields)(item))
	}
	for _, n := range e.undone {
		if last := len(j.Ranges) - 1; last >= 0 && j.Ranges[last][1] == n-1 {
			j.Ranges[last][1] = n
			continue
		}
		j.Ranges = append(j.Ranges, [2]int{n, n})
	}
	return json.Marshal(&j)
}

func (f *mapErrorFields) UnmarshalJSON(b []byte) error {
	var j mapErrorJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*f.of = MapError{RunID: j.RunID, Key: j.Key, Undone: j.Undone}
	for _, item := range j.Failed {
		f.of.Failed = append(f.of.Failed, (*ItemError)(item))
	}
	for _, r := range j.Ranges {
		for n := r[0]; n <= r[1] && len(f.of.undone) < j.Undone; n++ {
			f.of.undone = append(f.of.undone, n)
		}
	}
	return nil
}
