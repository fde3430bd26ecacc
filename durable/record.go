package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/internal/envelope"
	"github.com/holdfast-dev/holdfast/store"
)

// A record is what the history holds of one durable call.
type record struct {
	key      string
	kind     callKind
	seq      int64       // number of its first event
	once     bool        // its body must not run twice (Once)
	fresh    bool        // its failures were reset, and nothing is recorded since
	opened   bool        // its beginning is recorded: timer_set, wait_requested, ...
	child    string      // run id of a child
	abandon  bool        // of a child: it outlives its parent
	derived  bool        // of a child: its id was derived, and not chosen by the workflow
	again    bool        // of a branch that has ended: its function is replayed; see replayEnded
	openedAt store.Time  // of its first event, if that is its beginning
	until    store.Time  // of a timer or a wait: when it ends by itself
	outcome  store.Event // what ended it; Seq 0: nothing yet
	failures []store.Event
	progress *store.Event            // the last progress_saved without a name,
	slots    map[string]*store.Event // and the last one of each name
	settled  int64                   // number of the last event that says how an attempt ended
	input    string                  // hash of WithInput, as recorded with the first event
	item     string                  // of the first call of an item: hash of the item
	began    store.Time              // of step_started; 0: not recorded
	lastAt   store.Time
}

// past is a run's lineage, taken apart by scope and call. It is made once, when
// a run is loaded, and then only read.
type past struct {
	runID        string
	created      store.Event // workflow_created, or workflow_started of a later generation
	scopes       map[string][]*record
	items        map[string]map[int]*store.Event // outcomes of Map items, by key of the Map
	taken        map[int64]bool                  // messages that were consumed
	waits        map[string]*mailWait            // asked for and neither answered nor closed, by key of the call
	stopped      map[string]int32                // behind which call the context of each scope, by path, had ended when the undoing began
	stoppedWaits map[string]int32                // and behind how many waits after that call
	undoes       []string                        // the call that each compensation undoes, in the order in which they run; nil: not said
	anew         map[string]int32                // calls that are made again after they were undone; see anewKey
	undoneAt     store.Time                      // of the first event of the undoing; 0: it has not begun
	late         *bool                           // whether the deadline had stopped the run by then; nil: not said
	answers      map[string]string               // keys of the calls that answered a request, by the request's id
	cancel       *store.Event                    // cancel_received
	inbox        int64                           // messages up to this number were taken by earlier generations,
	carried      []int64                         // but for these, in order
	pause        pauseState                      // whether it is paused
	branch       int32                           // of the event before
	cuts         []store.Branch                  // as the events say that begin them
	claims       []claimMark                     // who had it from where on, one for each change of code
	repinned     string                          // version it was pinned to since the generation began
	paused       int64                           // requests to pause up to this number were carried out, or are void
	lifted       int64                           // cancels up to this number were taken back
	resetAt      map[string]int64                // calls that were reset, and by which event; nil: none
	attributes   *map[string]string              // as last set; nil: not since the start
	space        []record                        // room for the next records
	head         logHead
	lastAt       store.Time
	steps        int32
	events       int
	patches      map[string][]*patch // markers, by path of the scope
	spans        map[string]string   // trace contexts of Maps, by key; nil: none
	begun        map[string]int      // of Maps with items that have recorded calls: one more than the highest
	forced       bool                // an operator has it matched by name

	// The last segment of its trace, and the last one of an earlier claim.
	segment, segmentBefore segmentMark
}

