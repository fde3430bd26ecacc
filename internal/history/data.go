package history

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

// What events say in their data has Go types, each for the events that play one part: the same type
// is encoded where an event is recorded and decoded where it is read. A field whose value is zero is
// not stored.

// Said is any of these types.
type Said interface {
	Beginning | Claim | Continued | End | Stop | Act | Recovery | Cancelling | Marker |
		Begun | StepEnd | Progress | ItemEnd | Timer | WaitBegun | WaitEnd | ChildBegun | ChildEnd | Won | Publication | AttributeSet
}

// blank returns an empty value of what events of type t say, nil for a type that says nothing or
// that this program does not know. It is the only place that tells which events say what.
func blank(t store.Type) any {
	switch t {
	case store.WorkflowCreated:
		return new(Beginning)
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
// generation if it names that.
func Of[T Said](e *store.Event) (T, error) {
	d, ok := blank(e.Type).(*T)
	if !ok && e.Type == store.WorkflowStarted {
		d, ok = any(new(Beginning)).(*T)
	}
	if !ok {
		var none T
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

// Error is an error as the history keeps it: its message, and those of
// the errors it wraps.
type Error struct {
	Message  string          `json:"message"`
	Sentinel string          `json:"sentinel,omitempty"`
	Type     string          `json:"type,omitempty"`
	Value    json.RawMessage `json:"value,omitempty"`
	Within   string          `json:"within,omitempty"` // registered types in the value
	// Go is the concrete type of an error that is not registered. With the
	// message it is what errors.Is goes by.
	Go        string   `json:"go,omitempty"`
	Permanent bool     `json:"permanent,omitempty"` // of the outermost only
	Causes    []*Error `json:"causes,omitempty"`
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

// Data is what events say for which no type is decoded yet; every field stands in the
// events named behind it.
type Data struct {
	Error       *Error                     `json:"error,omitempty"`       // attempt_failed, step_failed, workflow_failed, workflow_interrupted
	NextAt      store.Time                 `json:"next_at,omitempty"`     // attempt_failed: when the next one may begin
	Max         int                        `json:"max,omitempty"`         // attempt_failed, step_failed: attempts allowed
	Notes       map[string]json.RawMessage `json:"notes,omitempty"`       // attempt_failed, step_failed, step_completed
	Input       string                     `json:"input,omitempty"`       // step events: hash of WithInput
	Seed        string                     `json:"seed,omitempty"`        // workflow_created, workflow_started of a later generation
	MaxPayload  int                        `json:"max_payload,omitempty"` // the same: Options.MaxPayload
	Declared    []string                   `json:"declared,omitempty"`    // the same: names given to Steps
	Executor    string                     `json:"executor,omitempty"`    // claim events
	Build       string                     `json:"build,omitempty"`       // the same: of the program that claims
	Segment     string                     `json:"segment,omitempty"`     // the same: trace context of the segment that begins with it
	Code        string                     `json:"code,omitempty"`        // workflow_interrupted, workflow_failed
	Reason      string                     `json:"reason,omitempty"`      // the same
	Kind        CallKind                   `json:"kind,omitempty"`        // outcome of a branch or a Map, which are no steps
	Items       int                        `json:"items,omitempty"`       // outcome of a Map, and of its items: how many it had
	Child       string                     `json:"child,omitempty"`       // child_started: its run id
	Chosen      bool                       `json:"chosen,omitempty"`      // the same: the workflow has given it that id
	Evaded      bool                       `json:"evaded,omitempty"`      // the same: its derived id was that of another run
	Abandon     bool                       `json:"abandon,omitempty"`     // child_started: it outlives its parent
	Status      store.Status               `json:"status,omitempty"`      // child_finished
	Name        string                     `json:"name,omitempty"`        // wait_requested: of the signal; published: the key
	Prompt      string                     `json:"prompt,omitempty"`      // wait_requested
	Until       store.Time                 `json:"until,omitempty"`       // timer_set, wait_requested: when it ends by itself
	Message     int64                      `json:"message,omitempty"`     // signal_received, child_finished, cancel_received: its number in the inbox
	Recoverable *bool                      `json:"recoverable,omitempty"` // workflow_failed
	Headers     map[string]string          `json:"headers,omitempty"`     // workflow_created
	Deadline    store.Time                 `json:"deadline,omitempty"`    // workflow_created: when the run is stopped
	Exclusive   []string                   `json:"exclusive,omitempty"`   // workflow_created: keys it holds until it ends
	Attempts    int                        `json:"attempts,omitempty"`    // item_failed: of the step whose error it is
	Attributes  map[string]string          `json:"attributes,omitempty"`  // workflow_created, attributes_set: the whole set
	Around      string                     `json:"around,omitempty"`      // workflow_created: trace context around the span of the start
	BeganAt     int64                      `json:"began_at,omitempty"`    // workflow_created: when that span began, in nanoseconds
	Linked      string                     `json:"linked,omitempty"`      // workflow_created of a fork: trace context of the start it is linked to
	Span        string                     `json:"span,omitempty"`        // step_started of a Map: trace context of its span
	Baggage     string                     `json:"baggage,omitempty"`     // workflow_created: W3C baggage of the start
	Request     string                     `json:"request,omitempty"`     // signal_received by AwaitRequest: id of the message
	Reply       string                     `json:"reply,omitempty"`       // published: id of the request it answers
	Generation  int32                      `json:"generation,omitempty"`  // workflow_continued, workflow_started: the one that begins
	Inbox       int64                      `json:"inbox,omitempty"`       // workflow_started: last message before the generation
	Pending     []int64                    `json:"pending,omitempty"`     // the same: messages up to it that were not taken
	Sum         uint32                     `json:"sum,omitempty"`         // the same: sum of the event before
	Environment json.RawMessage            `json:"environment,omitempty"` // workflow_created, workflow_started of a later generation
	Slot        string                     `json:"slot,omitempty"`        // progress_saved: the name it was given
	Once        bool                       `json:"once,omitempty"`        // step_started: the body must not run twice
	Probation   bool                       `json:"probation,omitempty"`   // step_started: it says no more than that a body begins
	FromBranch  int32                      `json:"from_branch,omitempty"` // jump_activated, edited: the branch that was left
	ToBranch    int32                      `json:"to_branch,omitempty"`   // jump_requested, jump_activated, edited: the new branch
	Cutoff      int64                      `json:"cutoff,omitempty"`      // the same: the last event that is kept
	By          string                     `json:"by,omitempty"`          // the same: who asked for it
	Reset       []string                   `json:"reset,omitempty"`       // failures_reset, jump_activated, edited: calls that count as not ended
	Anew        map[string]int32           `json:"anew,omitempty"`        // jump_activated, edited, workflow_recovered: calls that were undone and are made again, and from which branch on
	Lifted      int64                      `json:"lifted,omitempty"`      // jump_activated: cancels up to this message count no more
	Fork        *Fork                      `json:"fork,omitempty"`        // workflow_created of a fork
	Beside      bool                       `json:"beside,omitempty"`      // wait_requested: others of the run went on
	Version     string                     `json:"version,omitempty"`     // workflow_recovered, claim events: what it is pinned to from now on
	Sample      json.RawMessage            `json:"sample,omitempty"`      // wait_requested with a prompt: zero value of what is waited for
	Cut         *Cut                       `json:"cut,omitempty"`         // first event of a branch that is no generation
	Run         *Identity                  `json:"run,omitempty"`         // workflow_created, workflow_started of a later generation
	Again       bool                       `json:"again,omitempty"`       // outcome of a branch or an item: its function is replayed all the same

	Stopped      map[string]int32 `json:"stopped,omitempty"`       // first event of the undoing: behind which call of each scope its context had ended
	StoppedWaits map[string]int32 `json:"stopped_waits,omitempty"` // the same: and behind how many waits after that call
	Undoes       []string         `json:"undoes,omitempty"`        // the same: the call that each compensation undoes, in the order in which they run; empty: none
	Late         *bool            `json:"late,omitempty"`          // the same, of a run with a deadline: whether that had stopped it

	PreviousBranch *int32   `json:"previous_branch,omitempty"` // workflow_recovered
	NewBranch      *int32   `json:"new_branch,omitempty"`      // the same
	CutoffEvent    int64    `json:"cutoff_event,omitempty"`    // the same
	Force          bool     `json:"force,omitempty"`           // claim events, workflow_interrupted by Resume: match by name from here on
	Host           string   `json:"host,omitempty"`            // claim events: where the process runs, beside its Name
	PID            int      `json:"pid,omitempty"`             // the same
	Item           string   `json:"item,omitempty"`            // first event in the scope of a Map item: hash of the item
	Uncalled       []string `json:"uncalled,omitempty"`        // end of a run matched by name: recorded calls that were not made
}

// Encode returns d as an event keeps it; nil if it says nothing.
func (d *Data) Encode() []byte { return encode(d) }

// DataOf returns what the data of an event says. The error says that it is not JSON of
// this form.
func DataOf(e *store.Event) (Data, error) {
	var d Data
	err := read(e, &d)
	return d, err
}
