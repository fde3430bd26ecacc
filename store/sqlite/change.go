//go:build cgo

package sqlite

import (
	"errors"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
)

// head is the part of a run's row that a Change checks before it writes.
type head struct {
	no  int64 // 0: no such run
	row store.Run
}

func (t *tx) head(id string) (h head, err error) {
	err = t.query(t.s.q.runHead, func(c *cells) error {
		h.no = c.int()
		h.row = store.Run{
			ID: id, Status: store.Status(c.text()), Owner: c.text(), Epoch: c.int(), CancelAsked: c.bool(),
			UpdatedAt: store.Time(c.int()), Queue: c.text(), Dedup: c.text(), Workflow: c.text(),
		}
		copy(h.row.InputHash[:], c.bytes())
		h.row.Parent, h.row.ParentKey, h.row.Inbox = c.text(), c.text(), c.int()
		return nil
	}, id)
	if err == nil && h.no != 0 {
		t.fresh[id] = h.no
	}
	return h, err
}

// change carries out one Change. refused is the contract's answer, err the
// database's.
func (t *tx) change(c *store.Change) (refused, err error) {
	clear(c.Sent) // S42: an earlier attempt may have filled it in
	if n := len(c.Events); n > 0 {
		if err := checkSeq(c.RunID, "event", c.Events[n-1].Seq); err != nil {
			return err, nil
		}
	}
	if c.Plain() {
		return t.checkpoint(c)
	}
	done := false
	switch {
	case c.RunID == "":
	case c.Create != nil:
		done, refused, err = t.create(c)
	default:
		done, refused, err = t.extend(c)
	}
	if done || refused != nil || err != nil {
		return refused, err
	}
	for i := range c.Start {
		if refused, err := t.start(&c.Start[i]); refused != nil || err != nil {
			return refused, err
		}
	}
	for i := range c.Send {
		if refused, err := t.send(c, i); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

// checkpoint carries out a plain Change: the log alone decides.
func (t *tx) checkpoint(c *store.Change) (refused, err error) {
	no, remembered, err := t.number(c.RunID)
	if err != nil {
		return nil, err
	}
	ok := false
	if no != 0 {
		if ok, err = t.append(c, no); ok || err != nil {
			return nil, err
		}
	}
	if remembered {
		// The run may have been deleted and created again since.
		t.numbers.forget(c.RunID)
		was := no
		if no, err = t.lookUp(c.RunID); err != nil {
			return nil, err
		}
		if no != 0 && no != was {
			if ok, err = t.append(c, no); ok || err != nil {
				return nil, err
			}
		}
	}
	if no == 0 {
		return sqlstore.NotFound(c.RunID), nil
	}
	_, refused, err = t.verdict(c, no, sqlstore.FencedAt(c))
	return refused, err
}

// append writes the events of c if the log allows it (S3). If the log does not,
// ok is false and nothing is written. Usually the first insert is its own test. When
// an epoch is taken, append reads the end of the log first: the event there is foreign.
func (t *tx) append(c *store.Change, no int64) (ok bool, err error) {
	first := 0
	if c.Expect.TakeEpoch {
		if ok, err := t.follows(c, no); !ok || err != nil {
			return false, err
		}
	} else {
		changed, err := t.s.appendFenced(t.db, no, c.EventEpoch(0), c.Expect.Epoch, &c.Events[0])
		if err != nil || changed == 0 {
			return false, err
		}
		first = 1
	}
	t.wrote = true
	return true, t.appendAll(c, no, first)
}

// follows reports whether the log of run no ends where c begins, with the epoch
// that c expects.
func (t *tx) follows(c *store.Change, no int64) (bool, error) {
	last, err := t.last(no)
	if err != nil || last == nil {
		return false, err
	}
	return last.Seq == c.Events[0].Seq-1 && (c.Expect.TakeEpoch || last.Epoch == c.Expect.Epoch), nil
}

// last returns the last event of a run, nil if it has none.
func (t *tx) last(no int64) (e *store.Event, err error) {
	after, before := span(no)
	err = t.query(t.s.q.eventLast, func(c *cells) error {
		last := c.event()
		e = &last
		return nil
	}, after, before)
	return e, err
}

// appendAll writes the events of c from index first on, without a check.
func (t *tx) appendAll(c *store.Change, no int64, first int) error {
	for i := first; i < len(c.Events); i++ {
		if _, _, err := t.exec(t.s.q.appendChecked, eventArgs(t.db, no, c.EventEpoch(i), c.EventEpoch(i), &c.Events[i])[:14]...); err != nil {
			return err
		}
	}
	return nil
}

// verdict decides about a Change that was refused for reason: if it was carried
// out earlier, it counts as done (S6).
func (t *tx) verdict(c *store.Change, no int64, reason error) (done bool, refused, err error) {
	if seq := c.Mark(); seq != 0 {
		err = t.query(t.s.q.eventFence, func(row *cells) error {
			done = c.Did(&store.Event{Seq: seq, Epoch: row.int(), Sum: uint32(row.int())})
			return nil
		}, place(no, seq))
		if done || err != nil {
			return done, nil, err
		}
	}
	return false, reason, nil
}

// create inserts the run of c.
func (t *tx) create(c *store.Change) (done bool, refused, err error) {
	h, err := t.head(c.RunID)
	if err != nil {
		return false, nil, err
	}
	if h.no != 0 {
		return t.verdict(c, h.no, &store.ExistsError{RunID: c.RunID})
	}
	refused, err = t.insert(c)
	return false, refused, err
}

// start creates a run on behalf of another, unless it already exists.
func (t *tx) start(c *store.Change) (refused, err error) {
	h, err := t.head(c.RunID)
	switch {
	case err != nil:
		return nil, err
	case h.no == 0:
		return t.insert(c)
	case store.SameStart(&h.row, c.Create):
		return nil, nil
	}
	return &store.ExistsError{RunID: c.RunID}, nil
}

func (t *tx) insert(c *store.Change) (refused, err error) {
	row := *c.Create
	row.Epoch, row.Reason = c.RowEpoch(), store.CleanText(row.Reason)
	row.Inbox = 0 // the messages are numbered below, from 1
	row.UpdatedAt = t.now
	if c.Yield {
		row.Owner = ""
	}
	if refused, err := t.unique(&row); refused != nil || err != nil {
		return refused, err
	}
	_, no, err := t.exec(t.s.q.runInsert, sqlstore.RunValues(&row)...)
	if err != nil {
		return nil, err
	}
	if no > maxRun {
		return nil, errors.New("sqlite: all run numbers of this database are used up; begin a new one")
	}
	t.fresh[row.ID] = no
	if err := t.appendAll(c, no, 0); err != nil {
		return nil, err
	}
	t.news.Created(&row, t.now)
	if err := t.attributes(no, row.Attributes, false); err != nil {
		return nil, err
	}
	return t.rest(c, no)
}

// unique checks S12 for a run that is about to become unfinished.
func (t *tx) unique(row *store.Run) (refused, err error) {
	if row.Dedup == "" || row.Status.Terminal() {
		return nil, nil
	}
	err = t.query(t.s.q.runDedup, func(c *cells) error {
		if id := c.text(); id != row.ID {
			refused = &store.ExistsError{RunID: id}
		}
		return nil
	}, row.Queue, row.Dedup)
	return refused, err
}

// extend carries out c on an existing run.
func (t *tx) extend(c *store.Change) (done bool, refused, err error) {
	h, err := t.head(c.RunID)
	if err != nil {
		return false, nil, err
	}
	if h.no == 0 {
		return false, sqlstore.NotFound(c.RunID), nil
	}
	live := false
	if c.Expect.TakeEpoch && h.row.Owner != "" {
		if live, err = t.live(h.row.Owner); err != nil {
			return false, nil, err
		}
	}
	if refused := c.Check(&h.row, nil, live); refused != nil {
		return t.refuse(c, h, refused)
	}
	if c.Revives(&h.row) {
		revived := h.row
		revived.Status = *c.Row.Status
		if refused, err := t.unique(&revived); refused != nil || err != nil {
			if err != nil {
				return false, nil, err
			}
			return t.refuse(c, h, refused)
		}
	}
	if len(c.Events) > 0 {
		if ok, err := t.append(c, h.no); err != nil {
			return false, nil, err
		} else if !ok {
			return t.verdict(c, h.no, sqlstore.FencedAt(c))
		}
	}
	if err := t.patch(c, h); err != nil {
		return false, nil, err
	}
	refused, err = t.rest(c, h.no)
	return false, refused, err
}

// refuse is verdict for a Change that the row refused: if the log does not fit
// either, that reason takes precedence.
func (t *tx) refuse(c *store.Change, h head, reason error) (done bool, refused, err error) {
	done, refused, err = t.verdict(c, h.no, reason)
	if refused == nil || err != nil || len(c.Events) == 0 || errors.Is(reason, store.ErrFenced) {
		return done, refused, err
	}
	ok, err := t.follows(c, h.no)
	if err == nil && !ok {
		refused = sqlstore.FencedAt(c)
	}
	return false, refused, err
}

// patch changes the row.
func (t *tx) patch(c *store.Change, h head) error {
	if err := t.update(h.no, sqlstore.RowSets(c, max(t.now, h.row.UpdatedAt))); err != nil {
		return err
	}
	if c.Row != nil && c.Row.Attributes != nil {
		if err := t.attributes(h.no, c.Row.Attributes, true); err != nil {
			return err
		}
	}
	after := h.row
	c.Row.Apply(&after)
	if c.Yield || c.Expect.TakeEpoch {
		after.Owner = ""
	}
	if c.Row != nil && c.Row.Paused != nil {
		h.row.Paused = !after.Paused // the head does not say
	}
	t.news.Carried(c, &h.row, &after)
	return nil
}

// attributes writes the whole set.
func (t *tx) attributes(no int64, set map[string]string, replace bool) error {
	if replace {
		if _, _, err := t.exec(t.s.q.attributesDelete, no); err != nil {
			return err
		}
	}
	for name, value := range set {
		if _, _, err := t.exec(t.s.q.attributeInsert, no, name, value); err != nil {
			return err
		}
	}
	return nil
}

// rest carries out what is the same for new and existing runs: the branch and
// the exclusive keys.
func (t *tx) rest(c *store.Change, no int64) (refused, err error) {
	if b := c.Branch; b != nil {
		if _, _, err := t.exec(t.s.q.branchInsert, no, int64(b.N), int64(b.Parent), int64(b.Generation), b.Cutoff, b.CutScope,
			store.CleanText(b.Reason), int64(b.CreatedAt)); err != nil {
			return nil, err
		}
	}
	if c.Release {
		if _, _, err := t.exec(t.s.q.holdsDelete, no); err != nil {
			return nil, err
		}
	}
	for i, key := range c.Hold {
		if slices.Contains(c.Hold[:i], key) {
			continue
		}
		if refused, err := t.hold(c.RunID, no, key); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

func (t *tx) hold(run string, no int64, key string) (refused, err error) {
	held := false
	err = t.query(t.s.q.holdOf, func(c *cells) error {
		if c.int() == no {
			held = true
			return nil
		}
		refused = &store.OccupiedError{RunID: run, Key: key, Holder: c.text()}
		return nil
	}, key)
	if held || refused != nil || err != nil {
		return refused, err
	}
	_, _, err = t.exec(t.s.q.holdInsert, key, no)
	return nil, err
}

// send delivers the i-th message of c (S13 to S15).
func (t *tx) send(c *store.Change, i int) (refused, err error) {
	m := &c.Send[i]
	h, err := t.head(m.To)
	if err != nil {
		return nil, err
	}
	if h.no == 0 {
		_, refused = draft.Drop(m, nil)
		return refused, nil
	}
	doubled := false
	if err := t.query(t.s.q.messageExists, func(*cells) error { doubled = true; return nil }, h.no, string(m.Kind), m.ID); doubled || err != nil {
		return nil, err
	}
	if drop, refused := draft.Drop(m, &h.row); drop || refused != nil {
		return refused, nil
	}
	cancel := int64(0)
	if m.Kind == store.KindCancel {
		cancel = 1
	}
	if _, _, err := t.exec(t.s.q.messageCount, h.no, cancel, int64(t.now)); err != nil {
		return nil, err
	}
	if _, _, err := t.exec(t.s.q.messageInsert, h.no, string(m.Kind), m.Name, m.ID, int64(m.At), sqlstore.Text(m.Data), sqlstore.Bytes(m.Payload)); err != nil {
		return nil, err
	}
	t.news.Sent(m.To, h.row.Owner, h.row.Inbox+1)
	c.SetSent(i, h.row.Inbox+1)
	return nil, nil
}
