package history

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// What events say in their data has a Go type for each part that events play, encoded where an event
// is recorded and decoded where it is read. Zero fields are not stored.

// Said is any of these types.
type Said interface {
	Beginning | Replacement | Claim | Continued | End | Stop | Act | Recovery | Cancelling | Marker |
		Begun | StepEnd | Progress | ItemEnd | Timer | WaitBegun | WaitEnd | ChildBegun | ChildEnd | Won | Publication | AttributeSet
}

// blank returns an empty value of what events of type t say, nil for a type that says nothing or
// that this program does not know. It is the only place that tells which events say what.
func blank(t store.Type) any {
	switch t {
	case store.WorkflowCreated:
		return new(Beginning)
	case store.InputReplaced:
		return new(Replacement)
	case store.WorkflowStarted, store.RunResumed, store.RunClaimed:
		return new(Claim) // workflow_started of a later generation: Beginning
	case store.WorkflowContinued:
		return new(Continued)
	case store.WorkflowCompleted, store.WorkflowFailed, store.WorkflowCancelled:
		return new(End)
	case store.WorkflowInterrupted, store.WorkflowPaused, store.WorkflowUnpaused:
		return new(Stop)
	case store.FailuresReset, store.JumpRequested, store.JumpActivated, store.Edited:
		return new(Act)
	case store.WorkflowRecovered:
		return new(Recovery)
	case store.CancelReceived:
		return new(Cancelling)
	case store.Patched:
		return new(Marker)
	case store.StepStarted:
		return new(Begun)
	case store.AttemptFailed, store.StepFailed, store.StepCompleted:
		return new(StepEnd)
	case store.ProgressSaved:
		return new(Progress)
	case store.ItemCompleted, store.ItemFailed:
		return new(ItemEnd)
	case store.TimerSet, store.TimerFired:
		return new(Timer)
	case store.WaitRequested:
		return new(WaitBegun)
	case store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		return new(WaitEnd)
	case store.ChildStarted:
		return new(ChildBegun)
	case store.ChildFinished:
		return new(ChildEnd)
	case store.FirstWon:
		return new(Won)
	case store.Published:
		return new(Publication)
	case store.AttributesSet:
		return new(AttributeSet)
	}
	return nil
}

// Of returns what e says. The error says that its data is not JSON of this form, which is then
// read as far as it goes, or that events of its type do not say what T holds. Any
// workflow_started may be asked for both a Claim and a Beginning, which is one of a later
// generation if it names that. The zero event, of a run that has lost its first, says nothing.
func Of[T Said](e *store.Event) (T, error) {
	d, ok := blank(e.Type).(*T)
	if !ok && e.Type == store.WorkflowStarted {
		d, ok = any(new(Beginning)).(*T)
	}
	if !ok {
		var none T
		if e.Type == "" {
			return none, nil
		}
		return none, fmt.Errorf("an event of type %s does not say what %T holds", e.Type, none)
	}
	err := read(e, d)
	return *d, err
}

// Decode returns a pointer to what e says, for callers that take events of any type; nil for a type
// that says nothing or is not known. A workflow_started says a Beginning if it begins a later
// generation, and else a Claim. The error says that the data is not JSON of this form; what could be
// read of it is returned all the same.
func Decode(e *store.Event) (said any, err error) {
	if e.Type == store.WorkflowStarted {
		if d, err := Of[Beginning](e); d.Generation > 0 {
			return &d, err
		}
	}
	if said = blank(e.Type); said == nil {
		return nil, nil
	}
	return said, read(e, said)
}

func read(e *store.Event, d any) error {
	if len(e.Data) == 0 {
		return nil
	}
	return json.Unmarshal(e.Data, d)
}

// Encode returns d as an event keeps it; nil if it says nothing.
func Encode[T Said](d *T) []byte { return encode(d) }

func encode(d any) []byte {
	b, err := json.Marshal(d)
	if err != nil {
		// Every field is made of strings, numbers and JSON that was checked
		// when it came in.
		panic(fmt.Sprintf("durable: event data cannot be encoded: %v", err))
	}
	if string(b) == "{}" {
		return nil
	}
	return b
}

// A Why is the reason or the error that an event of any type may give.
type Why struct {
	Error  *Error `json:"error"`
	Reason string `json:"reason"`
}

// WhyOf returns why e happened, whatever its type is, as far as it says so.
func WhyOf(e *store.Event) (w Why, err error) {
	err = read(e, &w)
	return w, err
}

// WithField replaces one field of the data of an event, and keeps the others.
func WithField(data []byte, field string, value json.RawMessage) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	fields[field] = value
	return json.Marshal(fields)
}

// prefaceOf reads the preface of an event whose type may be damaged.
func prefaceOf(e *store.Event) (p Preface, err error) {
	err = read(e, &p)
	return p, err
}
