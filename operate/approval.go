package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/mail"
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
// *TooLateError for an answer that is not the first, or to what has ended; durable.ErrInvalid for JSON of the
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
	counts, err := counts(ctx, op.store, &a, id)
	switch {
	case err != nil:
		return fmt.Errorf("durable: answering %s of run %s: %w", a.Key, a.RunID, storeError(err))
	case !counts:
		return &TooLateError{RunID: a.RunID, Key: a.Key}
	}
	return nil
}

// counts reports whether the signal with this id was taken for the answer to a question, or is
// going to be. So does a signal that is not there: its run has ended and was deleted.
func counts(ctx context.Context, in store.Store, a *durable.Approval, id string) (bool, error) {
	h, err := in.Load(ctx, a.RunID, store.Cursor{})
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(h.Inbox, func(m store.Message) bool { return m.Kind == store.KindSignal && m.ID == id })
	if at < 0 {
		return true, nil
	}
	m := h.Inbox[at]
	p, err := history.Read(a.RunID, h.Events, 16)
	if err != nil {
		return false, damaged(err)
	}
	if p.Taken[m.Seq] {
		return true, nil
	}
	open, err := history.OpenWaits(h)
	if err != nil {
		return false, err
	}
	asks := slices.ContainsFunc(open, func(w store.Event) bool {
		return w.Key == a.Key && (w.Seq == a.Seq || a.Seq == 0) && history.WaitKey(a.Key, h.Run.Branch) == m.Name
	})
	if asks {
		before := *h
		before.Inbox = h.Inbox[:at]
		key, _ := mail.Taker(&m, open, &before, p)
		return key == a.Key, nil
	}
	// An earlier generation, or what was taken back since, may have taken it.
	if h, err = in.Load(ctx, a.RunID, store.Cursor{All: true}); errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for ev, err := range h.Events {
		if err != nil {
			return false, err
		}
		if ev.Type != store.SignalReceived {
			continue
		}
		if d, err := history.Of[history.WaitEnd](&ev); err != nil {
			return false, damaged(&history.Damage{RunID: a.RunID, Seq: ev.Seq, Err: err})
		} else if d.Message == m.Seq {
			return true, nil
		}
	}
	return false, nil
}
