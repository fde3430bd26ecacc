// Package draft computes what Changes do to the runs of a store without touching the
// store. The resulting differences can then be written at once, and a refused Change
// leaves no trace (S2). The stores that read what they need before they write share
// it: memory, and postgres for Changes that concern several runs. The clauses (S1,
// S2, ...) are those of package store.
package draft

import (
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// A World is the content of the store, as of one moment and under its locks. It need
// not contain more than the Changes of a draft ask for.
type World interface {
	// Run returns the row of a run, nil if there is none. It is only read.
	Run(id string) *store.Run
	// Last returns the last event of a run's log, or nil where the insert of
	// events tests the log itself; see store.Change.Check.
	Last(id string) *store.Event
	// Live reports whether an executor is live.
	Live(owner string) bool
	// Dedup returns the unfinished run that has a deduplication key, "" if none has.
	Dedup(queue, dedup string) string
	// Holder returns the run that holds an exclusive key, "" if none does.
	Holder(key string) string
	// Held returns the exclusive keys that a run holds.
	Held(id string) []string
	// Received reports whether a message was already delivered.
	Received(m *store.Message) bool
	// HasBranch reports whether a run has a branch of this number.
	HasBranch(id string, n int32) bool
}

// Draft is the effect of some Changes, taken in order, on a World.
type Draft struct {
	world World
	now   store.Time
	below *Draft // the draft that this one is a trial over; nil: the world

	rows     map[string]*Row
	order    []string // ids of rows in the order they were touched
	holds    map[string]string
	received map[delivery]struct{}
	news     notice.News
}

type delivery struct {
	to   string
	kind store.Kind
	id   string
}

// Row is a run in the draft.
//
// Its parts are only ever appended to or replaced, so that a copy of the struct is a
// copy of the state.
type Row struct {
	Run        store.Run
	Appends    []*store.Change // the Changes whose events its log gets, in order
	Changed    bool            // Run differs from the world's
	Attributes bool            // Run.Attributes replaces what the world has
	Messages   []store.Message
	Branches   []store.Branch
	Released   bool     // frees all exclusive keys it held in the world
	Hold       []string // then takes these
}

// Created returns the Change that creates the run, nil if the run already exists.
func (r *Row) Created() *store.Change {
	if len(r.Appends) > 0 && r.Appends[0].Create != nil {
		return r.Appends[0]
	}
	return nil
}

// New returns a draft over a world in which nothing has changed yet.
func New(w World, now store.Time) *Draft {
	return &Draft{world: w, now: now, rows: map[string]*Row{}}
}

// Row returns the draft of a run, nil if no Change has touched it.
func (d *Draft) Row(id string) *Row { return d.rows[id] }

// Rows yields the touched runs, in the order they were touched.
func (d *Draft) Rows(yield func(id string, r *Row) bool) {
	for _, id := range d.order {
		if !yield(id, d.rows[id]) {
			return
		}
	}
}

// Holds returns the exclusive keys that change hands, each with its new holder; "":
// none.
func (d *Draft) Holds() map[string]string { return d.holds }

// News returns what others may be waiting for.
func (d *Draft) News() notice.News { return d.news }

// Change drafts everything that c does, except the events of a plain Change, or
// returns why it is refused. The caller checks Did (S6) before, or after a refusal.
func (d *Draft) Change(c *store.Change) error {
	clear(c.Sent) // S42: an earlier attempt may have filled it in
	t := &Draft{world: d.world, now: d.now, below: d, rows: map[string]*Row{}}
	if err := t.change(c); err != nil {
		return err
	}
	for id, r := range t.Rows {
		if d.rows[id] == nil {
			d.order = append(d.order, id)
		}
		d.rows[id] = r
	}
	d.holds = merge(d.holds, t.holds)
	d.received = merge(d.received, t.received)
	d.news.Merge(t.news)
	return nil
}

func merge[K comparable, V any](into, from map[K]V) map[K]V {
	if into == nil {
		return from
	}
	maps.Copy(into, from)
	return into
}

func (d *Draft) change(c *store.Change) error {
	if c.RunID != "" && !c.Plain() {
		if err := d.own(c); err != nil {
			return err
		}
	}
	for i := range c.Start {
		if err := d.start(&c.Start[i]); err != nil {
			return err
		}
	}
	for i := range c.Send {
		seq, err := d.send(&c.Send[i])
		if err != nil {
			return err
		}
		c.SetSent(i, seq)
	}
	return nil
}

// own drafts what c does to its own run.
func (d *Draft) own(c *store.Change) error {
	r := d.row(c.RunID)
	var run *store.Run
	live := false
	if r != nil {
		run = &r.Run
		live = c.Expect.TakeEpoch && run.Owner != "" && d.world.Live(run.Owner)
	}
	if err := c.Check(run, d.world.Last(c.RunID), live); err != nil {
		return err
	}
	if c.Create != nil {
		return d.create(c)
	}
	return d.extend(r, c)
}

// row returns this draft's own copy of a run, nil if there is no such run.
func (d *Draft) row(id string) *Row {
	if r := d.rows[id]; r != nil {
		return r
	}
	if d.below != nil {
		if r := d.below.rows[id]; r != nil {
			c := *r
			return d.add(id, &c)
		}
	}
	run := d.world.Run(id)
	if run == nil {
		return nil
	}
	return d.add(id, &Row{Run: *run})
}

func (d *Draft) add(id string, r *Row) *Row {
	d.rows[id] = r
	d.order = append(d.order, id)
	return r
}

func (d *Draft) create(c *store.Change) error {
	r := &Row{Run: Born(c), Changed: true, Attributes: len(c.Create.Attributes) > 0}
	run := &r.Run
	run.UpdatedAt = d.now
	if err := d.checkDedup(run); err != nil {
		return err
	}
	d.add(c.RunID, r)
	d.news.Created(run, d.now)
	return d.finish(r, c)
}

// Born returns the row of the run that c creates, but for the time of the update.
func Born(c *store.Change) store.Run {
	run := *c.Create
	run.Attributes = maps.Clone(run.Attributes)
	run.Reason = store.CleanText(run.Reason)
	run.Epoch, run.Last = c.RowEpoch(), nil
	run.Inbox = 0 // messages are numbered by the store, from 1
	if c.Yield {
		run.Owner = ""
	}
	return run
}

// start creates a run on behalf of another, unless it already exists.
func (d *Draft) start(c *store.Change) error {
	if r := d.row(c.RunID); r != nil {
		if store.SameStart(&r.Run, c.Create) {
			return nil
		}
		return &store.ExistsError{RunID: c.RunID}
	}
	return d.create(c)
}

// extend drafts a Change to an existing run that allows it.
func (d *Draft) extend(r *Row, c *store.Change) error {
	if c.Branch != nil && d.hasBranch(r, c.Branch.N) {
		return fmt.Errorf("store: run %q has a branch %d already: %w", c.RunID, c.Branch.N, store.ErrInvalid)
	}
	run, before := &r.Run, r.Run
	if c.Row != nil {
		c.Row.Apply(run)
		run.Reason = store.CleanText(run.Reason)
		if c.Row.Attributes != nil {
			run.Attributes, r.Attributes = maps.Clone(c.Row.Attributes), true
		}
		r.Changed = true
	}
	if c.Revives(&before) {
		if err := d.checkDedup(run); err != nil {
			return err
		}
	}
	if c.Yield || c.Expect.TakeEpoch {
		run.Owner, run.Epoch, r.Changed = "", c.RowEpoch(), true
	}
	if len(c.Hold) > 0 {
		// In the row, another statement of postgres can see that it is not as it was.
		run.UpdatedAt, r.Changed = run.UpdatedAt+1, true
	}
	if r.Changed {
		run.UpdatedAt = max(run.UpdatedAt, d.now)
	}
	if r.Changed {
		d.news.Changed(&before, run, run.Due(d.now))
	}
	return d.finish(r, c)
}

func (d *Draft) hasBranch(r *Row, n int32) bool {
	return d.world.HasBranch(r.Run.ID, n) || slices.ContainsFunc(r.Branches, func(b store.Branch) bool { return b.N == n })
}

// finish drafts what else a Change may do: events, a branch, exclusive keys (S11).
func (d *Draft) finish(r *Row, c *store.Change) error {
	r.Appends = append(slices.Clip(r.Appends), c)
	if c.Branch != nil {
		b := *c.Branch
		b.Reason = store.CleanText(b.Reason)
		r.Branches = append(slices.Clip(r.Branches), b)
	}
	if c.Release {
		for _, key := range d.held(c.RunID) {
			d.hold(key, "")
		}
		r.Released, r.Hold = true, nil
	}
	for _, key := range c.Hold {
		switch holder := d.holder(key); holder {
		case "":
			r.Hold = append(slices.Clip(r.Hold), key)
			d.hold(key, c.RunID)
		case c.RunID:
		default:
			return &store.OccupiedError{RunID: c.RunID, Key: key, Holder: holder}
		}
	}
	return nil
}

func (d *Draft) hold(key, holder string) {
	if d.holds == nil {
		d.holds = map[string]string{}
	}
	d.holds[key] = holder
}

func (d *Draft) holder(key string) string {
	for at := d; at != nil; at = at.below {
		if holder, drafted := at.holds[key]; drafted {
			return holder
		}
	}
	return d.world.Holder(key)
}

// held returns the exclusive keys that a run holds, and may return some that it
// has freed.
func (d *Draft) held(id string) []string {
	keys := slices.Clone(d.world.Held(id))
	for at := d; at != nil; at = at.below {
		for key, holder := range at.holds {
			if holder == id {
				keys = append(keys, key)
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return d.holder(key) != id })
}

// checkDedup checks S12 for a run that is about to become unfinished.
func (d *Draft) checkDedup(run *store.Run) error {
	if run.Dedup == "" || run.Status.Terminal() {
		return nil
	}
	if id := d.dedup(run); id != "" {
		return &store.ExistsError{RunID: id}
	}
	return nil
}

// dedup returns another unfinished run with the key of run, "" if there is none.
func (d *Draft) dedup(run *store.Run) string {
	drafted := func(id string) *Row {
		for at := d; at != nil; at = at.below {
			if r := at.rows[id]; r != nil {
				return r
			}
		}
		return nil
	}
	for at := d; at != nil; at = at.below {
		for _, id := range at.order {
			o := &drafted(id).Run
			if id != run.ID && o.Queue == run.Queue && o.Dedup == run.Dedup && !o.Status.Terminal() {
				return id
			}
		}
	}
	// The holder in the world counts, unless it is a run in the draft: that one was
	// checked above.
	id := d.world.Dedup(run.Queue, run.Dedup)
	if id == run.ID || drafted(id) != nil {
		return ""
	}
	return id
}

// send drafts the delivery of a message (S13 to S15), and returns its number; 0: it is
// dropped.
func (d *Draft) send(m *store.Message) (seq int64, err error) {
	r := d.row(m.To)
	if r == nil {
		_, err := Drop(m, nil)
		return 0, err
	}
	if d.delivered(m) {
		return 0, nil // S14
	}
	run := &r.Run
	if drop, err := Drop(m, run); drop || err != nil {
		return 0, err
	}
	run.Inbox++
	run.ArchivedSeq = min(run.ArchivedSeq, 1)
	run.UpdatedAt = max(run.UpdatedAt, d.now)
	if m.Kind == store.KindCancel {
		run.CancelAsked = true
		if run.Status == store.Pending {
			run.WakeAt = 0
		}
	}
	r.Changed = true
	kept := *m
	kept.Seq, kept.IfLive = run.Inbox, false
	r.Messages = append(slices.Clip(r.Messages), kept)
	if d.received == nil {
		d.received = map[delivery]struct{}{}
	}
	d.received[delivery{m.To, m.Kind, m.ID}] = struct{}{}
	d.news.Sent(m.To, run.Owner, run.Inbox)
	return run.Inbox, nil
}

func (d *Draft) delivered(m *store.Message) bool {
	for at := d; at != nil; at = at.below {
		if _, ok := at.received[delivery{m.To, m.Kind, m.ID}]; ok {
			return true
		}
	}
	return d.world.Received(m)
}

// Drop reports whether a message to run, nil if there is none, is dropped (S15), and
// returns why it is refused.
func Drop(m *store.Message, run *store.Run) (drop bool, err error) {
	switch {
	case run != nil && !run.Status.Terminal():
		return false, nil
	case m.IfLive:
		return true, nil
	case run == nil:
		return false, &store.NotFoundError{RunID: m.To}
	}
	return false, &store.StatusError{RunID: run.ID, Status: run.Status}
}
