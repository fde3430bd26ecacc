package faults

import (
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/misuse"
	"github.com/holdfast-dev/holdfast/internal/payload"
)

// maxDepth bounds how deep wrapped errors are followed.
const maxDepth = 32

// maxSize bounds all that is kept of one error. The JSON of a typed error has
// the bound of a message.
const maxSize = 1 << 20

// Record returns err as it is kept. An error whose own methods panic, or end
// their goroutine, is kept by its message alone.
func (r *Registry) Record(err error) *history.Error {
	var rec *history.Error
	fault := guardedUnlessPlain(err, func() {
		left := maxSize
		rec = r.node(err, 0, &left)
		rec.Permanent = r.marks.Permanent(err)
	})
	if fault != nil {
		return &history.Error{Message: Message(err)}
	}
	return rec
}

func (r *Registry) node(err error, depth int, left *int) *history.Error {
	err = r.unmarked(err)
	rec := &history.Error{Message: message(err)}
	// Not the type's Comparable: a field may hold what is not.
	if reflect.ValueOf(err).Comparable() {
		rec.Sentinel = r.sentinels[err]
	}
	if rec.Sentinel == "" {
		rec.Type, rec.Value = r.typed(err)
		if rec.Type == "" {
			rec.Go = GoType(err)
		} else {
			rec.Within = r.defs.WithinError(reflect.TypeOf(err))
		}
	}
	*left -= len(rec.Message) + len(rec.Value) + len(rec.Go)
	if rec.Sentinel != "" || depth == maxDepth {
		return rec
	}
	if _, unsaid := err.(*payload.UnquotedError); unsaid {
		return rec // what is below is in memory alone
	}
	for _, cause := range unwrap(err) {
		if cause != nil && *left > 0 {
			rec.Causes = append(rec.Causes, r.node(cause, depth+1, left))
		}
	}
	return rec
}

// unmarked returns an error without its marks.
func (r *Registry) unmarked(err error) error {
	for {
		inner, marked := r.marks.Off(err)
		if !marked {
			return err
		}
		err = inner
	}
}

// typed returns the name and the fields of an error of a registered type.
func (r *Registry) typed(err error) (name string, value []byte) {
	name, ok := r.types[reflect.TypeOf(err)]
	if !ok {
		return "", nil
	}
	fields, limit := any(err), 2*guard.MaxText
	if w, ok := r.wrappers[reflect.TypeOf(err)]; ok {
		if reflect.ValueOf(err).IsNil() {
			return "", nil
		}
		fields, limit = w.Fields(err), maxSize/2
	}
	value, jsonErr := json.Marshal(fields)
	if jsonErr != nil || len(value) > limit {
		return "", nil
	}
	return name, value
}

// GoType names the concrete type of an error, of one that was read back that of
// the error which was recorded.
func GoType(err error) string {
	if e, ok := err.(*recordedError); ok {
		return e.goType
	}
	t, pointers := pointedTo(err)
	if name, moved := nameBefore(t); moved {
		return pointers + name
	}
	if t.PkgPath() == "" {
		return pointers + t.String()
	}
	return pointers + t.PkgPath() + "." + t.Name()
}

// shortType is GoType as %T has it, for log lines.
func shortType(err error) string {
	t, pointers := pointedTo(err)
	if name, moved := nameBefore(t); moved {
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

// nameBefore returns the name that histories know a type by which has moved since.
func nameBefore(t reflect.Type) (name string, moved bool) {
	if name, moved = recordedAs[t]; moved {
		return name, true
	}
	switch {
	case t.PkgPath() == root+"operate" && slices.Contains(operated, t.Name()):
		return root + "durable." + t.Name(), true
	case t.PkgPath() == root+"durable" && exportedOnce[t.Name()] != "":
		return root + "durable." + exportedOnce[t.Name()], true
	}
	return "", false
}

const root = "github.com/holdfast-dev/holdfast/"

// operated are the errors of package operate that were durable's.
var operated = []string{"BusyError", "CheckpointError", "CrossingError", "EditError", "TooLateError", "UndoneError", "UnrepairableError"}

// exportedOnce has the errors of package durable that were exported when histories began
// to name them.
var exportedOnce = map[string]string{"childMissingError": "ChildMissingError", "deadlineError": "DeadlineError"}

// recordedAs has the names of types that have moved since histories began to name them.
// They must not change: what was recorded is compared by name.
var recordedAs = map[reflect.Type]string{
	reflect.TypeFor[payload.UnquotedError](): root + "durable.unquotedError",
	reflect.TypeFor[payload.MismatchError](): root + "durable.mismatchError",
	reflect.TypeFor[guard.PanicError]():      root + "durable.PanicError",
	reflect.TypeFor[payload.SizeError]():     root + "durable.PayloadSizeError",

	reflect.TypeFor[payload.FutureVersionError]():    root + "durable.FutureVersionError",
	reflect.TypeFor[payload.UnregisteredTypeError](): root + "durable.UnregisteredTypeError",
	reflect.TypeFor[history.FutureEventError]():      root + "durable.futureEventError",

	reflect.TypeFor[misuse.ConcurrentCallError]():  root + "durable.ConcurrentCallError",
	reflect.TypeFor[misuse.ContextDeadlineError](): root + "durable.ContextDeadlineError",
	reflect.TypeFor[misuse.ContinueError]():        root + "durable.ContinueError",
	reflect.TypeFor[misuse.ForgottenError]():       root + "durable.ForgottenError",
	reflect.TypeFor[misuse.OuterContextError]():    root + "durable.OuterContextError",
	reflect.TypeFor[misuse.SameWaitError]():        root + "durable.SameWaitError",
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
