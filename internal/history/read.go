package history

import (
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/store"
)

// Read reads a lineage and checks it as it goes: numbers that grow, sums
// that chain wherever the event before is part of the lineage, calls without a
// gap in their scope.
func Read(runID string, events iter.Seq2[store.Event, error], sizeHint int) (*Past, error) {
	p := &Past{RunID: runID, Scopes: map[string][]*Call{}, Items: map[string]map[int]*store.Event{}, Taken: map[int64]bool{}, filing: filing{space: make([]Call, 0, sizeHint)}}
	var before end
	var sealing store.Sealing
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if p.Events == 0 {
			if first, ok, err := p.beginGeneration(&e); err != nil {
				return nil, &Damage{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its data is not readable: %w", err)}
			} else if ok {
				before = endAt(&first)
			}
		}
		if e.Seq <= before.Seq {
			return nil, &Damage{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("it comes after event %d", before.Seq)}
		}
		if e.Seq == before.Seq+1 && sealing.Seal(runID, before.Sum, &e) != e.Sum {
			return nil, &Damage{RunID: runID, Seq: e.Seq, Err: fmt.Errorf("its checksum does not fit: it, or the event before it, was changed")}
		}
		if e.Branch != before.Branch && BeginsBranch(e.Type) && e.Seq != before.Seq+1 && !isWhole(runID, &e) {
			return nil, &Damage{RunID: runID, Seq: e.Seq, Err: errFirstChanged}
		}
		if err := p.Add(&e); err != nil {
			if future := (*FutureEventError)(nil); errors.As(err, &future) {
				return nil, fmt.Errorf("run %s: event %d: %w", runID, e.Seq, err)
			}
			return nil, &Damage{RunID: runID, Seq: e.Seq, Err: err}
		}
		before = endAt(&e)
		p.Events++
	}
	p.filing.done(p.Scopes)
	if p.Events == 0 {
		return nil, &Damage{RunID: runID, Err: ErrNoHistory}
	}
	if p.Created.Seq == 0 {
		return nil, &Damage{RunID: runID, Err: fmt.Errorf("the history does not begin with %s", store.WorkflowCreated)}
	}
	p.Head, p.LastAt, p.Steps = before.head, before.at, before.steps
	return p, nil
}

// end is what the next event has to follow.
type end struct {
	head
	at    store.Time
	steps int32
}

func endAt(e *store.Event) end {
	return end{head{Seq: e.Seq, Sum: e.Sum, Epoch: e.Epoch, Branch: e.Branch}, e.At, e.Steps}
}

// PastOf reads the events of a lineage; see Read.
func PastOf(id string, events []store.Event) (*Past, error) {
	return Read(id, func(yield func(store.Event, error) bool) {
		for i := range events {
			if !yield(events[i], nil) {
				return
			}
		}
	}, len(events))
}

// ErrNoHistory: only the row of the run is left.
var ErrNoHistory = errors.New("it has no event, and can neither be resumed nor repaired: delete what is left of it, and import a copy if there is one")

var errFirstChanged = errors.New("its checksum does not fit: it was changed")

// A Damage says why a history cannot be believed.
type Damage struct {
	RunID string
	Seq   int64 // of the event; 0: unknown
	Err   error
}

func (d *Damage) Error() string { return fmt.Sprintf("run %s, event %d: %v", d.RunID, d.Seq, d.Err) }

func (d *Damage) Unwrap() error { return d.Err }
