package durable

import (
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// checkRow returns why a run must not be executed by its row, with the code of this
// version, nil if it may: it would be other work, or be reported to somebody else. h is
// what the history was read from; it costs no statement.
func checkRow(s *payload.Sealer, row *store.Run, version string, p *history.Past, h *store.History) error {
	born, err := history.DataOf(&p.Created)
	if err != nil {
		return &DamagedError{RunID: row.ID, Seq: p.Created.Seq, Err: err}
	}
	if err := p.CheckRow(row, h.Branches, &born); err != nil {
		return damaged(err)
	}
	if err := p.CheckVersion(row.ID, version, &born); err != nil {
		return damaged(err)
	}
	if err := p.CheckCancel(&h.Run, h.Inbox); err != nil {
		return damaged(err)
	}
	return checkInput(s, row, p, &born)
}

// checkInput returns why the row's hash of the input must not be believed.
func checkInput(s *payload.Sealer, row *store.Run, p *history.Past, born *history.Data) error {
	if born.Run == nil || p.Created.Type != store.WorkflowCreated {
		return nil // of a later generation, the row has the hash of another input
	}
	// What cannot be opened here is found where it is decoded.
	input, err := s.Unseal(payload.PlaceOf(row.ID, &p.Created), p.Created.Payload)
	if err != nil || payload.InputHash(input) == row.InputHash {
		return nil
	}
	return &DamagedError{RunID: row.ID, Err: errors.New("its row was changed: its hash of the input is not that of the input in its history")}
}

// checkMail returns an error for the first of these messages to a run that is not what
// was sent and that its history has not taken.
func checkMail(runID string, p *history.Past, list []store.Message) error {
	for i := range list {
		if m := &list[i]; !p.Consumed(m) {
			if err := history.CheckMessage(runID, m); err != nil {
				return &DamagedError{RunID: runID, Err: fmt.Errorf("message %d (%s %s) in its inbox: %w", m.Seq, m.Kind, m.Name, err)}
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
