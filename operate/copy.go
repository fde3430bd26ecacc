package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/internal/runfile"
	"github.com/holdfast-dev/holdfast/store"
)

// rename turns a file into that of a copy with another id: it seals again what depends on
// the id.
func rename(ctx context.Context, op *Operator, f *runfile.File, id string) error {
	if err := store.CheckRunID(id); err != nil {
		return err
	}
	written, err := begun(ctx, op.store, id)
	if err != nil {
		return err
	}
	old := f.Run.ID
	// The run does not wait for a child that a cut has left behind.
	lineage := store.LineageOf(f.Branches, f.Run.Branch)
	open := map[string]bool{}
	var sum uint32
	for i := range f.Events {
		ev := &f.Events[i]
		said, err := history.Decode(ev)
		if err == nil {
			err = recast(ev, old, sum)
		}
		if err != nil {
			return &durable.DamagedError{RunID: old, Seq: ev.Seq, Err: err}
		}
		switch d := said.(type) {
		case *history.ChildBegun:
			if !d.Abandon && lineage.Has(ev) {
				open[ev.Key] = true
			}
		case *history.ChildEnd:
			delete(open, ev.Key)
		}
		plain, err := op.sealer.Unseal(payload.PlaceOf(old, ev), ev.Payload)
		if err != nil {
			return &durable.UndecodableError{RunID: old, Key: history.NameOf(ev), Err: err}
		}
		if i < len(written) && seals(op.sealer, &written[i], id, plain) {
			ev.Payload = written[i].Payload
		} else {
			ev.Payload = op.sealer.Seal(payload.PlaceOf(id, ev), plain)
		}
		ev.Sum = store.Seal(id, sum, ev)
		sum = ev.Sum
	}
	if len(open) > 0 && !f.Run.Status.Terminal() {
		return fmt.Errorf("it has children that have not ended, which cannot be the copy's: import it under its own id: %w", durable.ErrInvalid)
	}
	for i := range f.Inbox {
		m := &f.Inbox[i]
		m.To = old
		plain, err := op.sealer.Unseal(payload.PlaceOfMessage(m.To, m), m.Payload)
		if err != nil {
			return &durable.UndecodableError{RunID: old, Key: m.Name, Err: err}
		}
		m.To, m.Payload = id, plain
		op.desk.SealMessage(m)
	}
	f.Run.ID, f.Run.ForkedFrom, f.Run.Parent, f.Run.ParentKey, f.Run.Dedup = id, old, "", "", ""
	return nil
}

// begun returns what an import under this id that has not finished has written. What is encrypted
// is so with a number that is used once, so this import of the same file would write other bytes.
func begun(ctx context.Context, s store.Store, id string) (written []store.Event, err error) {
	h, err := s.Load(ctx, id, store.Cursor{All: true, AfterMessage: math.MaxInt64})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, storeError(err)
	case h.Run.Code != durable.CodeImporting:
		return nil, nil
	}
	for ev, err := range h.Events {
		if err != nil {
			return nil, storeError(err)
		}
		written = append(written, ev)
	}
	return written, nil
}

// seals reports whether the payload of ev, an event of the run id, is plain, perhaps encrypted.
func seals(s *payload.Sealer, ev *store.Event, id string, plain []byte) bool {
	opened, err := s.Unseal(payload.PlaceOf(id, ev), ev.Payload)
	return err == nil && bytes.Equal(opened, plain)
}

// recast replaces what an event says that holds only in the run old; sum is that of the event
// before it in the copy. It goes by the names of members, because an event of a type that only
// a newer version knows may have them too.
func recast(ev *store.Event, old string, sum uint32) error {
	if len(ev.Data) == 0 {
		return nil
	}
	var d struct {
		Around     string            `json:"around"`
		Run        *history.Identity `json:"run"`
		Generation int32             `json:"generation"`
		Cut        *history.Cut      `json:"cut"`
	}
	err := json.Unmarshal(ev.Data, &d)
	set := func(field string, value []byte) {
		if err == nil {
			ev.Data, err = history.WithField(ev.Data, field, value)
		}
	}
	if d.Around != "" { // the span of that start belongs to the original
		set("around", []byte(`""`))
	}
	if d.Run != nil {
		set("run", d.Run.CopyOf(old))
	}
	if ev.Type == store.WorkflowStarted && d.Generation > 0 { // it repeats the sum before it
		set("sum", fmt.Appendf(nil, "%d", sum))
	}
	if d.Cut != nil {
		d.Cut.Sum = sum
		set("cut", d.Cut.Encode())
	}
	return err
}
