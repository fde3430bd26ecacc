package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// ErrorKind makes an error survive its record: errors.Is or errors.As finds on
// replay what it found live. Give them to Options.Errors. errors.Is needs none
// for a target of the same concrete type and the same text as what was recorded;
// a registered one is found whatever it is called or says by now.
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
	defs      *payload.Types // registered types that their fields may hold; nil: none
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
		ErrorType[*ContextDeadlineError]("durable.ContextDeadlineError"),
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
		ErrorType[*StepError]("durable.StepError"),
		ErrorType[*ItemError]("durable.ItemError"),
		ErrorType[*MapError]("durable.MapError"),
		ErrorType[*RunError]("durable.RunError"),
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

// maxErrorDepth bounds how deep wrapped errors are followed.
const maxErrorDepth = 32

// maxErrorSize bounds all that is kept of one error. The JSON of a typed error has
// the bound of a message.
const maxErrorSize = 1 << 20

// record returns err as it is kept. An error whose own methods panic, or end
// their goroutine, is kept by its message alone.
func (k *errorKinds) record(err error) *history.Error {
	var rec *history.Error
	fault := guardedUnlessPlain(err, func() {
		left := maxErrorSize
		rec = k.node(err, 0, &left)
		var p *permanentError
		rec.Permanent = errors.As(err, &p)
	})
	if fault != nil {
		return &history.Error{Message: safeMessage(err)}
	}
	return rec
}

// findError is errors.As, guarded against the methods of err.
func findError[E error](err error) (found E, ok bool) {
	fault := guardedUnlessPlain(err, func() { ok = errors.As(err, &found) })
	return found, ok && fault == nil
}

// misuse reports whether err says that the code makes durable calls as it must
// not: it would do so again in every further attempt.
func misuse(err error) (is bool) {
	fault := guardedUnlessPlain(err, func() { is = errors.Is(err, ErrNested) || errors.Is(err, ErrConcurrent) })
	return is && fault == nil
}

// guardedUnlessPlain is guard.Call for a function that calls the methods of err. An
// error of package errors, the most common one, has none of the user's.
func guardedUnlessPlain(err error, fn func()) error {
	if t := reflect.TypeOf(err); t == typeOfNew {
		fn()
		return nil
	}
	return guard.Call(fn)
}

var (
	typeOfNew    = reflect.TypeOf(errors.New(""))
	typeOfErrorf = reflect.TypeOf(fmt.Errorf("%w", io.EOF))
)

func (k *errorKinds) node(err error, depth int, left *int) *history.Error {
	err = unmarked(err)
	rec := &history.Error{Message: message(err)}
	// Not the type's Comparable: a field may hold what is not.
	if reflect.ValueOf(err).Comparable() {
		rec.Sentinel = k.sentinels[err]
	}
	if rec.Sentinel == "" {
		rec.Type, rec.Value = k.typed(err)
		if rec.Type == "" {
			rec.Go = goType(err)
		} else {
			rec.Within = k.defs.WithinError(reflect.TypeOf(err))
		}
	}
	*left -= len(rec.Message) + len(rec.Value) + len(rec.Go)
	if rec.Sentinel != "" || depth == maxErrorDepth {
		return rec
	}
	if _, unsaid := err.(*payload.UnquotedError); unsaid {
		return rec // what is below is in memory alone
	}
	for _, cause := range unwrap(err) {
		if cause != nil && *left > 0 {
			rec.Causes = append(rec.Causes, k.node(cause, depth+1, left))
		}
	}
	return rec
}

// unmarked returns an error without its marks Permanent and RetryAfter.
func unmarked(err error) error {
	for {
		switch e := err.(type) {
		case *permanentError:
			err = e.err
		case *retryAfterError:
			err = e.err
		default:
			return err
		}
	}
}

// typed returns the name and the fields of an error of a registered type.
func (k *errorKinds) typed(err error) (name string, value []byte) {
	name, ok := k.types[reflect.TypeOf(err)]
	if !ok {
		return "", nil
	}
	fields, limit := any(err), 2*guard.MaxText
	if w, ok := err.(wrapper); ok {
		if reflect.ValueOf(err).IsNil() {
			return "", nil
		}
		fields, limit = w.fields(), maxErrorSize/2
	}
	value, jsonErr := json.Marshal(fields)
	if jsonErr != nil || len(value) > limit {
		return "", nil
	}
	return name, value
}

// goType names the concrete type of an error, of one that was read back that of
// the error which was recorded.
func goType(err error) string {
	if e, ok := err.(*recordedError); ok {
		return e.goType
	}
	t, pointers := pointedTo(err)
	if name, moved := recordedAs[t]; moved {
		return pointers + name
	}
	if t.PkgPath() == "" {
		return pointers + t.String()
	}
	return pointers + t.PkgPath() + "." + t.Name()
}

