package sqlstore

import (
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

// EventRow is a row of the events table as a reader selects it. Data is text
// in the database, Payload bytes; both are NULL for nil.
type EventRow struct {
	No      int64  `db:"no"`
	Seq     int64  `db:"seq"`
	Epoch   int64  `db:"epoch"`
	Branch  int32  `db:"branch"`
	Type    string `db:"type"`
	Key     string `db:"key"`
	Attempt int32  `db:"attempt"`
	Ordinal int32  `db:"ordinal"`
	At      int64  `db:"at"`
	Took    int64  `db:"took"`
	Active  int64  `db:"active"`
	Steps   int32  `db:"steps"`
	Data    []byte `db:"data"`
	Payload []byte `db:"payload"`
	Sum     int64  `db:"sum"`
}

// Event returns the record.
func (r *EventRow) Event() store.Event {
	return store.Event{
		Seq: r.Seq, Epoch: r.Epoch, Branch: r.Branch, Type: TypeOf(r.Type), Key: r.Key, Attempt: r.Attempt, Ordinal: r.Ordinal,
		At: store.Time(r.At), Took: time.Duration(r.Took) * time.Microsecond, Active: time.Duration(r.Active) * time.Microsecond,
		Steps: r.Steps, Data: r.Data, Payload: r.Payload, Sum: uint32(r.Sum),
	}
}

// EventValues returns the values of the columns from branch to sum of
// EventRow, in that order: what follows run number, seq and epoch in every
// statement that appends.
func EventValues(e *store.Event) []any { return AppendEventValues(nil, e) }

// AppendEventValues appends what EventValues returns. An argument is a word in an interface, so
// a number above 255 and a text need an allocation each; what two arguments have in common, or
// all events of a type, is made once.
func AppendEventValues(list []any, e *store.Event) []any {
	typ, known := typeValues[e.Type]
	if !known {
		typ = string(e.Type)
	}
	var ordinal any = int64(e.Ordinal)
	steps := ordinal
	if e.Steps != e.Ordinal {
		steps = int64(e.Steps)
	}
	return append(list,
		int64(e.Branch), typ, e.Key, int64(e.Attempt), ordinal, int64(e.At), int64(e.Took/time.Microsecond),
		int64(e.Active/time.Microsecond), steps, Text(e.Data), Bytes(e.Payload), int64(e.Sum))
}

// A Repeated is an argument that is mostly the one that it was before, such as an epoch. The
// zero value is ready for use, by one goroutine at a time.
type Repeated struct {
	n     int64
	value any
}

// Of returns n as an argument.
func (r *Repeated) Of(n int64) any {
	if r.value == nil || n != r.n {
		r.n, r.value = n, n
	}
	return r.value
}

// typeValues has the known types as arguments.
var typeValues = func() map[store.Type]any {
	m := map[store.Type]any{}
	for _, t := range store.Types() {
		m[t] = string(t)
	}
	return m
}()

// Text returns a value that binds b as text, and nil as NULL.
func Text(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

// Bytes returns a value that binds b as bytes, and nil as NULL: not every
// driver treats a nil []byte in an any as nil.
func Bytes(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

var knownTypes = func() map[string]store.Type {
	m := map[string]store.Type{}
	for _, t := range []store.Type{
		store.WorkflowCreated, store.WorkflowStarted, store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowCancelled,
		store.WorkflowInterrupted, store.WorkflowRecovered, store.WorkflowContinued, store.RunResumed, store.RunClaimed,
		store.FailuresReset, store.StepStarted, store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ProgressSaved,
		store.WaitRequested, store.SignalReceived, store.WaitTimedOut, store.WaitClosed, store.TimerSet, store.TimerFired,
		store.ChildStarted, store.ChildFinished, store.ItemCompleted, store.ItemFailed, store.FirstWon, store.CancelReceived,
		store.InputReplaced, store.Compensated, store.Patched, store.Published, store.Edited, store.JumpRequested, store.JumpActivated,
	} {
		m[string(t)] = t
	}
	return m
}()

// TypeOf returns s as a type. For a known type it returns the constant, so that
// a long history does not keep a copy of the word with each event.
func TypeOf(s string) store.Type {
	if t, ok := knownTypes[s]; ok {
		return t
	}
	return store.Type(s)
}
