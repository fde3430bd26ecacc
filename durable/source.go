package durable

import (
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/holdfast-dev/holdfast/internal/history"
	"github.com/holdfast-dev/holdfast/internal/payload"
	"github.com/holdfast-dev/holdfast/store"
)

// A source is where the history of a run is read from: what was read of it before the
// run was launched, and the store.
type source struct {
	run        *run
	loaded     *store.History // what the dormitory has read to load it
	prefetched *prefetch      // what was read before it was claimed; nil: nothing
	created    *store.Event   // which is all its history but the event of its claim; nil: it is not known
	from       *store.Cursor  // where its history begins and what of its inbox is read, if that is known
}

// lineage reads the history of the run's generation, and those messages of its inbox that
// the generation has not taken. The log and the inbox also hold all that earlier
// generations had: it is passed over by number, so that a load costs no more than the
// generation.
func (src *source) lineage() (*store.History, *history.Past, error) {
	r := src.run
	if h := src.loaded; h != nil {
		src.loaded = nil
		p, err := readPast(r.id, src.gapless(h), src.sizeHint())
		return h, p, err
	}
	if e := src.created; src.whole(e) {
		// The claim has read it. What came since was heard of: see roster.claiming.
		src.created = nil
		h := &store.History{Run: r.row, Events: both([]store.Event{*e, *r.row.Last}, func(func(store.Event, error) bool) {})}
		p, err := readPast(r.id, src.gapless(h), src.sizeHint())
		return h, p, err
	}
	if k := src.prefetched; k != nil {
		src.prefetched = nil
		if h, p, ok, err := src.rest(k); ok || err != nil {
			return h, p, err
		}
	}
	const none = math.MaxInt64
	from := store.Cursor{}
	switch {
	case src.from != nil:
		from = *src.from
	case r.row.Generation > 0:
		h, err := r.eng.loads.Load(r.ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: none})
		if err != nil {
			return nil, nil, err
		}
		// The first event tells which messages are needed.
		from = store.Cursor{After: history.RootOf(h.Branches, r.row.Branch).Cutoff, AfterMessage: none}
	}
	h, err := r.eng.loads.Load(r.ctx, r.id, from)
	if err != nil {
		return nil, nil, err
	}
	p, err := readPast(r.id, src.gapless(h), src.sizeHint())
	if err != nil || from.AfterMessage != none {
		return h, p, err
	}
	mail, err := r.eng.loads.Load(r.ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: p.Floor()})
	if err != nil {
		return nil, nil, err
	}
	h.Inbox, h.Run.CancelAsked = mail.Inbox, mail.Run.CancelAsked
	return h, p, nil
}

// whole reports whether e, which a claim may have handed over, and the event of the claim can be
// all there is of the run. If the row knows of more, the store was wrong, and the history is loaded.
func (src *source) whole(e *store.Event) bool {
	row := &src.run.row
	return e != nil && e.Seq == 1 && row.Last != nil && row.Last.Seq == 2 && row.Inbox == 0
}

// maxHint bounds the memory that is set aside before an event is checked: the count may be damaged.
const maxHint = 1 << 14

// sizeHint estimates how many calls the history has. A run that begins has none, and most calls
// are steps.
func (src *source) sizeHint() int {
	if src.run.row.Last == nil {
		return 0
	}
	return max(0, min(int(src.run.row.Last.Steps), maxHint))
}

// gapless returns the events of h, which are a lineage of the run, and checks what the
// lineage passes over.
func (src *source) gapless(h *store.History) iter.Seq2[store.Event, error] {
	return history.Gapless(h, func(after int64) (*store.History, error) {
		return src.run.eng.loads.Load(src.run.ctx, src.run.id, store.Cursor{After: after, All: true, AfterMessage: math.MaxInt64})
	})
}

// A prefetch is the history of a run, or of its current generation, read just before
// the run is claimed to be executed here. The execution reads only what was recorded
// since, at least its claim; the whole is checked like any other.
type prefetch struct {
	branch int32
	events []store.Event
}

// rest completes what was read of the history before the claim. ok is false if that is of
// no use, because the run has turned to another branch since.
func (src *source) rest(k *prefetch) (h *store.History, p *history.Past, ok bool, err error) {
	r := src.run
	if k.branch != r.row.Branch {
		return nil, nil, false, nil
	}
	last := k.events[len(k.events)-1].Seq
	h, err = r.eng.loads.Load(r.ctx, r.id, store.Cursor{After: last, AfterMessage: math.MaxInt64})
	if err != nil || h.Run.Branch != k.branch {
		return nil, nil, false, err
	}
	h.Events = both(k.events, h.Events)
	if p, err = readPast(r.id, src.gapless(h), len(k.events)+16); err != nil {
		return h, p, true, err
	}
	mail, err := r.eng.loads.Load(r.ctx, r.id, store.Cursor{NoEvents: true, AfterMessage: p.Floor()})
	if err != nil {
		return nil, nil, true, err
	}
	h.Inbox, h.Run.CancelAsked = mail.Inbox, mail.Run.CancelAsked
	return h, p, true, nil
}

// both yields the events of a list, and then the others.
func both(list []store.Event, others iter.Seq2[store.Event, error]) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for i := range list {
			if !yield(list[i], nil) {
				return
			}
		}
		others(yield)
	}
}

// checkRow returns why a run must not be executed as its row says, with the code of this
// version; nil if it may be. A wrong row would mean other work, or a report to another
// run. h is what the history was read from; the check costs no statement.
func checkRow(s *payload.Sealer, row *store.Run, version string, p *history.Past, h *store.History) error {
	born, err := history.Of[history.Beginning](&p.Created)
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
func checkInput(s *payload.Sealer, row *store.Run, p *history.Past, born *history.Beginning) error {
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

// checkMail returns an error for the first of these messages to a run that its history
// has not taken and that is not what was sent.
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

// unread returns the error of a history that cannot be read as callers know it: for a
// history of a newer version, that is an UndecodableError.
func unread(runID string, err error) error {
	if future := (*history.FutureEventError)(nil); errors.As(err, &future) {
		return &UndecodableError{RunID: runID, Key: "its history", Recorded: string(future.Type), Err: err}
	}
	return damaged(err)
}

// damaged returns err as callers know it: a history that cannot be believed is a
// DamagedError.
func damaged(err error) error {
	if d := (*history.Damage)(nil); errors.As(err, &d) {
		return (*DamagedError)(d)
	}
	return err
}
