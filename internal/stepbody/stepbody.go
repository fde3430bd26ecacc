// Package stepbody gives the packages around durable more access to the step body that a context
// belongs to than durable gives its users. A helper that leaves something outside the process (a
// command, a session) needs it to distinguish what this execution has done from what an earlier one
// has left behind.
package stepbody

import (
	"context"
	"encoding/json"
)

// Key is the context key under which the context of a body holds its Body.
type Key struct{}

// Of returns the body that ctx belongs to, nil if it belongs to none.
func Of(ctx context.Context) Body {
	b, _ := ctx.Value(Key{}).(Body)
	return b
}

// Body is one execution of a step's body. Its methods may be called concurrently.
type Body interface {
	// Local returns what the body keeps in memory under key; the first call creates it. It lives as
	// long as this execution of this attempt.
	Local(key any, make func() any) any
	// RunLocal is like Local, but lives as long as the run's function is executed: it starts empty
	// in every process, and whenever the run is loaded again.
	RunLocal(key any, make func() any) any
	// Interrupted reports whether an earlier execution has saved something in a slot
	// of progress, in an attempt without an outcome, and this execution has saved nothing yet.
	Interrupted(slot string) bool
	// Notes calls yield for every note with this name that the history had when this
	// execution of the run began, in no order.
	Notes(name string, yield func(seq int64, note json.RawMessage))
	// Input returns the value that the step was given with WithInput; nil: none.
	Input() any
	// Anew tells this execution from one of the same number before an operator's act: the branch of
	// the history that it is on, and, if the failures of the step were reset and nothing was recorded
	// of it since, the number of the last event before that; 0: they were not.
	Anew() (branch int32, reset int64)
}
