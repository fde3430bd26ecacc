// Package faults keeps errors in a history and reads them again, so that errors.Is and
// errors.As find on replay what they found live.
//
//   - registry.go: what errors are known by name
//   - record.go: an error as it is kept
//   - restore.go: the error that a record stands for
//   - name.go: what an error is called where its message must not stand
//   - guarded.go: what is asked of an error whose methods are the user's
package faults

import (
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A Kind is an error value, or a type of errors, that is kept under a name which must
// never change.
type Kind struct {
	Name     string
	Sentinel error
	Type     reflect.Type // of errors whose exported fields are kept as JSON

	// Fields and Wrap are set for a Type of errors that wrap others and keep them
	// beside their own fields. Fields returns, for JSON in both directions, a pointer
	// to what is kept; Wrap puts the causes back.
	Fields func(error) any
	Wrap   func(err error, causes []error)
}

// Wrapper returns the Kind of errors that wrap others.
func Wrapper[E error](name string, fields func(E) any, wrap func(E, []error)) Kind {
	return Kind{
		Name: name, Type: reflect.TypeFor[E](),
		Fields: func(err error) any { return fields(err.(E)) },
		Wrap:   func(err error, causes []error) { wrap(err.(E), causes) },
	}
}

// Marks are what is put around an error to say how it is to be dealt with, and is no
// part of it.
type Marks struct {
	// Off returns the error in a mark; marked is false for any other error.
	Off func(error) (inner error, marked bool)
	// Permanent reports whether an error bears the mark of one that no further
	// attempt can mend.
	Permanent func(error) bool
}

// A Registry knows kinds of errors; it does not change once an engine is open.
type Registry struct {
	sentinels map[error]string
	values    map[string]error
	types     map[reflect.Type]string
	names     map[string]reflect.Type
	wrappers  map[reflect.Type]Kind
	marks     Marks
	defs      *payload.Types // registered types that fields may hold; nil: none
}

// New returns a registry of these kinds; defs are the registered types that the fields of
// errors may hold, nil if there are none.
func New(kinds []Kind, marks Marks, defs *payload.Types) (*Registry, error) {
	r := &Registry{
		sentinels: map[error]string{}, values: map[string]error{},
		types: map[reflect.Type]string{}, names: map[string]reflect.Type{},
		wrappers: map[reflect.Type]Kind{}, marks: marks, defs: defs,
	}
	for _, e := range kinds {
		_, taken := r.values[e.Name]
		if _, t := r.names[e.Name]; e.Name == "" || taken || t {
			return nil, fmt.Errorf("durable: Options.Errors: the name %q is empty or used twice: %w", e.Name, store.ErrInvalid)
		}
		switch {
		case e.Sentinel != nil:
			if !reflect.ValueOf(e.Sentinel).Comparable() {
				return nil, fmt.Errorf("durable: Options.Errors: %q is not comparable, so errors.Is could not find it: %w", e.Name, store.ErrInvalid)
			}
			r.sentinels[e.Sentinel], r.values[e.Name] = e.Name, e.Sentinel
		case e.Type != nil && e.Type.Kind() != reflect.Interface:
			r.types[e.Type], r.names[e.Name] = e.Name, e.Type
			if e.Fields != nil {
				r.wrappers[e.Type] = e
			}
		default:
			return nil, fmt.Errorf("durable: Options.Errors: %q is neither an error value nor a concrete type: %w", e.Name, store.ErrInvalid)
		}
	}
	return r, nil
}
