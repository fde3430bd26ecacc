package durable

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Approval is a wait for a person that has not been answered yet.
type Approval struct {
	RunID    string
	Workflow string
	Key      string     // of the wait
	Name     string     // under which it was asked for
	Prompt   string     // what the person is asked
	Answer   string     // the signal name that answers this wait and no other; see WaitKey
	AskedAt  store.Time // when it was first asked
	Until    store.Time // when it ends by itself; 0: never
	Seq      int64      // of wait_requested

	// Sample is the JSON of the zero value of what the workflow waits for; nil:
	// not known.
	Sample json.RawMessage
}

// asked returns the open questions of a run to people, except those whose answer is
// in the inbox and not taken yet.
func (e *Engine) asked(ctx context.Context, row *store.Run) ([]history.Asked, error) {
	h, err := e.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", row.ID, storeError(err))
	}
	p, err := readPast(row.ID, h.Events, 16)
	if err != nil {
		return nil, err
	}
	waits, err := history.OpenWaits(h)
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", row.ID, storeError(err))
	}
	open, err := history.AskedBy(p, &h.Run, waits, h.Inbox)
	return open, damaged(err)
}

// readsAsItLooks reports whether only JSON of the same kind as the zero value of t
// can be a t. A type that reads JSON itself may accept several kinds.
func readsAsItLooks(t reflect.Type) bool {
	return !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// Verdict makes the value that answers an approval with yes or no, in the form that
// the workflow waits for. A boolean is the answer itself. In an object the answer
// is the boolean field Approved (or approve, accepted, accept, ok, yes, in any
// case); by goes into a text field of that name (or user, who), and reason into one
// of that name (or comment, note, message). If the form of the answer cannot be
// told, the error matches ErrInvalid and says what the answer looks like; give it
// in full then.
func (a Approval) Verdict(approved bool, by, reason string) (json.RawMessage, error) {
	switch payload.KindOfJSON(a.Sample) {
	case "a boolean":
		return json.Marshal(approved)
	case "an object":
		var fields map[string]any
		if err := json.Unmarshal(a.Sample, &fields); err != nil {
			break
		}
		decided := false
		for name, zero := range fields {
			switch folded := strings.ToLower(name); zero.(type) {
			case bool:
				switch folded {
				case "approved", "approve", "accepted", "accept", "ok", "yes":
					fields[name], decided = approved, true
				}
			case string:
				switch folded {
				case "by", "user", "who":
					fields[name] = by
				case "reason", "comment", "note", "message":
					fields[name] = reason
				}
			}
		}
		if decided {
			return json.Marshal(fields)
		}
	case "nothing":
		return nil, fmt.Errorf("durable: run %s: what %s waits for is not known: give the answer as a value: %w", a.RunID, a.Key, ErrInvalid)
	}
	return nil, fmt.Errorf("durable: run %s: %s waits for more than yes or no: give the answer as a value like %s: %w", a.RunID, a.Key, a.Sample, ErrInvalid)
}
