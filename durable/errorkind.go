package durable

import (
	"context"
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
