package outline

import (
	"encoding/json"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// data is what the outline reads of an event's data; docs/checkpoint-format.md
// says what the fields mean.
type data struct {
	Error       *failureData               `json:"error"`
	NextAt      store.Time                 `json:"next_at"`
	Max         int                        `json:"max"`
	Notes       map[string]json.RawMessage `json:"notes"`
	Declared    []string                   `json:"declared"`
	Executor    string                     `json:"executor"`
	Host        string                     `json:"host"`
	PID         int                        `json:"pid"`
	Resumed     bool                       `json:"resumed"`
	Code        string                     `json:"code"`
	Reason      string                     `json:"reason"`
	Kind        string                     `json:"kind"`
	Items       int                        `json:"items"`
	Child       string                     `json:"child"`
	Status      store.Status               `json:"status"`
	Name        string                     `json:"name"`
	Prompt      string                     `json:"prompt"`
	Until       store.Time                 `json:"until"`
	Recoverable *bool                      `json:"recoverable"`
	Attempts    int                        `json:"attempts"`
	Generation  int32                      `json:"generation"`
	Slot        string                     `json:"slot"`
	Once        bool                       `json:"once"`
	By          string                     `json:"by"`
	ToBranch    int32                      `json:"to_branch"`
	NewBranch   int32                      `json:"new_branch"`
	Cutoff      int64                      `json:"cutoff"`
	Reset       []string                   `json:"reset"`
	Fork        *struct {
		From   string                     `json:"from"`
		Edits  map[string]json.RawMessage `json:"edits"` // by key: a hash, or over HTTP that there is one
		By     string                     `json:"by"`
		Reason string                     `json:"reason"`
	} `json:"fork"`
}

// failureData is an error as it is recorded, with what it wraps.
type failureData struct {
	Message   string         `json:"message"`
	Permanent bool           `json:"permanent"`
	Sentinel  string         `json:"sentinel"`
	Type      string         `json:"type"`
	Value     failureOf      `json:"value"`
	Causes    []*failureData `json:"causes"`
}

// failureOf says of an error of the engine which call it is of.
type failureOf struct {
	Key   string `json:"key"`
	RunID string `json:"run_id"`
}

// UnmarshalJSON takes what it knows: the fields of other errors are the user's.
func (f *failureOf) UnmarshalJSON(b []byte) error {
	type plain failureOf
	var p plain
	if json.Unmarshal(b, &p) == nil {
		*f = failureOf(p)
	}
	return nil
}

// goexit reports whether the function ended its goroutine instead of returning.
func (f *failureData) goexit() bool {
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

// calls are those that an error is of, the outermost first: of a Map that failed by
// an item whose step failed, the Map, the item and the step.
func (f *failureData) calls() []failureOf {
	if f == nil {
		return nil
	}
	var list []failureOf
	switch f.Type {
	case "durable.StepError", "durable.MapError", "durable.ItemError":
		list = append(list, failureOf{Key: f.Value.Key})
	case "durable.RunError": // of a child
		list = append(list, failureOf{RunID: f.Value.RunID})
	}
	for _, c := range f.Causes {
		if len(list) < 16 {
			list = append(list, c.calls()...)
		}
	}
	return list
}

// dataOf reads what an event says. What cannot be read says nothing: a verdict
// of damage is for durable.Verify.
func dataOf(e *store.Event) (d data) {
	switch {
	case len(e.Data) == 0, e.Type == store.ItemCompleted:
		// Of an item that was done the data is a hash.
	default:
		_ = json.Unmarshal(e.Data, &d)
	}
	return d
}

func (d *data) message() string {
	if d.Error == nil {
		return ""
	}
	return d.Error.Message
}

func (d *data) notes() []Note {
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
func kindOf(e *store.Event, d *data) Kind {
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
	case "map":
		return Map
	case "branch":
		return Branch
	case "child run":
		return Child
	}
	return Step
}
