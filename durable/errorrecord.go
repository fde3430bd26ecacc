package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrorKind makes an error survive its record: errors.Is or errors.As finds on
// replay what it found live. Give them to Options.Errors.
type ErrorKind struct {
	name     string
	sentinel error
	typ      reflect.Type
}

// Sentinel registers an error value under a name that must never change: a
// recorded error that wraps it matches it again with errors.Is.
func Sentinel(name string, err error) ErrorKind { return ErrorKind{name: name, sentinel: err} }

// ErrorType registers the error type E under a name that must never change: a
// recorded error that wraps one is found again with errors.As. Its exported
// fields are kept as JSON.
func ErrorType[E error](name string) ErrorKind {
	return ErrorKind{name: name, typ: reflect.TypeFor[E]()}
}

// errorKinds is a registry; it does not change once an engine is open.
type errorKinds struct {
	sentinels map[error]string
	values    map[string]error
	types     map[reflect.Type]string
	names     map[string]reflect.Type
	defs      *typeDefs // registered types that their fields may hold; nil: none
}

// standardErrors are registered always.
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
		ErrorType[*SameWaitError]("durable.SameWaitError"),
		ErrorType[*ForgottenError]("durable.ForgottenError"),
		ErrorType[*AnsweredError]("durable.AnsweredError"),
		ErrorType[*RefusedError]("durable.RefusedError"),
		ErrorType[*ConcurrentCallError]("durable.ConcurrentCallError"),
		ErrorType[*ConflictError]("durable.ConflictError"),
		ErrorType[*DefinitionChangedError]("durable.DefinitionChangedError"),
		ErrorType[*UndecodableError]("durable.UndecodableError"),
		ErrorType[*DamagedError]("durable.DamagedError"),
		ErrorType[*UnrecordedError]("durable.UnrecordedError"),
		ErrorType[*store.NameError]("store.NameError"),
		ErrorType[*store.TooLargeError]("store.TooLargeError"),
		ErrorType[*PanicError]("durable.PanicError"),
		ErrorType[*UnknownOutcomeError]("durable.UnknownOutcomeError"),
		ErrorType[*EncodeError]("durable.EncodeError"),
		ErrorType[*DeadlineError]("durable.DeadlineError"),
		ErrorType[*store.OccupiedError]("store.OccupiedError"),
		ErrorType[*ContinueError]("durable.ContinueError"),
		ErrorType[*PayloadSizeError]("durable.PayloadSizeError"),
		ErrorType[*FutureVersionError]("durable.FutureVersionError"),
		ErrorType[*UnregisteredTypeError]("durable.UnregisteredTypeError"),
		Sentinel("durable.ErrNoKey", ErrNoKey),
		Sentinel("durable.ErrDecrypt", ErrDecrypt),
		Sentinel("durable.ErrWrongKey", ErrWrongKey),
	}
}

func newErrorKinds(own []ErrorKind) (*errorKinds, error) {
	k := &errorKinds{
		sentinels: map[error]string{}, values: map[string]error{},
		types: map[reflect.Type]string{}, names: map[string]reflect.Type{},
	}
	for _, e := range append(standardErrors(), own...) {
		_, taken := k.values[e.name]
		if _, t := k.names[e.name]; e.name == "" || taken || t {
			return nil, fmt.Errorf("durable: Options.Errors: the name %q is empty or used twice: %w", e.name, ErrInvalid)
		}
		switch {
		case e.sentinel != nil:
			if !reflect.ValueOf(e.sentinel).Comparable() {
				return nil, fmt.Errorf("durable: Options.Errors: %q is not comparable, so errors.Is could not find it: %w", e.name, ErrInvalid)
			}
			k.sentinels[e.sentinel], k.values[e.name] = e.name, e.sentinel
		case e.typ != nil && e.typ.Kind() != reflect.Interface:
			k.types[e.typ], k.names[e.name] = e.name, e.typ
		default:
			return nil, fmt.Errorf("durable: Options.Errors: %q is neither an error value nor a concrete type: %w", e.name, ErrInvalid)
		}
	}
	return k, nil
}

