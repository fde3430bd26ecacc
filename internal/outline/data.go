package outline

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/store"
)

// A cause is the call, or the run, that an error of the engine concerns.
type cause struct {
	Key   string `json:"key"`
	RunID string `json:"run_id"`
}

// causeOf only reads errors it knows: the fields of other errors belong to the user.
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

// causesOf returns the calls that an error concerns, the outermost first: if a Map failed because
// a step of an item failed, the Map, the item and the step.
func causesOf(f *history.Error) []cause {
	if f == nil {
		return nil
	}
	var list []cause
	switch f.Type {
	case "durable.StepError", "durable.MapError", "durable.ItemError":
		list = append(list, cause{Key: causeOf(f).Key})
	case "durable.RunError": // from a child
		list = append(list, cause{RunID: causeOf(f).RunID})
	}
	for _, c := range f.Causes {
		if len(list) < 16 {
			list = append(list, causesOf(c)...)
		}
	}
	return list
}

// dataOf reads the data of an event. Unreadable data counts as empty: operate.Operator.Verify
// reports damage. Over HTTP the hashes of edits are replaced by a word that only says that there
// is one, which makes only that field unreadable.
func dataOf(e *store.Event) (d history.Data) {
	switch {
	case len(e.Data) == 0, e.Type == store.ItemCompleted:
		// The data of a completed item is a hash.
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

// kindOf returns the kind of call an event belongs to.
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
