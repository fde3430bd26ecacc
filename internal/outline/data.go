package outline

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A cause is which call, or which run, an error of the engine is of.
type cause struct {
	Key   string `json:"key"`
	RunID string `json:"run_id"`
}

// causeOf takes what it knows: the fields of other errors are the user's.
func causeOf(f *history.Error) (c cause) {
	_ = json.Unmarshal(f.Value, &c)
	return c
}

// endedGoroutine reports whether the function ended its goroutine instead of returning.
func endedGoroutine(f *history.Error) bool {
	for depth := 0; f != nil && depth < 4; depth++ {
		if f.Sentinel == "durable.ErrGoexit" {
			return true
		}
		if len(f.Causes) == 0 {
			return false
		}
		f = f.Causes[0]
	}
	return false
}

// causesOf are the calls that an error is of, the outermost first: of a Map that failed by
// an item whose step failed, the Map, the item and the step.
func causesOf(f *history.Error) []cause {
	if f == nil {
		return nil
	}
	var list []cause
	switch f.Type {
	case "durable.StepError", "durable.MapError", "durable.ItemError":
		list = append(list, cause{Key: causeOf(f).Key})
	case "durable.RunError": // of a child
		list = append(list, cause{RunID: causeOf(f).RunID})
	}
	for _, c := range f.Causes {
		if len(list) < 16 {
			list = append(list, causesOf(c)...)
		}
	}
	return list
}

// dataOf reads what an event says. What cannot be read says nothing: a verdict
// of damage is for operate.Operator.Verify. Over HTTP the hashes of edits are replaced by the word
// that there is one, which is an error of that field alone.
func dataOf(e *store.Event) (d history.Data) {
	switch {
	case len(e.Data) == 0, e.Type == store.ItemCompleted:
		// Of an item that was done the data is a hash.
	default:
		_ = json.Unmarshal(e.Data, &d)
	}
	return d
}

func messageOf(d *history.Data) string {
	if d.Error == nil {
		return ""
	}
	return d.Error.Message
}

func notesOf(d *history.Data) []Note {
	if len(d.Notes) == 0 {
		return nil
	}
	notes := make([]Note, 0, len(d.Notes))
	for k, v := range d.Notes {
		notes = append(notes, Note{k, string(v)})
	}
	slices.SortFunc(notes, func(a, b Note) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return notes
}

// kindOf says what sort of call an event belongs to.
func kindOf(e *store.Event, d *history.Data) Kind {
	switch e.Type {
	case store.TimerSet, store.TimerFired:
		return Timer
	case store.WaitRequested, store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		switch {
		case d.Prompt != "":
			return Approval
		case d.Kind != "":
			return Request
		}
		return Wait
	case store.ChildStarted, store.ChildFinished:
		return Child
	case store.ItemCompleted, store.ItemFailed:
		return Item
	case store.FirstWon:
		return First
	case store.Published:
		return Publish
	case store.AttributesSet:
		return Attrs
	}
	switch d.Kind {
	case history.CallMap:
		return Map
	case history.CallGo:
		return Branch
	case history.CallChild:
		return Child
	}
	return Step
}
