package memory

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

// draft works one Change out without touching the data; apply then cannot fail.
type draft struct {
	data  *data
	now   store.Time
	runs  []*draftRun       // those that change, in the order they were touched
	holds map[string]string // exclusive keys that change hands; "": freed
	tell  []string          // run ids somebody may wait for
}

// draftRun is what changes on one run.
type draftRun struct {
	id       string
	of       *run // nil: to be created
	row      store.Run
	events   []store.Event // with their epoch
	messages []store.Message
	branches []store.Branch
}

// run returns the draft of a run, nil if there is no such run.
func (f *draft) run(id string) *draftRun {
	for _, r := range f.runs {
		if r.id == id {
			return r
		}
	}
	of := f.data.runs[id]
	if of == nil {
		return nil
	}
	r := &draftRun{id: id, of: of, row: of.row}
	f.runs = append(f.runs, r)
	return r
}

// change drafts all of c, or returns the reason why it is refused.
func (f *draft) change(c *store.Change) error {
	if c.RunID != "" {
		done, err := f.own(c)
		if done || err != nil {
			return err
		}
	}
	for i := range c.Start {
		if err := f.start(&c.Start[i]); err != nil {
			return err
		}
	}
	for i := range c.Send {
		if err := f.send(&c.Send[i]); err != nil {
			return err
		}
	}
	return nil
}

// own drafts what c does to its own run; done says that it was done before (S6).
func (f *draft) own(c *store.Change) (done bool, err error) {
	of := f.data.runs[c.RunID]
	var row *store.Run
	var last *store.Event
	live := false
	if of != nil {
		if c.Did(of.log.at(c.Mark())) {
			return true, nil
		}
		row, last, live = &of.row, of.log.last(), !f.data.free(of, f.now)
	}
	if err := c.Check(row, last, live); err != nil {
		return false, err
	}
	if c.Create != nil {
		return false, f.create(c)
	}
	return false, f.extend(c)
}

func (f *draft) create(c *store.Change) error {
	row := *c.Create
	row.Attributes = maps.Clone(row.Attributes)
	row.Last = nil
	row.Epoch = c.RowEpoch()
	row.Inbox = 0 // messages are numbered here, from 1
	if c.Yield {
		row.Owner = ""
	}
	row.UpdatedAt = f.now
	if err := f.checkDedup(&row); err != nil {
		return err
	}
	r := &draftRun{id: c.RunID, row: row}
	f.runs = append(f.runs, r)
	if row.Owner == "" {
		f.tell = append(f.tell, c.RunID)
	}
	f.record(r, c)
	return f.hold(c)
}

// start creates a run on behalf of another, unless it is there already.
func (f *draft) start(s *store.Change) error {
	if r := f.run(s.RunID); r != nil {
		if store.SameStart(&r.row, s.Create) {
			return nil
		}
		return &store.ExistsError{RunID: s.RunID}
	}
	return f.create(s)
}

// extend drafts a Change to a run that is there and allows it.
func (f *draft) extend(c *store.Change) error {
	r := f.run(c.RunID)
	if c.Branch != nil && slices.ContainsFunc(r.of.branches, func(b store.Branch) bool { return b.N == c.Branch.N }) {
		return fmt.Errorf("store: run %q has a branch %d already: %w", c.RunID, c.Branch.N, store.ErrInvalid)
	}
	before := r.row
	c.Row.Apply(&r.row)
	if c.Row != nil && c.Row.Attributes != nil {
		r.row.Attributes = maps.Clone(c.Row.Attributes)
	}
	if c.Revives(&before) {
		if err := f.checkDedup(&r.row); err != nil {
			return err
		}
	}
	r.row.Epoch = c.RowEpoch()
	if c.Yield || c.Expect.TakeEpoch {
		r.row.Owner = ""
	}
	if r.row.Owner == "" || r.row.Status != before.Status || r.row.Paused != before.Paused {
		f.tell = append(f.tell, c.RunID)
	}
	r.row.UpdatedAt = max(r.row.UpdatedAt, f.now)
	f.record(r, c)
	return f.hold(c)
}

// record drafts the events and the branch of c.
func (f *draft) record(r *draftRun, c *store.Change) {
	for i := range c.Events {
		e := c.Events[i]
		e.Epoch = c.EventEpoch(i)
		r.events = append(r.events, e)
	}
	if c.Branch != nil {
		r.branches = append(r.branches, *c.Branch)
	}
}

