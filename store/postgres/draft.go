package postgres

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
)

// draft works out what the Changes of a transaction do, over what was read
// under the locks, without touching the database. Members are taken in order,
// and each sees what those before it did; one that is refused leaves no trace
// (S2). What is in the end different is then written in bulk.
type draft struct {
	now  store.Time
	live func(owner string) bool

	rows  map[string]*draftRow // nil: there is no such run
	dedup map[dedupKey]string  // the unfinished run that has it
	holds map[string]string    // exclusive keys and their holders
	inbox map[messageKey]bool  // messages that were delivered before
	tell  []string             // runs somebody may wait for

	branches map[branchKey]bool // that the runs have
}

type (
	branchKey struct {
		no int64
		n  int32
	}
	dedupKey   struct{ queue, dedup string }
	messageKey struct {
		to   string
		kind store.Kind
		id   string
	}
)

// draftRow is a run in the draft. Its pieces are only ever appended to or
// replaced, so that a copy of the struct is a copy of the state.
type draftRow struct {
	no         int64         // 0: to be created
	created    *store.Change // that creates it; nil: it was there
	run        store.Run
	attributes int64
	changed    bool
	replace    bool // the attributes are replaced by run.Attributes
	messages   []store.Message
	branches   []store.Branch
	released   bool     // all exclusive keys it held before are freed
	held       []string // and these taken
}

// trial is a draft of one member over the draft of all.
type trial struct {
	*draft
	rows  map[string]*draftRow
	holds map[string]string
	inbox map[messageKey]bool
	tell  []string
}

// member drafts m, or returns why it is refused.
func (d *draft) member(m *member) error {
	t := &trial{draft: d, rows: map[string]*draftRow{}, holds: map[string]string{}, inbox: map[messageKey]bool{}}
	if err := t.change(m); err != nil {
		return err
	}
	maps.Copy(d.rows, t.rows)
	maps.Copy(d.holds, t.holds)
	maps.Copy(d.inbox, t.inbox)
	d.tell = append(d.tell, t.tell...)
	return nil
}

// row returns the trial's copy of a run, nil if there is none.
func (t *trial) row(id string) *draftRow {
	if r := t.rows[id]; r != nil {
		return r
	}
	r := t.draft.rows[id]
	if r == nil {
		return nil
	}
	c := *r
	t.rows[id] = &c
	return &c
}