// eventData is what the Data of an event says; every field stands in the
// events named behind it.
type eventData struct {
	Error       *errorRecord               `json:"error,omitempty"`       // attempt_failed, step_failed, workflow_failed, workflow_interrupted
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
	Resumed     bool                       `json:"resumed,omitempty"`     // the same: by a call of Resume
	Code        string                     `json:"code,omitempty"`        // workflow_interrupted, workflow_failed
	Reason      string                     `json:"reason,omitempty"`      // the same
	Kind        callKind                   `json:"kind,omitempty"`        // outcome of a branch or a Map, which are no steps
	Items       int                        `json:"items,omitempty"`       // outcome of a Map, and of its items: how many it had
	Winner      int                        `json:"winner,omitempty"`      // first_won: index of the branch
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
	Environment *Environment               `json:"environment,omitempty"` // workflow_created, workflow_started of a later generation
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
	Fork        *forkData                  `json:"fork,omitempty"`        // workflow_created of a fork
	Beside      bool                       `json:"beside,omitempty"`      // wait_requested: others of the run went on
	Version     string                     `json:"version,omitempty"`     // workflow_recovered, claim events: what it is pinned to from now on
	Sample      json.RawMessage            `json:"sample,omitempty"`      // wait_requested with a prompt: zero value of what is waited for
	Cut         *cutRecord                 `json:"cut,omitempty"`         // first event of a branch that is no generation
	Run         *identity                  `json:"run,omitempty"`         // workflow_created, workflow_started of a later generation
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
	Deprecated     bool     `json:"deprecated,omitempty"`      // patched: the marker need not be asked for
	Item           string   `json:"item,omitempty"`            // first event in the scope of a Map item: hash of the item
	Uncalled       []string `json:"uncalled,omitempty"`        // end of a run matched by name: recorded calls that were not made
}

func (d *eventData) encode() []byte {
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

func dataOf(e *store.Event) (eventData, error) {
	var d eventData
	if len(e.Data) == 0 {
		return d, nil
	}
	err := json.Unmarshal(e.Data, &d)
	return d, err
}

// readPast reads a lineage and checks it as it goes: numbers that grow, sums
// that chain wherever the event before is part of the lineage, calls without a
// gap in their scope.
func readPast(runID string, events iter.Seq2[store.Event, error], sizeHint int) (*past, error) {
	p := &past{runID: runID, scopes: map[string][]*record{}, items: map[string]map[int]*store.Event{}, taken: map[int64]bool{}, space: make([]record, 0, sizeHint)}
	var before store.Event
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if p.events == 0 {
			if first, ok, err := p.beginGeneration(&e); err != nil {
				return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its data is not readable: %w", err)}
			} else if ok {
				before = first
			}
		}
		if e.Seq <= before.Seq {
			return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("it comes after event %d", before.Seq)}
		}
		if e.Seq == before.Seq+1 && store.Seal(runID, before.Sum, &e) != e.Sum {
			return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its checksum does not fit: it, or the event before it, was changed")}
		}
		if e.Branch != before.Branch && beginsBranch(e.Type) && e.Seq != before.Seq+1 {
			if d, err := dataOf(&e); err == nil && !d.fits(runID, &e) {
				return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: errFirstChanged}
			}
		}
		if err := p.take(&e); err != nil {
			if future := (*futureEventError)(nil); errors.As(err, &future) {
				return nil, fmt.Errorf("run %s: event %d: %w", runID, e.Seq, err)
			}
			return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: err}
		}
		before = e
		p.events++
	}
	if p.events == 0 {
		return nil, &DamagedError{RunID: runID, Err: ErrNoHistory}
	}
	if p.created.Seq == 0 {
		return nil, &DamagedError{RunID: runID, Err: fmt.Errorf("the history does not begin with %s", store.WorkflowCreated)}
	}
	p.head = logHead{seq: before.Seq, sum: before.Sum, epoch: before.Epoch, branch: before.Branch}
	p.lastAt, p.steps = before.At, before.Steps
	return p, nil
}

// futureEventError reports an event this program does not know: to pass over it
// would be to misread the history.
type futureEventError struct{ typ store.Type }

func (e *futureEventError) Error() string {
	return fmt.Sprintf("an event of type %q is from a newer version of this library: use a newer program", e.typ)
}