// shortType is goType as %T has it, for log lines.
func shortType(err error) string {
	t, pointers := pointedTo(err)
	if name, moved := recordedAs[t]; moved {
		return pointers + path.Base(name)
	}
	return fmt.Sprintf("%T", err)
}

// pointedTo returns the type of err, or what that points to, and the stars between.
func pointedTo(err error) (t reflect.Type, pointers string) {
	t = reflect.TypeOf(err)
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t, pointers = t.Elem(), pointers+"*"
	}
	return t, pointers
}

// recordedAs has the names of types that have moved since histories began to name them.
// They must not change: what was recorded is compared by name.
var recordedAs = map[reflect.Type]string{
	reflect.TypeFor[payload.UnquotedError](): "github.com/holdfast-dev/holdfast/durable.unquotedError",
	reflect.TypeFor[payload.MismatchError](): "github.com/holdfast-dev/holdfast/durable.mismatchError",
	reflect.TypeFor[guard.PanicError]():      "github.com/holdfast-dev/holdfast/durable.PanicError",
	reflect.TypeFor[payload.SizeError]():     "github.com/holdfast-dev/holdfast/durable.PayloadSizeError",

	reflect.TypeFor[payload.FutureVersionError]():    "github.com/holdfast-dev/holdfast/durable.FutureVersionError",
	reflect.TypeFor[payload.UnregisteredTypeError](): "github.com/holdfast-dev/holdfast/durable.UnregisteredTypeError",
	reflect.TypeFor[history.FutureEventError]():      "github.com/holdfast-dev/holdfast/durable.futureEventError",
}

// message returns the message of err as it can be kept: of bounded length and in
// valid UTF-8. It guards against an Error method that panics, as one of a nil
// pointer does, but not against one that ends its goroutine.
func message(err error) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("(an error of type %T whose Error method panics: %v)", err, v)
		}
	}()
	return guard.Text(err.Error(), guard.MaxText)
}

// safeMessage is message for an error that nothing is known of.
func safeMessage(err error) (s string) {
	if reflect.TypeOf(err) == typeOfErrorf {
		return message(err) // made when the error was
	}
	if guardedUnlessPlain(err, func() { s = message(err) }) != nil {
		return fmt.Sprintf("(an error of type %T whose Error method does not return)", err)
	}
	return s
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
// any more leave the message and the type.
func (k *errorKinds) restore(rec *history.Error) error {
	if rec == nil {
		return nil
	}
	var causes []error
	for _, c := range rec.Causes {
		causes = append(causes, k.restore(c))
	}
	text, whole, known := k.known(rec, causes)
	// The message is the recorded one, also when the registered error says
	// something else by now or keeps part of it in fields that are not kept.
	switch {
	case known == nil:
		return &recordedError{message: rec.Message, goType: rec.Go, causes: causes}
	case text == rec.Message && (whole || len(causes) == 0):
		return known
	case whole:
		causes = []error{known}
	default:
		causes = append([]error{known}, causes...)
	}
	return &recordedError{message: rec.Message, causes: causes}
}

// known returns the registered error of a record and its message, nil if there
// is none; whole says that it wraps the causes itself.
func (k *errorKinds) known(rec *history.Error, causes []error) (text string, whole bool, known error) {
	if v, ok := k.values[rec.Sentinel]; ok && rec.Sentinel != "" {
		return safeMessage(v), false, v
	}
	t, ok := k.names[rec.Type]
	if !ok || rec.Type == "" {
		return "", false, nil
	}
	read := func() {
		v, err := k.restoreTyped(t, rec)
		if err != nil {
			return
		}
		if w, ok := v.(wrapper); ok {
			w.wrap(causes)
			whole = true
		}
		text = message(v)
		known = v
	}
	if strings.HasPrefix(rec.Type, "durable.") {
		read()
	} else if guard.Call(read) != nil {
		return "", false, nil
	}
	return text, whole, known
}

func (k *errorKinds) restoreTyped(t reflect.Type, rec *history.Error) (error, error) {
	value, err := k.defs.RaiseError(rec.Value, t, rec.Within)
	if err != nil {
		return nil, err // the message is left, and not what may be misread
	}
	p := reflect.New(t)
	into := p.Interface()
	if t.Kind() == reflect.Pointer && t.Implements(wrapperType) {
		p.Elem().Set(reflect.New(t.Elem()))
		into = p.Elem().Interface().(wrapper).fields()
	}
	if err := json.Unmarshal(value, into); err != nil {
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
	goType  string // of the error that was recorded; empty: not known
	causes  []error
}

func (e *recordedError) Error() string   { return e.message }
func (e *recordedError) Unwrap() []error { return e.causes }

// Is matches an error of the same concrete type and the same text.
func (e *recordedError) Is(target error) bool {
	return e.goType != "" && target != nil && e.goType == goType(target) && e.message == message(target)
}
