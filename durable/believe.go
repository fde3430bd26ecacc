package durable

import (
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// checkRow returns why r must not be executed by its row, nil if it may: it would be
// other work, or be reported to somebody else. h is what the history was read from; it
// costs no statement.
func (r *run) checkRow(h *store.History) error {
	born, err := history.DataOf(&r.past.Created)
	if err != nil {
		return &DamagedError{RunID: r.id, Seq: r.past.Created.Seq, Err: err}
	}
	if err := r.past.CheckRow(&r.row, h.Branches, &born); err != nil {
		return damaged(err)
	}
	if err := r.past.CheckVersion(r.id, r.def.version, &born); err != nil {
		return damaged(err)
	}
	if err := r.past.CheckCancel(&h.Run, h.Inbox); err != nil {
		return damaged(err)
	}
	return r.checkInput(&born)
}

// checkInput returns why the row's hash of the input must not be believed.
func (r *run) checkInput(born *history.Data) error {
	if born.Run == nil || r.past.Created.Type != store.WorkflowCreated {
		return nil // of a later generation, the row has the hash of another input
	}
	// What cannot be opened here is found where it is decoded.
	input, err := r.eng.sealer.Unseal(payload.PlaceOf(r.id, &r.past.Created), r.past.Created.Payload)
	if err != nil || payload.InputHash(input) == r.row.InputHash {
		return nil
	}
	return &DamagedError{RunID: r.id, Err: errors.New("its row was changed: its hash of the input is not that of the input in its history")}
}

// checkMail returns an error for the first of these messages that is not what was
// sent and that the history has not taken.
func (r *run) checkMail(list []store.Message) error {
	for i := range list {
		if m := &list[i]; !r.past.Consumed(m) {
			if err := history.CheckMessage(r.id, m); err != nil {
				return &DamagedError{RunID: r.id, Err: fmt.Errorf("message %d (%s %s) in its inbox: %w", m.Seq, m.Kind, m.Name, err)}
			}
		}
	}
	return nil
}

// readPast reads a lineage; see history.Read.
func readPast(runID string, events iter.Seq2[store.Event, error], sizeHint int) (*history.Past, error) {
	p, err := history.Read(runID, events, sizeHint)
	if err != nil {
		return nil, damaged(err)
	}
	return p, nil
}

// damaged returns err as callers know it: a history that cannot be believed is a
// DamagedError.
func damaged(err error) error {
	if d := (*history.Damage)(nil); errors.As(err, &d) {
		return (*DamagedError)(d)
	}
	return err
}
