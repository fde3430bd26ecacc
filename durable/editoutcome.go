package durable

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// editable returns why the outcome of a call cannot be replaced; empty: it can.
// What somebody else was told because of it stays told: the maker of a request
// has its answer, and a sleep, a branch or a Map has no value of its own.
func editable(rec *history.Call) string {
	switch {
	case rec == nil || rec.Outcome.Seq == 0:
		return "it has no outcome"
	case history.ScopeOfKey(rec.Key) == history.UndoScope:
		return "it is a compensation"
	case rec.Kind == history.CallChild && rec.Outcome.Type != store.ChildFinished:
		return "the child was never started"
	case rec.Kind != history.CallStep && rec.Kind != history.CallWait && rec.Kind != history.CallChild:
		return fmt.Sprintf("it is a %s; only steps, items of a Map, waits and children can be edited", rec.Kind)
	}
	return ""
}

// hasType reports whether an outcome is one of a value, so that its type is
// known: a failure, a time-out and a refusal have none.
func hasType(old *store.Event, was *history.Data) bool {
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
func replacement(old *store.Event, was *history.Data) store.Event {
	ev := store.Event{Type: store.StepCompleted, Key: old.Key, Attempt: old.Attempt, Ordinal: old.Ordinal}
	d := &history.Data{Input: was.Input, Items: was.Items}
	switch old.Type {
	case store.ItemCompleted, store.ItemFailed:
		ev.Type = store.ItemCompleted
	case store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		ev.Type, d.Message = store.SignalReceived, was.Message
	case store.ChildFinished:
		ev.Type, d.Message, d.Name, d.Status = store.ChildFinished, was.Message, was.Name, store.Completed
	}
	ev.Data = d.Encode()
	return ev
}
