package durable

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// editable returns why the outcome of a call cannot be replaced; empty: it can.
// What somebody else was told because of it stays told: the maker of a request
// has its answer, and a sleep, a branch or a Map has no value of its own.
func editable(rec *record) string {
	switch {
	case rec == nil || rec.outcome.Seq == 0:
		return "it has no outcome"
	case scopeOfKey(rec.key) == undoScope:
		return "it is a compensation"
	case rec.kind == callChild && rec.outcome.Type != store.ChildFinished:
		return "the child was never started"
	case rec.kind != callStep && rec.kind != callWait && rec.kind != callChild:
		return fmt.Sprintf("it is a %s; only steps, items of a Map, waits and children can be edited", rec.kind)
	}
	return ""
}

// hasType reports whether an outcome is one of a value, so that its type is
// known: a failure, a time-out and a refusal have none.
func hasType(old *store.Event, was *eventData) bool {
	switch old.Type {
	case store.StepCompleted, store.ItemCompleted, store.SignalReceived:
		return was.Error == nil
	case store.ChildFinished:
		return was.Status == store.Completed
	}
	return false
}

// replacement is the outcome that takes the place of old, without its payload.
// The message that old was made of stays taken: it must not reach the next call
// that asks.
func replacement(old *store.Event, was *eventData) store.Event {
	ev := store.Event{Type: store.StepCompleted, Key: old.Key, Attempt: old.Attempt, Ordinal: old.Ordinal}
	d := &eventData{Input: was.Input, Items: was.Items}
	switch old.Type {
	case store.ItemCompleted, store.ItemFailed:
		ev.Type = store.ItemCompleted
	case store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		ev.Type, d.Message = store.SignalReceived, was.Message
	case store.ChildFinished:
		ev.Type, d.Message, d.Name, d.Status = store.ChildFinished, was.Message, was.Name, store.Completed
	}
	ev.Data = d.encode()
	return ev
}