// checkDedup checks S12 for a run that is about to be unfinished.
func (f *draft) checkDedup(row *store.Run) error {
	if row.Dedup == "" || row.Status.Terminal() {
		return nil
	}
	clashes := func(other *store.Run) bool {
		return other.ID != row.ID && other.Queue == row.Queue && other.Dedup == row.Dedup && !other.Status.Terminal()
	}
	for _, r := range f.runs {
		if clashes(&r.row) {
			return &store.ExistsError{RunID: r.id}
		}
	}
	if id, ok := f.data.dedup[dedupKey{row.Queue, row.Dedup}]; ok && id != row.ID {
		if r := f.run(id); clashes(&r.row) {
			return &store.ExistsError{RunID: id}
		}
	}
	return nil
}

// hold drafts Release and Hold of c (S11).
func (f *draft) hold(c *store.Change) error {
	if f.holds == nil && (c.Release || len(c.Hold) > 0) {
		f.holds = make(map[string]string)
	}
	if c.Release {
		for key, holder := range f.data.holds {
			if holder == c.RunID {
				f.holds[key] = ""
			}
		}
	}
	for _, key := range c.Hold {
		holder, drafted := f.holds[key]
		if !drafted {
			holder = f.data.holds[key]
		}
		if holder != "" && holder != c.RunID {
			return &store.OccupiedError{RunID: c.RunID, Key: key, Holder: holder}
		}
		f.holds[key] = c.RunID
	}
	return nil
}

// send drafts the delivery of a message (S13 to S15).
func (f *draft) send(m *store.Message) error {
	r := f.run(m.To)
	switch {
	case r == nil && m.IfLive:
		return nil
	case r == nil:
		return notFound(m.To)
	case r.has(m):
		return nil
	case r.row.Status.Terminal() && m.IfLive:
		return nil
	case r.row.Status.Terminal():
		return &store.StatusError{RunID: m.To, Status: r.row.Status}
	}
	r.row.Inbox++
	r.row.ArchivedSeq = min(r.row.ArchivedSeq, 1)
	r.row.UpdatedAt = max(r.row.UpdatedAt, f.now)
	if m.Kind == store.KindCancel {
		r.row.CancelAsked = true
	}
	kept := copyMessage(m)
	kept.Seq, kept.IfLive = r.row.Inbox, false
	r.messages = append(r.messages, kept)
	f.tell = append(f.tell, m.To)
	return nil
}

func (r *draftRun) has(m *store.Message) bool {
	for i := range r.messages {
		if r.messages[i].Kind == m.Kind && r.messages[i].ID == m.ID {
			return true
		}
	}
	return r.of != nil && r.of.has(m)
}

// apply makes the draft true. Nothing in it can fail.
func (f *draft) apply() {
	d := f.data
	for _, dr := range f.runs {
		r := dr.of
		if r == nil {
			d.lastNo++
			r = &run{no: d.lastNo}
			d.runs[dr.id] = r
		}
		r.row = dr.row
		for i := range dr.events {
			r.append(&dr.events[i], dr.events[i].Epoch)
		}
		r.branches = append(r.branches, dr.branches...)
		for i := range dr.messages {
			if r.received == nil {
				r.received = make(map[messageID]struct{})
			}
			m := dr.messages[i]
			r.received[messageID{m.Kind, m.ID}] = struct{}{}
			r.inbox = append(r.inbox, m)
		}
		d.index(r)
	}
	for key, holder := range f.holds {
		if holder == "" {
			delete(d.holds, key)
		} else {
			d.holds[key] = holder
		}
	}
	if len(f.tell) > 0 {
		d.notify(f.tell...)
	}
}

// index keeps what is derived from the row of r in step with it.
func (d *data) index(r *run) {
	key := dedupKey{r.row.Queue, r.row.Dedup}
	if r.row.Status.Terminal() {
		delete(d.unfinished, r)
		if d.dedup[key] == r.row.ID {
			delete(d.dedup, key)
		}
		return
	}
	d.unfinished[r] = struct{}{}
	if r.row.Dedup != "" {
		d.dedup[key] = r.row.ID
	}
}
