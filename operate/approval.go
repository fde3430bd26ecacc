package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// Approvals returns what runs ask of people at the moment, whoever executes
// them, the runs that began to wait first before the others.
//
// Error: durable.ErrUnavailable.
func (op *Operator) Approvals(ctx context.Context) ([]durable.Approval, error) {
	var open []durable.Approval
	asking := store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{durable.CodeApproval}, OldestFirst: true}
	for row, err := range op.desk.Runs(ctx, asking) {
		if err != nil {
			return nil, fmt.Errorf("durable: listing approvals: %w", storeError(err))
		}
		asked, err := op.desk.Asked(ctx, row)
		if err != nil {
			return nil, err
		}
		open = appendApprovals(open, asked)
	}
	return open, nil
}

// ApprovalsOf returns what one run asks of people at the moment. durable.ErrNotFound if
// there is no such run; a damaged history is an error.
func (op *Operator) ApprovalsOf(ctx context.Context, runID string) ([]durable.Approval, error) {
	h, err := op.store.Load(ctx, runID, store.Cursor{NoEvents: true})
	if err != nil {
		return nil, fmt.Errorf("durable: approvals of run %s: %w", runID, storeError(err))
	}
	if h.Run.Status.Terminal() {
		return nil, nil
	}
	asked, err := op.desk.Asked(ctx, &h.Run)
	return appendApprovals(nil, asked), err
}

func appendApprovals(open []durable.Approval, asked []history.Asked) []durable.Approval {
	for _, a := range asked {
		open = append(open, durable.Approval(a))
	}
	return open
}

// TooLateError says that an approval was answered by somebody else, or has ended.
type TooLateError struct {
	RunID string
	Key   string // of the wait
}

func (e *TooLateError) Error() string {
	return fmt.Sprintf("run %s: %s does not wait for an answer any more: it was answered, or has ended", e.RunID, e.Key)
}

// Answer answers an approval with a value, as a signal that no other wait takes.
// It is durable when Answer returns. Of several answers to one approval the first
// counts.
//
// The value must be what the workflow waits for: of its type, or, as a
// json.RawMessage, its JSON; Approval.Verdict makes one. JSON of another kind than the
// Sample is refused: a workflow that cannot read its answer has a wait that ended
// with an error.
//
// Errors: durable.ErrNotFound; *durable.NotRunningError when the run has ended;
// *TooLateError for an answer that is not the first; durable.ErrInvalid for JSON of the
// wrong kind; *durable.EncodeError.
func (op *Operator) Answer(ctx context.Context, a durable.Approval, value any) error {
	if raw, ok := value.(json.RawMessage); ok && len(a.Sample) > 0 {
		if is, wants := payload.KindOfJSON(raw), payload.KindOfJSON(a.Sample); is != wants {
			return fmt.Errorf("durable: run %s: %s waits for %s like %s, and the answer is %s: %w", a.RunID, a.Key, wants, a.Sample, is, durable.ErrInvalid)
		}
	}
	id, err := op.desk.Signal(ctx, a.RunID, a.Answer, value)
	if err != nil {
		return err
	}
	h, err := op.store.Load(ctx, a.RunID, store.Cursor{NoEvents: true})
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
