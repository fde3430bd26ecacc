// Package guard contains user code and its output: it calls such code so that no panic and no
// runtime.Goexit leaves the call, and it bounds and cleans the texts that come back.
//
// The engine calls user code in many places, and none of those calls may end the process or a
// goroutine of the engine: the run would not be executed until the engine's audit of what it
// owns picks it up. A function whose return the workflow waits for (a body, the workflow
// function, the function of a branch or an item) has a deferred call beneath it that records its
// panic or its runtime.Goexit. Everything else goes through Call:
//
//   - what options contain: RetryIf, Reconcile, key providers, log handlers, the archive
//   - what works on values: codecs, upcasters, methods of values and of errors
//   - the fold and the source of MapSeq, and bodies of compensations
package guard

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/store"
)

// Call calls fn, which calls user code, and returns when it is over: nil if fn has
// returned, a *PanicError if it has panicked, ErrGoexit if it has called
// runtime.Goexit. fn runs on its own goroutine, because no deferred call can stop a Goexit; that
// takes about half a microsecond.
func Call(fn func()) error {
	over := make(chan struct{})
	fault := error(ErrGoexit)
	go bottom(func() {
		defer close(over)
		defer func() {
			if v := recover(); v != nil {
				fault = Panicked(v)
			}
		}()
		fn()
		fault = nil
	})
	<-over
	return fault
}

//go:noinline
func bottom(fn func()) { fn() }

// Bottom is the entry of the function that the goroutines of Call begin with: it distinguishes
// them from goroutines that user code has started.
var Bottom = reflect.ValueOf(bottom).Pointer()

// PanicError is a panic of user code, contained: the process goes on.
type PanicError struct {
	Value string `json:"value"` // as printed by %v
	Stack string `json:"stack"`
}

func (e *PanicError) Error() string { return "panic: " + e.Value }

// ErrGoexit: user code ended its goroutine with runtime.Goexit (t.FailNow does)
// instead of returning.
var ErrGoexit = errors.New("durable: the function called runtime.Goexit instead of returning")

// maxStack bounds the stack that is kept with a panic, in bytes.
const maxStack = 16 << 10

// Panicked returns the error for what recover has returned.
func Panicked(v any) *PanicError {
	stack := Text(string(debug.Stack()), maxStack)
	return &PanicError{Value: Text(printed(v), MaxText), Stack: stack}
}

// printed returns a value that was passed to panic, as printed by %v.
func printed(v any) (text string) {
	switch v := v.(type) {
	case string:
		return v
	case runtime.Error:
		return v.Error()
	}
	if fault := Call(func() { text = fmt.Sprint(v) }); fault != nil {
		return fmt.Sprintf("(a value of type %T that cannot be printed)", v)
	}
	return text
}

// MaxText bounds a stored message, reason or prompt, in bytes.
const MaxText = 64 << 10

// Text returns a text for people in its stored form: clean, cut after limit bytes, and with a
// mark where it was cut. Every such text passes through it: reasons, names of persons, messages
// of errors. A prompt is cleaned in the same way, and refused if it is too long.
func Text(s string, limit int) string {
	if len(s) > limit {
		end := limit
		for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return store.CleanText(s)
}
