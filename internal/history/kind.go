package history

import (
	"cmp"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// CallKind says what sort of call made a record.
type CallKind string

const (
	CallStep  CallKind = "step"
	CallTimer CallKind = "sleep"
	CallWait  CallKind = "wait"
	CallChild CallKind = "child run"
	CallGo    CallKind = "branch"
	CallMap   CallKind = "map"
	CallFirst CallKind = "first"

	CallPublish    CallKind = "published value"
	CallAttributes CallKind = "change of attributes"
	CallRequest    CallKind = "wait for a request"
	CallReply      CallKind = "answer to a request"
)

// MessageKind returns the kind of messages that a wait takes, given the kind of
// call that its events name.
func MessageKind(k CallKind) store.Kind {
	if k == CallRequest {
		return store.KindRequest
	}
	return store.KindSignal
}

// A Role is what an event is to a reader of a history.
type Role int

const (
	RoleRun   Role = iota // of the run itself, or of no use to a replay
	RoleCall              // of a durable call
	RoleItem              // outcome of an item of a Map
	RoleOther             // not known to this version
)

// RoleOf returns what an event is to a replay, and the kind of the call that it
// belongs to.
func RoleOf(t store.Type) (CallKind, Role) {
	switch t {
	case store.StepStarted, store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ProgressSaved:
		return CallStep, RoleCall
	case store.TimerSet, store.TimerFired:
		return CallTimer, RoleCall
	case store.WaitRequested, store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		return CallWait, RoleCall
	case store.ChildStarted, store.ChildFinished:
		return CallChild, RoleCall
	case store.FirstWon:
		return CallFirst, RoleCall
	case store.Published:
		return CallPublish, RoleCall
	case store.AttributesSet:
		return CallAttributes, RoleCall
	case store.ItemCompleted, store.ItemFailed:
		return CallMap, RoleItem
	}
	if t.Known() {
		return "", RoleRun
	}
	return "", RoleOther
}

// FutureEventError reports an event that this program does not know: skipping it
// would misread the history.
type FutureEventError struct{ Type store.Type }

func (e *FutureEventError) Error() string {
	return fmt.Sprintf("an event of type %q is from a newer version of this library: use a newer program", e.Type)
}

// BeginsBranch reports whether events of this type may be the first of a branch.
func BeginsBranch(t store.Type) bool {
	switch t {
	case store.JumpActivated, store.Edited, store.WorkflowRecovered, store.WorkflowStarted:
		return true
	}
	return false
}

// NameOf returns the name by which people know an event: the key of its call, or
// its type.
func NameOf(ev *store.Event) string { return cmp.Or(ev.Key, string(ev.Type)) }
