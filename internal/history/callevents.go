package history

import (
	"encoding/json"

	"github.com/holdfast-dev/holdfast/store"
)

// A Preface is what the first event in a scope says in addition to its own data: in the
// scope of a Map item, which item it is; in the scope of the compensations, with what the
// undoing begins. The scope records it in front of the rest.
type Preface struct {
	Stopped      map[string]int32 `json:"stopped,omitempty"`       // after which call of each scope its context had ended
	StoppedWaits map[string]int32 `json:"stopped_waits,omitempty"` // and after how many waits after that call
	Undoes       []string         `json:"undoes,omitempty"`        // the call that each compensation undoes, in the order in which they run; empty: none
	Late         *bool            `json:"late,omitempty"`          // for a run with a deadline: whether that had stopped it
	Item         string           `json:"item,omitempty"`          // hash of the Map item
}

func (p *Preface) preface() *Preface { return p }

// Begun is what step_started says: the body of a step is about to run, or a branch or a Map begins.
type Begun struct {
	Input     string   `json:"input,omitempty"`     // hash of WithInput
	Kind      CallKind `json:"kind,omitempty"`      // of a branch or a Map
	Span      string   `json:"span,omitempty"`      // of a Map: trace context of its span
	Once      bool     `json:"once,omitempty"`      // the body must not run twice
	Probation bool     `json:"probation,omitempty"` // it says only that a body begins
	Preface
}

// A StepEnd is how an attempt of a step, or all of them, ended: attempt_failed, step_failed,
// step_completed. The last two also end a branch, a Map, and a child that could not be started.
type StepEnd struct {
	Error  *Error                     `json:"error,omitempty"`
	NextAt store.Time                 `json:"next_at,omitempty"` // attempt_failed: when the next one may begin
	Max    int                        `json:"max,omitempty"`     // attempts allowed
	Notes  map[string]json.RawMessage `json:"notes,omitempty"`
	Input  string                     `json:"input,omitempty"`  // hash of WithInput
	Reason string                     `json:"reason,omitempty"` // step_failed: why there is no further attempt
	Kind   CallKind                   `json:"kind,omitempty"`   // of anything but a step
	Items  int                        `json:"items,omitempty"`  // of a Map: how many it had
	Again  bool                       `json:"again,omitempty"`  // of a branch: its function is replayed nevertheless
	Preface
}

// Progress is what progress_saved says.
type Progress struct {
	Input string `json:"input,omitempty"` // hash of WithInput
	Slot  string `json:"slot,omitempty"`  // the name it was given
	Preface
}

// An ItemEnd is how an item of a Map ended: item_completed, item_failed.
type ItemEnd struct {
	Error    *Error `json:"error,omitempty"`
	Input    string `json:"input,omitempty"`    // hash of the item
	Items    int    `json:"items,omitempty"`    // how many the Map had
	Attempts int    `json:"attempts,omitempty"` // item_failed: of the step whose error it is
	Again    bool   `json:"again,omitempty"`    // its function is replayed nevertheless
}

// A Timer is what timer_set says; timer_fired says nothing more.
type Timer struct {
	Until store.Time `json:"until,omitempty"`
	Preface
}

// WaitBegun is what wait_requested says.
type WaitBegun struct {
	Kind   CallKind        `json:"kind,omitempty"`   // of a wait for a request
	Name   string          `json:"name,omitempty"`   // of the signal
	Prompt string          `json:"prompt,omitempty"` // empty: no person is asked
	Until  store.Time      `json:"until,omitempty"`  // when it ends by itself
	Beside bool            `json:"beside,omitempty"` // other goroutines of the run went on
	Sample json.RawMessage `json:"sample,omitempty"` // zero value of what is waited for
	Preface
}

// A WaitEnd is how a wait ended: signal_received, wait_timed_out, wait_closed.
type WaitEnd struct {
	Error   *Error   `json:"error,omitempty"`   // why it was closed, or why what was received cannot be used
	Kind    CallKind `json:"kind,omitempty"`    // of a wait for a request
	Message int64    `json:"message,omitempty"` // number in the inbox of the message that it has taken
	Request string   `json:"request,omitempty"` // id of a request that was taken
	Preface
}

// ChildBegun is what child_started says.
type ChildBegun struct {
	Child   string `json:"child,omitempty"`   // its run id
	Chosen  bool   `json:"chosen,omitempty"`  // by the workflow
	Evaded  bool   `json:"evaded,omitempty"`  // the id that was derived for it belonged to another run
	Abandon bool   `json:"abandon,omitempty"` // it outlives its parent
	Preface
}

// A ChildEnd is what child_finished says: the outcome that a child told its parent.
type ChildEnd struct {
	Error       *Error       `json:"error,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Status      store.Status `json:"status,omitempty"`
	Name        string       `json:"name,omitempty"`    // of its workflow
	Message     int64        `json:"message,omitempty"` // number of the message that told it; 0: it was read from the log of the child
	Recoverable *bool        `json:"recoverable,omitempty"`
	Preface
}

// Won is what first_won says: which of several branches has ended first.
type Won struct {
	Winner int `json:"winner,omitempty"` // its index among them
	Preface
}

// A Publication is what published says: a value under a key, or the answer to a request.
type Publication struct {
	Error *Error   `json:"error,omitempty"` // the answer is a refusal
	Kind  CallKind `json:"kind,omitempty"`  // of an answer
	Name  string   `json:"name,omitempty"`  // the key, or that of the request
	Reply string   `json:"reply,omitempty"` // id of the request it answers
	Preface
}

// Publishes reports whether p publishes a value under key. An answer to a request does not.
func (p *Publication) Publishes(key string) bool { return p.Kind == "" && p.Name == key }

// An AttributeSet is what attributes_set says.
type AttributeSet struct {
	Error      *Error            `json:"error,omitempty"`      // why the attributes stay as they were
	Attributes map[string]string `json:"attributes,omitempty"` // the whole set from now on
	Preface
}

// messageSaid returns the message that the end of a call has taken; 0: none.
func messageSaid(said any) int64 {
	switch d := said.(type) {
	case *WaitEnd:
		return d.Message
	case *ChildEnd:
		return d.Message
	}
	return 0
}

// kindSaid returns the kind of call that an event names, if that does not follow from its
// type.
func kindSaid(said any) CallKind {
	switch d := said.(type) {
	case *Begun:
		return d.Kind
	case *StepEnd:
		return d.Kind
	case *WaitBegun:
		return d.Kind
	case *WaitEnd:
		return d.Kind
	case *Publication:
		return d.Kind
	}
	return ""
}