func (t *trial) change(m *member) error {
	c := m.c
	if c.RunID != "" && !c.Plain() {
		var err error
		if c.Create != nil {
			err = t.create(c)
		} else {
			err = t.extend(m)
		}
		if err != nil {
			return err
		}
	}
	for i := range c.Start {
		if err := t.start(&c.Start[i]); err != nil {
			return err
		}
	}
	for i := range c.Send {
		if err := t.send(&c.Send[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) create(c *store.Change) error {
	if t.row(c.RunID) != nil {
		return &store.ExistsError{RunID: c.RunID}
	}
	r := &draftRow{created: c, run: *c.Create, attributes: int64(len(c.Create.Attributes)), changed: true, replace: len(c.Create.Attributes) > 0}
	r.run.Reason = store.CleanText(r.run.Reason)
	r.run.Epoch, r.run.Inbox, r.run.UpdatedAt, r.run.Last = c.RowEpoch(), 0, t.now, nil
	if c.Yield {
		r.run.Owner = ""
	}
	if err := t.checkDedup(&r.run); err != nil {
		return err
	}
	t.rows[c.RunID] = r
	if r.run.Owner == "" {
		t.tell = append(t.tell, c.RunID)
	}
	return t.finish(r, c)
}

// start creates a run on behalf of another, unless it is there already.
func (t *trial) start(c *store.Change) error {
	if r := t.row(c.RunID); r != nil {
		if store.SameStart(&r.run, c.Create) {
			return nil
		}
		return &store.ExistsError{RunID: c.RunID}
	}
	return t.create(c)
}

// extend drafts a Change to a run that is there.
func (t *trial) extend(m *member) error {
	c := m.c
	r := t.row(c.RunID)
	if r == nil {
		return sqlstore.NotFound(c.RunID)
	}
	m.no = r.no
	if err := c.Check(&r.run, nil, r.run.Owner != "" && c.Expect.TakeEpoch && t.live(r.run.Owner)); err != nil {
		return err
	}
	if c.Branch != nil && t.branches[branchKey{r.no, c.Branch.N}] {
		return fmt.Errorf("postgres: run %q: there is a branch %d already: %w", c.RunID, c.Branch.N, store.ErrInvalid)
	}
	before := r.run
	revives := c.Revives(&r.run)
	if c.Row != nil {
		c.Row.Apply(&r.run)
		r.run.Reason = store.CleanText(r.run.Reason)
		if c.Row.Attributes != nil {
			r.attributes, r.replace = int64(len(c.Row.Attributes)), true
		}
		r.changed = true
	}
	if revives {
		if err := t.checkDedup(&r.run); err != nil {
			return err
		}
	}
	if c.Yield || c.Expect.TakeEpoch {
		r.run.Owner, r.run.Epoch, r.changed = "", c.RowEpoch(), true
	}
	if r.changed {
		r.run.UpdatedAt = max(r.run.UpdatedAt, t.now)
	}
	if r.run.Owner != before.Owner || (r.changed && r.run.Owner == "") || r.run.Status != before.Status || r.run.Paused != before.Paused {
		t.tell = append(t.tell, c.RunID)
	}
	return t.finish(r, c)
}

// finish drafts what a Change may do besides: a branch, exclusive keys.
func (t *trial) finish(r *draftRow, c *store.Change) error {
	if c.Branch != nil {
		b := *c.Branch
		b.Reason = store.CleanText(b.Reason)
		r.branches = append(slices.Clip(r.branches), b)
	}
	if c.Release {
		t.release(r)
	}
	for _, key := range c.Hold {
		holder, drafted := t.holds[key]
		if !drafted {
			holder = t.draft.holds[key]
		}
		switch holder {
		case "":
			r.held = append(slices.Clip(r.held), key)
		case c.RunID:
			continue
		default:
			return &store.OccupiedError{RunID: c.RunID, Key: key, Holder: holder}
		}
		t.holds[key] = c.RunID
	}
	return nil
}

func (t *trial) release(r *draftRow) {
	for _, holds := range []map[string]string{t.draft.holds, t.holds} {
		for key, holder := range holds {
			if holder == r.run.ID {
				t.holds[key] = ""
			}
		}
	}
	r.released, r.held = true, nil
}

// checkDedup checks S12 for a run that is about to be unfinished.
func (t *trial) checkDedup(run *store.Run) error {
	if run.Dedup == "" || run.Status.Terminal() {
		return nil
	}
	clashes := func(o *store.Run) bool {
		return o.ID != run.ID && o.Queue == run.Queue && o.Dedup == run.Dedup && !o.Status.Terminal()
	}
	for _, rows := range []map[string]*draftRow{t.rows, t.draft.rows} {
		for id, r := range rows {
			if newer := t.rows[id]; newer != nil {
				r = newer
			}
			if r != nil && clashes(&r.run) {
				return &store.ExistsError{RunID: id}
			}
		}
	}
	// The holder that the database knows counts unless it is in the draft,
	// where it was asked already.
	holder, ok := t.dedup[dedupKey{run.Queue, run.Dedup}]
	if ok && holder != run.ID && t.draft.rows[holder] == nil {
		return &store.ExistsError{RunID: holder}
	}
	return nil
}

// send drafts the delivery of a message (S13 to S15).
func (t *trial) send(m *store.Message) error {
	r := t.row(m.To)
	key := messageKey{to: m.To, kind: m.Kind, id: m.ID}
	if r != nil && (t.draft.inbox[key] || t.inbox[key]) {
		return nil // S14
	}
	var run *store.Run
	if r != nil {
		run = &r.run
	}
	if drop, err := sqlstore.Drop(m, run); drop || err != nil {
		return err
	}
	r.run.Inbox++
	r.run.ArchivedSeq = min(r.run.ArchivedSeq, 1)
	r.run.UpdatedAt = max(r.run.UpdatedAt, t.now)
	if m.Kind == store.KindCancel {
		r.run.CancelAsked = true
	}
	r.changed = true
	kept := *m
	kept.Seq = r.run.Inbox
	r.messages = append(slices.Clip(r.messages), kept)
	t.inbox[key] = true
	t.tell = append(t.tell, m.To)
	return nil
}