// roles of events, as far as reading a history goes.
type role int

const (
	roleRun   role = iota // of the run itself, or nothing a replay asks for
	roleCall              // of a durable call
	roleItem              // outcome of an item of a Map
	roleOther             // not known to this version
)

// roleOf says what an event is to a replay, and of which kind the call is that
// it belongs to.
func roleOf(t store.Type) (callKind, role) {
	switch t {
	case store.StepStarted, store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ProgressSaved:
		return callStep, roleCall
	case store.TimerSet, store.TimerFired:
		return callTimer, roleCall
	case store.WaitRequested, store.SignalReceived, store.WaitTimedOut, store.WaitClosed:
		return callWait, roleCall
	case store.ChildStarted, store.ChildFinished:
		return callChild, roleCall
	case store.FirstWon:
		return callFirst, roleCall
	case store.Published:
		return callPublish, roleCall
	case store.AttributesSet:
		return callAttributes, roleCall
	case store.ItemCompleted, store.ItemFailed:
		return callMap, roleItem
	}
	if t.Known() {
		return "", roleRun
	}
	return "", roleOther
}

// take files one event.
func (p *past) take(e *store.Event) error {
	if p.created.Seq != 0 && e.Branch != p.branch && !beginsBranch(e.Type) {
		return fmt.Errorf("branch %d begins with it, and not with the event that made the branch", e.Branch)
	}
	p.branch = e.Branch
	kind, role := roleOf(e.Type)
	switch role {
	case roleRun:
		return p.takeRun(e)
	case roleItem:
		return p.takeItem(e)
	case roleOther:
		return &futureEventError{e.Type}
	}
	d, err := dataOf(e)
	if err != nil {
		return fmt.Errorf("its data is not readable: %w", err)
	}
	if e.Type == store.AttributesSet {
		p.attributes = &d.Attributes
		if e.Key == "" {
			return nil // not set by a call of the workflow
		}
	}
	if d.Kind != "" {
		kind = d.Kind
	}
	if d.Stopped != nil {
		p.stopped, p.stoppedWaits = d.Stopped, d.StoppedWaits
	}
	if d.Undoes != nil {
		p.undoes = d.Undoes
	}
	if d.Late != nil {
		p.late = d.Late
	}
	if d.Reply != "" {
		p.answers = put(p.answers, d.Reply, e.Key)
	}
	rec, err := p.find(e, kind)
	if err != nil {
		return err
	}
	rec.lastAt, rec.fresh = e.At, false
	rec.once = rec.once || d.Once
	if rec.input == "" {
		rec.input = d.Input
	}
	if rec.item == "" {
		rec.item = d.Item
	}
	if d.Message != 0 {
		p.taken[d.Message] = true
	}
	switch e.Type {
	case store.StepStarted:
		if d.Span != "" {
			p.spans = put(p.spans, e.Key, d.Span)
		}
		if rec.began == 0 { // on probation a step may begin in several executions
			rec.began, rec.openedAt = e.At, e.At
		}
	case store.TimerSet, store.WaitRequested, store.ChildStarted:
		rec.opened, rec.openedAt, rec.until = true, e.At, d.Until
		if e.Type == store.WaitRequested {
			if p.waits == nil {
				p.waits = map[string]*mailWait{}
			}
			p.waits[e.Key] = &mailWait{key: e.Key, kind: messageKind(d.Kind), name: d.Name, plain: d.Prompt == "", asked: e.Seq}
		}
		if d.Child != "" {
			rec.child, rec.abandon = d.Child, d.Abandon
			rec.derived = derivedChild(p.runID, e, &d)
		}
	case store.AttemptFailed:
		rec.failures, rec.settled = append(rec.failures, *e), e.Seq
	case store.ProgressSaved:
		ev := *e
		slot := d.Slot
		if env, err := envelope.Open(ev.Payload); slot == "" && err == nil && env.Type == "shell.inFlight" {
			slot = "holdfast/shell" // as package shell saved it before names existed
		}
		rec.saved(slot, &ev)
	default:
		rec.outcome, rec.settled, rec.again = *e, e.Seq, d.Again
		delete(p.waits, e.Key)
	}
	return nil
}

