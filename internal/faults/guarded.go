package faults

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/guard"
)

// Find is errors.As, guarded against the methods of err.
func Find[E error](err error) (found E, ok bool) {
	fault := guardedUnlessPlain(err, func() { ok = errors.As(err, &found) })
	return found, ok && fault == nil
}

// Is is errors.Is for any of the targets, guarded against the methods of err.
func Is(err error, targets ...error) (is bool) {
	fault := guardedUnlessPlain(err, func() {
		is = slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	})
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

// Message returns the message of err as it can be kept: of bounded length and in valid
// UTF-8. Nothing needs to be known of the error.
func Message(err error) (s string) {
	if reflect.TypeOf(err) == typeOfErrorf {
		return message(err) // made when the error was
	}
	if guardedUnlessPlain(err, func() { s = message(err) }) != nil {
		return fmt.Sprintf("(an error of type %T whose Error method does not return)", err)
	}
	return s
}
