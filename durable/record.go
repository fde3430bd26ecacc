package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/store"
)

// A record is what the history holds of one durable call.
type record struct {
	key      string
	outcome  store.Event // step_completed or step_failed; Seq 0: none yet
	failures []store.Event
	input    string     // hash of WithInput, as recorded with the first event
	began    store.Time // of step_started; 0: not recorded
	lastAt   store.Time
}

// past is a run's lineage, taken apart by scope and call. It is made once, when
// a run is loaded, and then only read.
type past struct {
	created store.Event // workflow_created
	scopes  map[string][]*record
	space   []record // room for the next records
	head    logHead
	lastAt  store.Time
	steps   int32
	events  int
}

// eventData is what the Data of an event says; every field stands in the
// events named behind it.
type eventData struct {
	Error       *errorRecord               `json:"error,omitempty"`       // attempt_failed, step_failed, workflow_failed, workflow_interrupted
	NextAt      store.Time                 `json:"next_at,omitempty"`     // attempt_failed: when the next one may begin
	Max         int                        `json:"max,omitempty"`         // attempt_failed, step_failed: attempts allowed
	Notes       map[string]json.RawMessage `json:"notes,omitempty"`       // attempt_failed, step_failed, step_completed
	Input       string                     `json:"input,omitempty"`       // step events: hash of WithInput
	Seed        string                     `json:"seed,omitempty"`        // workflow_created
	Declared    []string                   `json:"declared,omitempty"`    // workflow_created: names given to Steps
	Executor    string                     `json:"executor,omitempty"`    // claim events
	Resumed     bool                       `json:"resumed,omitempty"`     // the same: by a call of Resume
	Code        string                     `json:"code,omitempty"`        // workflow_interrupted, workflow_failed
	Reason      string                     `json:"reason,omitempty"`      // the same
	Prompt      string                     `json:"prompt,omitempty"`      // wait_requested
	Recoverable *bool                      `json:"recoverable,omitempty"` // workflow_failed
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
	p := &past{scopes: map[string][]*record{}, space: make([]record, 0, sizeHint)}
	var before store.Event
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if e.Seq <= before.Seq {
			return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("it comes after event %d", before.Seq)}
		}
		if e.Seq == before.Seq+1 && store.Seal(runID, before.Sum, &e) != e.Sum {
			return nil, &DamagedError{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its checksum does not fit: it, or the event before it, was changed")}
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

// take files one event.
func (p *past) take(e *store.Event) error {
	switch e.Type {
	case store.WorkflowCreated:
		p.created = *e
		return nil
	case store.StepStarted, store.StepCompleted, store.StepFailed, store.AttemptFailed, store.ProgressSaved:
	default:
		if !e.Type.Known() {
			return &futureEventError{e.Type}
		}
		return nil
	}
	rec, err := p.find(e)
	if err != nil {
		return err
	}
	rec.lastAt = e.At
	if len(e.Data) > 0 && rec.input == "" {
		d, err := dataOf(e)
		if err != nil {
			return fmt.Errorf("its data is not readable: %w", err)
		}
		rec.input = d.Input
	}
	switch e.Type {
	case store.StepStarted:
		rec.began = e.At
	case store.StepCompleted, store.StepFailed:
		rec.outcome = *e
	case store.AttemptFailed:
		rec.failures = append(rec.failures, *e)
	}
	return nil
}

// find returns the record an event belongs to, a new one for the first event of
// a call. Its ordinal says where in the scope it stands.
func (p *past) find(e *store.Event) (*record, error) {
	path := scopeOfKey(e.Key)
	calls := p.scopes[path]
	switch n := int(e.Ordinal); {
	case n >= 1 && n <= len(calls):
		if rec := calls[n-1]; rec.key == e.Key {
			return rec, nil
		}
		return nil, fmt.Errorf("%s is call %d of its scope, which was %s before", e.Key, n, calls[n-1].key)
	case n != len(calls)+1:
		return nil, fmt.Errorf("%s is call %d of its scope, after %d calls", e.Key, n, len(calls))
	}
	if len(p.space) == cap(p.space) {
		// A new block: records that were handed out stay where they are.
		p.space = make([]record, 0, 256)
	}
	p.space = append(p.space, record{key: e.Key})
	rec := &p.space[len(p.space)-1]
	p.scopes[path] = append(calls, rec)
	return rec, nil
}