// saved files what a body has saved of its progress.
func (rec *record) saved(slot string, ev *store.Event) {
	if slot == "" {
		rec.progress = ev
		return
	}
	if rec.slots == nil {
		rec.slots = map[string]*store.Event{}
	}
	rec.slots[slot] = ev
}

// lastSaved returns what was last saved under a name, nil if there is nothing.
func (rec *record) lastSaved(slot string) *store.Event {
	switch {
	case rec == nil:
		return nil
	case slot == "":
		return rec.progress
	}
	return rec.slots[slot]
}

// takeRun files an event of the run itself.
func (p *past) takeRun(e *store.Event) error {
	p.pause = p.pause.after(e.Type)
	if beginsBranch(e.Type) {
		if err := p.takeCut(e); err != nil {
			return err
		}
	}
	switch e.Type {
	case store.WorkflowCreated:
		p.created = *e
	case store.CancelReceived:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		ev := *e
		p.cancel = &ev
		p.taken[d.Message] = true
	case store.WorkflowPaused, store.WorkflowUnpaused, store.WorkflowInterrupted, store.WorkflowRecovered, store.FailuresReset, store.JumpActivated, store.Edited:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		p.paused, p.lifted = max(p.paused, d.Message), max(p.lifted, d.Lifted)
		p.forget(d.Reset, e.Seq)
		if d.Anew != nil {
			p.anew = d.Anew
		}
		p.forced = p.forced || d.Force
		p.repin(d.Version)
	case store.RunResumed, store.RunClaimed, store.WorkflowStarted:
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		p.forced = p.forced || d.Force
		p.repin(d.Version)
		p.markSegment(e, d.Segment)
		p.markClaim(e, &d)
	case store.Patched:
		return p.takePatch(e)
	}
	return nil
}

// takeItem files the outcome of an item of a Map, "items[17]".
func (p *past) takeItem(e *store.Event) error {
	name, n, ok := splitItem(e.Key)
	if !ok {
		return fmt.Errorf("%q is not the key of an item", e.Key)
	}
	items := p.items[name]
	if items == nil {
		items = map[int]*store.Event{}
		p.items[name] = items
	}
	ev := *e
	items[n] = &ev
	return nil
}

// find returns the record an event belongs to, a new one for the first event of
// a call. Its ordinal says where in the scope it stands.
func (p *past) find(e *store.Event, kind callKind) (*record, error) {
	path := scopeOfKey(e.Key)
	calls := p.scopes[path]
	n := int(e.Ordinal)
	if n < 1 || n > len(calls)+1 {
		return nil, fmt.Errorf("%s is call %d of its scope, after %d calls", e.Key, n, len(calls))
	}
	if n <= len(calls) {
		rec := calls[n-1]
		switch {
		case rec.key != e.Key:
			return nil, fmt.Errorf("%s is call %d of its scope, which was %s before", e.Key, n, rec.key)
		case rec.kind != kind:
			return nil, fmt.Errorf("%s is a %s, and was a %s before", e.Key, kind, rec.kind)
		}
		return rec, nil
	}
	if len(p.space) == cap(p.space) {
		// A new block: records that were handed out stay where they are.
		p.space = make([]record, 0, 256)
	}
	p.space = append(p.space, record{key: e.Key, kind: kind, seq: e.Seq})
	rec := &p.space[len(p.space)-1]
	if n == 1 && path != "" {
		p.beginItem(path)
	}
	if n == 1 && path == undoScope {
		p.undoneAt = e.At
	}
	p.scopes[path] = append(calls, rec)
	return rec, nil
}