// errorRecord is an error as the history keeps it: its message, and those of
// the errors it wraps that lead to a registered one.
type errorRecord struct {
	Message   string          `json:"message"`
	Sentinel  string          `json:"sentinel,omitempty"`
	Type      string          `json:"type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Within    string          `json:"within,omitempty"`    // registered types in the value
	Permanent bool            `json:"permanent,omitempty"` // of the outermost only
	Causes    []*errorRecord  `json:"causes,omitempty"`
}

// maxErrorDepth bounds how deep wrapped errors are followed.
const maxErrorDepth = 32

// maxMessage bounds the message that is kept, in bytes, and so the JSON of a
// typed error; maxErrorSize bounds all that is kept of one error.
const (
	maxMessage   = 64 << 10
	maxErrorSize = 1 << 20
)

// record returns err as it is kept. An error whose own methods panic is kept by
// its message alone.
func (k *errorKinds) record(err error) (rec *errorRecord) {
	defer func() {
		if recover() != nil {
			rec = &errorRecord{Message: safeMessage(err)}
		}
	}()
	left := maxErrorSize
	rec = k.node(err, 0, &left)
	_, rec.Permanent = findError[*permanentError](err)
	return rec
}

// findError is errors.As, guarded against methods of err that panic.
func findError[E error](err error) (found E, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	ok = errors.As(err, &found)
	return found, ok
}

func (k *errorKinds) node(err error, depth int, left *int) *errorRecord {
	rec := &errorRecord{Message: safeMessage(err)}
	// Not the type's Comparable: a field may hold what is not.
	if reflect.ValueOf(err).Comparable() {
		rec.Sentinel = k.sentinels[err]
	}
	if rec.Sentinel == "" {
		if name, ok := k.types[reflect.TypeOf(err)]; ok {
			if value, jsonErr := json.Marshal(err); jsonErr == nil && len(value) <= 2*maxMessage {
				rec.Type, rec.Value = name, value
				if k.defs != nil {
					rec.Within = k.defs.info(reflect.TypeOf(err)).within
				}
			}
		}
	}
	*left -= len(rec.Message) + len(rec.Value)
	if rec.Sentinel != "" || depth == maxErrorDepth {
		return rec
	}
	for _, cause := range unwrap(err) {
		if cause == nil || *left <= 0 {
			continue
		}
		if c := k.node(cause, depth+1, left); c.Sentinel != "" || c.Type != "" || len(c.Causes) > 0 {
			rec.Causes = append(rec.Causes, c)
		}
	}
	return rec
}

// safeMessage returns the message of err as it can be kept: of bounded length
// and in valid UTF-8. It guards against an Error method that panics, as one of
// a nil pointer does.
func safeMessage(err error) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("(an error of type %T whose Error method panics: %v)", err, v)
		}
	}()
	return strings.ToValidUTF8(cut(err.Error(), maxMessage), "\ufffd")
}

func unwrap(err error) []error {
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		if inner := x.Unwrap(); inner != nil {
			return []error{inner}
		}
	case interface{ Unwrap() []error }:
		return x.Unwrap()
	}
	return nil
}

// restore returns the error a record stands for. Names that are not registered
// any more leave the message.
func (k *errorKinds) restore(rec *errorRecord) error {
	if rec == nil {
		return nil
	}
	var known error
	if v, ok := k.values[rec.Sentinel]; ok && rec.Sentinel != "" {
		known = v
	} else if t, ok := k.names[rec.Type]; ok && rec.Type != "" {
		if v, err := k.restoreTyped(t, rec); err == nil {
			known = v
		}
	}
	// The message is the recorded one, also when the registered error says
	// something else by now or keeps part of it in fields that are not kept.
	if known != nil && len(rec.Causes) == 0 && safeMessage(known) == rec.Message {
		return known
	}
	var causes []error
	if known != nil {
		causes = append(causes, known)
	}
	for _, c := range rec.Causes {
		causes = append(causes, k.restore(c))
	}
	return &recordedError{message: rec.Message, causes: causes}
}

func (k *errorKinds) restoreTyped(t reflect.Type, rec *errorRecord) (error, error) {
	info := infoOf(t)
	if k.defs != nil {
		info = k.defs.info(t)
	}
	within, err := k.defs.raising(&envelope.Envelope{Type: info.name, TypeVersion: 1, Within: rec.Within}, t, info)
	if err != nil {
		return nil, err // the message is left, and not what may be misread
	}
	value, err := within.json(rec.Value, t)
	if err != nil {
		return nil, err
	}
	p := reflect.New(t)
	if err := json.Unmarshal(value, p.Interface()); err != nil {
		return nil, err
	}
	v, ok := p.Elem().Interface().(error)
	if !ok || (t.Kind() == reflect.Pointer && p.Elem().IsNil()) {
		return nil, errors.New("not an error")
	}
	return v, nil
}

// recordedError is an error read back from the history.
type recordedError struct {
	message string
	causes  []error
}

func (e *recordedError) Error() string   { return e.message }
func (e *recordedError) Unwrap() []error { return e.causes }

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}
