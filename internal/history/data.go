package history

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/store"
)

// Data is what the Data of an event says; every field stands in the
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

// encode returns d, what an event says, as the event keeps it; nil if it says nothing.
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

// DataOf returns what the data of an event says. The error says that it is not JSON of
// this form.
func DataOf(e *store.Event) (Data, error) {
	var d Data
	if len(e.Data) == 0 {
		return d, nil
	}
	err := json.Unmarshal(e.Data, &d)
	return d, err
}

// says reports whether the data of events of type t is what d holds. It is the one place
// that tells which events say what has a type of its own.
func says(t store.Type, d any) bool {
	switch d.(type) {
	case *Claim:
		return t.Claims()
	case *Marker:
		return t == store.Patched
	case *Won:
		return t == store.FirstWon
	}
	return false
}

// decode reads the data of e into d. The error says that it is not JSON of the form of
// d, or that events of this type do not say what d holds.
func decode(e *store.Event, d any) error {
	switch {
	case !says(e.Type, d):
		return fmt.Errorf("an event of type %s does not say what %T holds", e.Type, d)
	case len(e.Data) == 0:
		return nil
	}
	return json.Unmarshal(e.Data, d)
}

// Won is what first_won says: which of several branches has ended first.
type Won struct {
	Winner int `json:"winner,omitempty"` // its index among them
}

// Encode returns w as an event keeps it; nil for the branch with index 0.
func (w *Won) Encode() []byte { return encode(w) }

// WonOf returns what first_won says. The error says that its data is not JSON of this
// form, or that e is another event.
func WonOf(e *store.Event) (w Won, err error) {
	err = decode(e, &w)
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

// Fork says in the first event of a fork where it comes from.
type Fork struct {
	From string `json:"from"`         // run id
	At   int64  `json:"at,omitempty"` // as asked for; 0: all
	// Seeds are those of the runs that the copied events were recorded under,
	// oldest first: calls up to an event have drawn with them, and what is drawn
	// before they are replayed must be the same again.
	Seeds []Seed `json:"seeds,omitempty"`
	// Edits are the calls whose outcome is another one than the source has, with a
	// hash of it; By says who has made them, and Reason why.
	Edits  map[string]string `json:"edits,omitempty"`
	Reason string            `json:"reason,omitempty"`
	By     string            `json:"by,omitempty"`
}

// A Seed is that of the random draws of some of the calls of a fork.
type Seed struct {
	Seed  string `json:"seed"`
	Until int64  `json:"until"` // last event, in this run, that was recorded under it
}

// MessageData is the Data of a message.
type MessageData struct {
	Trace  string `json:"trace,omitempty"` // signal, request: context of the sender's span
	Reason string `json:"reason,omitempty"`
	Jump   bool   `json:"jump,omitempty"` // pause: asked for by a Jump, which lifts it
}

// DataOfMessage returns what the data of a message says, but for that of a child.
func DataOfMessage(m *store.Message) (d MessageData, err error) {
	if len(m.Data) > 0 {
		err = json.Unmarshal(m.Data, &d)
	}
	return d, err
}

// ChildData is the Data of the message by which a child tells its outcome.
type ChildData struct {
	Status      store.Status `json:"status"`
	Workflow    string       `json:"workflow"`
	Reason      string       `json:"reason,omitempty"`
	Recoverable bool         `json:"recoverable,omitempty"`
	Error       *Error       `json:"error,omitempty"`
	Trace       string       `json:"trace,omitempty"` // context of its last segment
	Life        store.Time   `json:"life,omitempty"`  // creation of the child; 0: its id is used once, or an earlier version has sent it
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

// SeedsOf returns with which seeds the events that a fork copies were drawn.
func (d *Data) SeedsOf(kept []store.Event) []Seed {
	if len(kept) == 0 {
		return nil
	}
	// In the fork the created event is 1, and kept[i] is i+2.
	upTo := func(seq int64) int64 {
		i, _ := slices.BinarySearchFunc(kept, seq, func(e store.Event, seq int64) int { return cmp.Compare(e.Seq, seq+1) })
		return int64(i) + 1
	}
	var seeds []Seed
	if d.Fork != nil {
		for _, s := range d.Fork.Seeds {
			seeds = append(seeds, Seed{Seed: s.Seed, Until: upTo(s.Until)})
		}
	}
	return append(seeds, Seed{Seed: d.Seed, Until: int64(len(kept)) + 1})
}

// Uint64 returns the seed as a number.
func (f *Seed) Uint64() uint64 {
	b, err := hex.DecodeString(f.Seed)
	if err != nil || len(b) != 8 {
		return 0 // checked when it was read
	}
	return binary.BigEndian.Uint64(b)
}

// NameLife makes m, the message in which row tells its outcome, one of this life.
func (d *ChildData) NameLife(row *store.Run) (id string) {
	if key, _, _ := strings.Cut(row.ParentKey, "~"); strings.HasPrefix(row.ID, row.Parent+"/"+key) {
		return row.ID
	}
	d.Life = row.CreatedAt
	return lifeID(row.ID, d.Life)
}
