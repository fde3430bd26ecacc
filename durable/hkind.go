package durable

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// callKind says what sort of call a record was made by.
type callKind string

const (
	callStep  callKind = "step"
	callTimer callKind = "sleep"
	callWait  callKind = "wait"
	callChild callKind = "child run"
	callGo    callKind = "branch"
	callMap   callKind = "map"
	callFirst callKind = "first"

	callPublish    callKind = "published value"
	callAttributes callKind = "change of attributes"
	callRequest    callKind = "wait for a request"
	callReply      callKind = "answer to a request"
)

// messageKind returns the kind of messages that a wait takes, by what its
// events say of their call.
func messageKind(k callKind) store.Kind {
	if k == callRequest {
		return store.KindRequest
	}
	return store.KindSignal
}

// roles of events, as far as reading a history goes.
type role int

const (
	roleRun   role = iota // of the run itself, or nothing a replay asks for
	roleCall              // of a durable call
	roleItem              // outcome of an item of a Map
	roleOther             // not known to this version
)

// roleOf says what an event is to a replay, and of which kind the call is that
// it belongs to.
func roleOf(t store.Type) (callKind, role) {
	switch t {
	case store.StepStarted, store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ProgressSaved:
		return callStep, roleCall
	case store.TimerSet, store.TimerFired:
		return callTimer, roleCall
	case store.WaitRequested, store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		return callWait, roleCall
	case store.ChildStarted, store.ChildFinished:
		return callChild, roleCall
	case store.FirstWon:
		return callFirst, roleCall
	case store.Published:
		return callPublish, roleCall
	case store.AttributesSet:
		return callAttributes, roleCall
	case store.ItemCompleted, store.ItemFailed:
		return callMap, roleItem
	}
	if t.Known() {
		return "", roleRun
	}
	return "", roleOther
}

// futureEventError reports an event this program does not know: to pass over it
// would be to misread the history.
type futureEventError struct{ typ store.Type }

func (e *futureEventError) Error() string {
	return fmt.Sprintf("an event of type %q is from a newer version of this library: use a newer program", e.typ)
}

// beginsBranch reports whether events of this type may be the first of a branch.
func beginsBranch(t store.Type) bool {
	switch t {
	case store.JumpActivated, store.Edited, store.WorkflowRecovered, store.WorkflowStarted:
		return true
	}
	return false
}
