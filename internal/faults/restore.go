package faults

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
)

// Restore returns the error a record stands for. Names that are not registered
// any more leave the message and the type.
func (r *Registry) Restore(rec *history.Error) error {
	if rec == nil {
		return nil
	}
	var causes []error
	for _, c := range rec.Causes {
		causes = append(causes, r.Restore(c))
	}
	text, whole, known := r.known(rec, causes)
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
func (r *Registry) known(rec *history.Error, causes []error) (text string, whole bool, known error) {
	if v, ok := r.values[rec.Sentinel]; ok && rec.Sentinel != "" {
		return Message(v), false, v
	}
	t, ok := r.names[rec.Type]
	if !ok || rec.Type == "" {
		return "", false, nil
	}
	read := func() {
		v, err := r.restoreTyped(t, rec)
		if err != nil {
			return
		}
		if w, ok := r.wrappers[t]; ok {
			w.Wrap(v, causes)
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

func (r *Registry) restoreTyped(t reflect.Type, rec *history.Error) (error, error) {
	value, err := r.defs.RaiseError(rec.Value, t, rec.Within)
	if err != nil {
		return nil, err // the message is left, and not what may be misread
	}
	p := reflect.New(t)
	into := p.Interface()
	if w, ok := r.wrappers[t]; ok {
		p.Elem().Set(reflect.New(t.Elem()))
		into = w.Fields(p.Elem().Interface().(error))
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

// Cause returns the cause number i of an error; when that was too large to be kept
// whole, something that says so.
func Cause(causes []error, i int) error {
	if i < len(causes) {
		return causes[i]
	}
	return &recordedError{message: "(the error was too large to be kept here; the event of the step or item has it)"}
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
	return e.goType != "" && target != nil && e.goType == GoType(target) && e.message == message(target)
}
