package durable

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// The engine calls code of the user's in many places, and none of them may end
// the process or a goroutine of the engine's: a run whose goroutine is gone is
// owned, alive and never taken up again. A function whose return the workflow
// waits for (a body, the workflow function, that of a branch or an item) has a
// deferred call beneath it that records its panic or its runtime.Goexit.
// Everything else is called by guarded: RetryIf, Reconcile, upcasters, the fold
// and the source of MapSeq, codecs and the methods of values, the methods of
// errors, log handlers, the archive, key providers, bodies of compensations.

// guarded calls fn, which calls code of the user's, and returns when it is over:
// nil if fn has returned, a *PanicError if it has panicked, ErrGoexit if it has
// called runtime.Goexit. fn stands on a goroutine of its own, since no deferred
// call can stop a Goexit; that takes about half a microsecond.
func guarded(fn func()) error {
	over := make(chan struct{})
	fault := error(ErrGoexit)
	goBranch(func() {
		defer close(over)
		defer func() {
			if v := recover(); v != nil {
				fault = newPanicError(v)
			}
		}()
		fn()
		fault = nil
	})
	<-over
	return fault
}

// ownCode reports whether encoding/json calls methods of the user's when it
// encodes a value of type t, or decodes into one. Types of the standard library
// are trusted. What an interface holds is not known when it is encoded; JSON
// decodes values of its own into it.
func ownCode(t reflect.Type, seen map[reflect.Type]bool) (encoding, decoding bool) {
	if seen[t] || trusted(t) {
		return false, false
	}
	seen[t] = true
	for _, own := range []reflect.Type{jsonMarshaler, jsonUnmarshaler, textMarshaler, textUnmarshaler} {
		if t.Implements(own) || reflect.PointerTo(t).Implements(own) {
			return true, true
		}
	}
	look := func(inner reflect.Type) {
		e, d := ownCode(inner, seen)
		encoding, decoding = encoding || e, decoding || d
	}
	switch t.Kind() {
	case reflect.Interface:
		return true, t.NumMethod() > 0
	case reflect.Pointer, reflect.Slice, reflect.Array:
		look(t.Elem())
	case reflect.Map:
		look(t.Key())
		look(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() || f.Anonymous {
				look(f.Type)
			}
		}
	}
	return encoding, decoding
}

// trusted reports whether t is declared in a package of the standard library
// whose types have methods that encoding/json calls.
func trusted(t reflect.Type) bool {
	root, _, _ := strings.Cut(t.PkgPath(), "/")
	switch root {
	case "time", "math", "net", "encoding", "regexp", "log", "crypto":
		return t.Kind() != reflect.Interface
	}
	return false
}

// printed returns a value that was given to panic, as printed by %v.
func printed(v any) (text string) {
	switch v := v.(type) {
	case string:
		return v
	case runtime.Error:
		return v.Error()
	}
	if fault := guarded(func() { text = fmt.Sprint(v) }); fault != nil {
		return fmt.Sprintf("(a value of type %T that cannot be printed)", v)
	}
	return text
}
