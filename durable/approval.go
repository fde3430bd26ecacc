package durable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/guard"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Approval is a wait for a person that nobody has answered yet.
type Approval struct {
	RunID    string
	Workflow string
	Key      string     // of the wait
	Name     string     // it was asked for under
	Prompt   string     // what the person is asked
	Answer   string     // the signal name that answers this wait and no other; see WaitKey
	AskedAt  store.Time // when it was asked first
	Until    store.Time // when it ends by itself; 0: never
	Seq      int64      // of wait_requested

	// Sample is the JSON of the zero value of what the workflow waits for; nil:
	// not known.
	Sample json.RawMessage
}

// Approvals returns what runs ask of people at the moment, whoever executes
// them, the runs that began to wait first before the others.
func (e *Engine) Approvals(ctx context.Context) ([]Approval, error) {
	var open []Approval
	for row, err := range e.askingRuns(ctx) {
		if err != nil {
			return nil, fmt.Errorf("durable: listing approvals: %w", storeError(err))
		}
		of, err := e.pendingApprovals(ctx, row)
		if err != nil {
			return nil, err
		}
		open = append(open, of...)
	}
	return open, nil
}

// askingRuns yields the runs whose row says that a person is asked.
func (e *Engine) askingRuns(ctx context.Context) func(func(*store.Run, error) bool) {
	return e.runsOf(ctx, store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{CodeApproval}, OldestFirst: true})
}

// announceApprovals reports the waits for a person of runs that nobody alive
// owns.
func (rc *recovery) announceApprovals(ctx context.Context, rep *Report) error {
	e := rc.eng
	live, err := e.recovery.liveExecutors(ctx)
	if err != nil {
		return err
	}
	for row, err := range e.askingRuns(ctx) {
		if err != nil {
			return fmt.Errorf("durable: recovery could not list waiting runs: %w", storeError(err))
		}
		if live[row.Owner] {
			continue
		}
		open, err := e.pendingApprovals(ctx, row)
		if err != nil {
			rep.Stuck = append(rep.Stuck, stuckOf(row, CodeDamaged, err.Error()))
			continue
		}
		for _, a := range open {
			e.log.aboutRun(slog.LevelInfo, row, "durable: approval restored", append(e.log.promptAttrs(a.Prompt), slog.String("wait", a.Key))...)
		}
		rep.Approvals = append(rep.Approvals, open...)
	}
	return nil
}

// pendingApprovals returns what a run asks of a person, but for what has an
// answer in the inbox that the run has not taken yet.
func (e *Engine) pendingApprovals(ctx context.Context, row *store.Run) ([]Approval, error) {
	h, err := e.store.Load(ctx, row.ID, store.Cursor{})
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", row.ID, storeError(err))
	}
	p, err := readPast(row.ID, h.Events, 16)
	if err != nil {
		return nil, err
	}
	waits, err := openWaits(h)
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", row.ID, storeError(err))
	}
	var open []Approval
	for i := range waits {
		ev := &waits[i]
		d, err := history.DataOf(ev)
		if err != nil {
			return nil, &DamagedError{RunID: row.ID, Seq: ev.Seq, Err: err}
		}
		a := Approval{
			RunID: row.ID, Workflow: row.Workflow, Key: ev.Key, Name: d.Name, Prompt: d.Prompt,
			Answer: history.WaitKey(ev.Key, h.Run.Branch), AskedAt: ev.At, Until: d.Until,
			Seq: ev.Seq, Sample: d.Sample,
		}
		if d.Prompt != "" && !a.answeredBy(h.Inbox, p) {
			open = append(open, a)
		}
	}
	return open, nil
}

// answeredBy reports whether an answer is among the messages that were not
// taken.
func (a *Approval) answeredBy(inbox []store.Message, p *history.Past) bool {
	for i := range inbox {
		m := &inbox[i]
		if m.Kind == store.KindSignal && (m.Name == a.Name || m.Name == a.Answer) && !p.Consumed(m) {
			return true
		}
	}
	return false
}

// maxSample bounds the sample of an answer that is kept with a wait.
const maxSample = 4 << 10

// sampleOf returns the JSON of the zero value of t: what an answer looks like.
// nil if it has none that says anything. It depends on the code alone.
func sampleOf(t reflect.Type) json.RawMessage {
	var b []byte
	var err error
	// A MarshalJSON may not expect a zero value.
	fault := guard.Call(func() { b, err = json.Marshal(reflect.Zero(t).Interface()) })
	if fault != nil || err != nil || len(b) > maxSample || string(b) == "null" {
		return nil
	}
	return b
}

// readsAsItLooks reports whether JSON of another kind than the zero value of t can
// be no t: a type that reads JSON itself may take several.
func readsAsItLooks(t reflect.Type) bool {
	return !reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// Verdict makes the value that says yes or no to an approval, of what the
// workflow waits for: a boolean as it is; in an object the boolean field Approved
// (or approve, accepted, ok, yes, in any case), with by and reason put into the
// fields of that name, the latter also into comment, note or message. The error,
// ErrInvalid, says what the answer looks like if that cannot be told; give it in
// full then.
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

// TooLateError says that an approval was answered by somebody else, or has ended.
type TooLateError struct {
	RunID string
	Key   string // of the wait
}

func (e *TooLateError) Error() string {
	return fmt.Sprintf("run %s: %s does not wait for an answer any more: it was answered, or has ended", e.RunID, e.Key)
}

// ApprovalsOf returns what one run asks of people at the moment. ErrNotFound if
// there is no such run; a damaged history is an error.
func (e *Engine) ApprovalsOf(ctx context.Context, runID string) ([]Approval, error) {
	h, err := e.store.Load(ctx, runID, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", runID, storeError(err))
	}
	if h.Run.Status.Terminal() {
		return nil, nil
	}
	return e.pendingApprovals(ctx, &h.Run)
}

// Answer answers an approval with a value, as a signal that no other wait takes.
// It is durable when Answer returns. Of several answers to one approval the first
// counts.
//
// The value must be what the workflow waits for: of its type, or, as a
// json.RawMessage, its JSON; Verdict makes one. JSON of another kind than the
// Sample is refused: a workflow that cannot read its answer has a wait that ended
// with an error.
//
// Errors: ErrNotFound; *NotRunningError when the run has ended; *TooLateError for
// an answer that is not the first; ErrInvalid for JSON of the wrong kind;
// *EncodeError.
func (e *Engine) Answer(ctx context.Context, a Approval, value any) error {
	if raw, ok := value.(json.RawMessage); ok && len(a.Sample) > 0 {
		if is, wants := payload.KindOfJSON(raw), payload.KindOfJSON(a.Sample); is != wants {
			return fmt.Errorf("durable: run %s: %s waits for %s like %s, and the answer is %s: %w", a.RunID, a.Key, wants, a.Sample, is, ErrInvalid)
		}
	}
	id := newExecutorID()
	if err := e.mailroom.signal(ctx, a.RunID, a.Answer, value, false, SignalID(id)); err != nil {
		return err
	}
	h, err := e.store.Load(ctx, a.RunID, store.Cursor{NoEvents: true})
	if errors.Is(err, store.ErrNotFound) {
		return nil // it has taken the answer, ended, and was deleted
	}
	if err != nil {
		return fmt.Errorf("durable: answering %s of run %s: %w", a.Key, a.RunID, storeError(err))
	}
	for i := range h.Inbox {
		if m := &h.Inbox[i]; m.Kind == store.KindSignal && m.Name == a.Answer {
			if m.ID != id {
				return &TooLateError{RunID: a.RunID, Key: a.Key}
			}
			return nil
		}
	}
	return nil
}
