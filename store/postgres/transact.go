package postgres

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
)

// errAgain ends an attempt that met a concurrent change made after it had read.
// Nothing of the attempt is written; the next one sees the change.
var errAgain = errors.New("postgres: begin again")

// transact carries out members, at least one of them not plain, in one transaction.
//
// ctx can end it while it waits and reads. Once it writes, it finishes.
func (s *Store) transact(ctx context.Context, w *wire, members []*member) error {
	if err := w.begin(); err != nil {
		return err
	}
	w.ctx = ctx
	d, refused, err := s.plan(w, members)
	w.ctx = context.Background()
	if err != nil {
		return err
	}
	accepted := slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return refused[m] != nil })
	// A verdict may depend on what another member does, so it is not given before
	// that member has committed.
	if err := s.judge(w, refused); err != nil {
		return err
	}
	if len(accepted) == 0 {
		w.rollback()
		decide(refused)
		return nil
	}
	left, err := s.writeDraft(w, d, accepted)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		// Another transaction got in the way of these, with a new run or an event.
		// Undo everything, find out about them, and go on with the others.
		w.rollback()
		return s.readBack(w, left)
	}
	if err := w.commit(); err != nil {
		return err
	}
	for _, m := range accepted {
		m.decide(nil)
	}
	decide(refused)
	s.remember(d)
	s.notices.tell(d.News())
	return nil
}

// plan locks the rows, reads what the members need, and drafts them. It takes
// members in order, and each sees the effect of those before it. refused holds the
// members that cannot be carried out, with the reason.
func (s *Store) plan(q querier, members []*member) (d *drafted, refused map[*member]error, err error) {
	w := newWorld()
	for _, read := range []func(querier, *world, []*member) error{
		s.lockRows, s.readDedup, s.readHolds, s.readInbox, s.readBranches, s.readLive,
	} {
		if err := read(q, w, members); err != nil {
			return nil, nil, err
		}
	}
	d = &drafted{Draft: draft.New(w, w.now), world: w}
	refused = map[*member]error{}
	for _, m := range members {
		if r := w.runs[m.c.RunID]; r != nil {
			m.no = r.no
		}
		if err := d.Change(m.c); err != nil {
			refused[m] = err
		}
	}
	return d, refused, nil
}

// judge checks the refused members against the log. A member whose last event is
// there was carried out earlier, and that is what changed the row that now refuses
// it (S6): its reason becomes nil. A member that the log would not accept is
// fenced, whatever else is wrong with it (S3).
func (s *Store) judge(q querier, refused map[*member]error) error {
	var doubtful, of []*member
	for m := range refused {
		if len(m.c.Events) > 0 {
			doubtful = append(doubtful, &member{c: m.c, no: m.no})
			of = append(of, m)
		}
	}
	if err := s.readBack(q, doubtful); err != nil {
		return err
	}
	var nos array
	extends := map[int64]*member{}
	for i, m := range doubtful {
		switch {
		case m.decided && m.err == nil:
			of[i].found, refused[of[i]] = true, nil
		case m.c.Create == nil && of[i].no != 0:
			nos.int(of[i].no)
			extends[of[i].no] = of[i]
		}
	}
	if len(extends) == 0 {
		return nil
	}
	return q.query("log_heads", func(v []driverValue) error {
		m := extends[v[0].(int64)]
		head := &store.Event{Seq: v[1].(int64), Epoch: v[2].(int64)}
		row := &store.Run{ID: m.c.RunID, Epoch: m.c.Expect.Epoch} // only the log is checked here
		if m.c.Expect.Inbox != nil {
			row.Inbox = *m.c.Expect.Inbox
		}
		err := m.c.Check(row, head, false)
		if errors.Is(err, store.ErrFenced) && !errors.Is(refused[m], store.ErrFenced) {
			refused[m] = err
		}
		return nil
	}, nos.value())
}

func decide(verdicts map[*member]error) {
	for m, err := range verdicts {
		m.decide(err)
	}
}

// lockRows locks every row the members may read or change, in one statement,
// sorted (S13 numbers messages under the receiver's lock).
func (s *Store) lockRows(q querier, w *world, members []*member) error {
	ids := map[string]bool{}
	for _, m := range members {
		c := m.c
		if c.RunID != "" && !c.Plain() {
			ids[c.RunID] = true
		}
		for i := range c.Start {
			ids[c.Start[i].RunID] = true
		}
		for i := range c.Send {
			ids[c.Send[i].To] = true
		}
	}
	return q.query("lock_runs", func(v []driverValue) error {
		w.now = store.Time(v[0].(int64))
		if v[1] == nil {
			return nil
		}
		r, err := scanRun(v[1:])
		if err != nil {
			return err
		}
		w.runs[r.ID] = &locked{no: r.No, run: r.Run(), attributes: r.Attributes}
		return nil
	}, texts(slices.Sorted(maps.Keys(ids))...))
}

// changes yields the Changes of m that concern their own run.
func (m *member) changes(yield func(*store.Change) bool) {
	if !yield(m.c) {
		return
	}
	for i := range m.c.Start {
		if !yield(&m.c.Start[i]) {
			return
		}
	}
}

func (s *Store) readDedup(q querier, w *world, members []*member) error {
	var queues, dedups array
	for _, m := range members {
		for c := range m.changes {
			run := c.Create
			if run == nil {
				r := w.runs[c.RunID]
				if r == nil || !c.Revives(&r.run) {
					continue
				}
				run = &r.run
			}
			if run.Dedup != "" {
				queues.text(run.Queue)
				dedups.text(run.Dedup)
			}
		}
	}
	if len(queues.b) == 0 {
		return nil
	}
	return q.query("dedup_holders", func(v []driverValue) error {
		w.dedup[dedupKey{v[1].(string), v[2].(string)}] = v[0].(string)
		return nil
	}, queues.value(), dedups.value())
}

func (s *Store) readHolds(q querier, w *world, members []*member) error {
	var keys []string
	for _, m := range members {
		for c := range m.changes {
			keys = append(keys, c.Hold...)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return q.query("holds", func(v []driverValue) error {
		w.holds[v[0].(string)] = v[1].(string)
		return nil
	}, texts(keys...))
}

func (s *Store) readInbox(q querier, w *world, members []*member) error {
	var ords, nos, kinds, ids array
	var keys []messageKey
	for _, m := range members {
		for i := range m.c.Send {
			msg := &m.c.Send[i]
			r := w.runs[msg.To]
			if r == nil || r.run.Inbox == 0 {
				continue
			}
			ords.int(int64(len(keys)))
			nos.int(r.no)
			kinds.text(string(msg.Kind))
			ids.text(msg.ID)
			keys = append(keys, messageKey{to: msg.To, kind: msg.Kind, id: msg.ID})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return q.query("inbox_ids", func(v []driverValue) error {
		w.inbox[keys[v[0].(int64)]] = true
		return nil
	}, ords.value(), nos.value(), kinds.value(), ids.value())
}

func (s *Store) readBranches(q querier, w *world, members []*member) error {
	var nos array
	ids := map[int64]string{}
	for _, m := range members {
		if r := w.runs[m.c.RunID]; m.c.Branch != nil && r != nil {
			nos.int(r.no)
			ids[r.no] = m.c.RunID
		}
	}
	if len(nos.b) == 0 {
		return nil
	}
	return q.query("branch_numbers", func(v []driverValue) error {
		w.branches[branchKey{ids[v[0].(int64)], int32(v[1].(int64))}] = true
		return nil
	}, nos.value())
}

// readLive reads which executors are live if a member wants to take over a run
// that has an owner.
func (s *Store) readLive(q querier, w *world, members []*member) error {
	for _, m := range members {
		r := w.runs[m.c.RunID]
		if !m.c.Expect.TakeEpoch || r == nil || r.run.Owner == "" {
			continue
		}
		all, err := s.census(q)
		if err != nil {
			return err
		}
		w.live = all.isLive
		return nil
	}
	return nil
}

// writeDraft writes the draft in bulk. left holds members that another transaction
// got in the way of; this transaction must then be given up.
func (s *Store) writeDraft(q querier, d *drafted, members []*member) (left []*member, err error) {
	if err := updateRows(q, d); err != nil {
		return nil, err
	}
	if err := s.insertRows(q, d); err != nil {
		return nil, err
	}
	if left, err = s.writeEvents(q, d, members); err != nil || len(left) > 0 {
		return left, err
	}
	if err := writeMessages(q, d); err != nil {
		return nil, err
	}
	if err := writeBranches(q, d); err != nil {
		return nil, err
	}
	if err := writeAttributes(q, d); err != nil {
		return nil, err
	}
	return nil, writeHolds(q, d)
}

func updateRows(q querier, d *drafted) error {
	rows := d.sorted(func(r *draft.Row) bool { return r.Created() == nil && r.Changed })
	if len(rows) == 0 {
		return nil
	}
	var a [24]array
	for _, r := range rows {
		addPatched(&a, r.no, &r.Run, d.attributes(r.Run.ID, r.Row))
	}
	_, err := q.exec("update_runs", values(a[:])...)
	return err
}

// insertRows creates runs, after rows were updated, so that a Dedup freed in this
// transaction is available.
func (s *Store) insertRows(q querier, d *drafted) error {
	rows := d.sorted(func(r *draft.Row) bool { return r.Created() != nil })
	if len(rows) == 0 {
		return nil
	}
	a := make([]array, runColumns-1)
	for _, r := range rows {
		addRun(a, &r.Run)
	}
	err := q.query("insert_runs", func(v []driverValue) error {
		d.world.runs[v[0].(string)] = &locked{no: v[1].(int64)}
		return nil
	}, values(a)...)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if d.no(r.Run.ID) == 0 {
			return errAgain // another transaction created it since the rows were locked
		}
	}
	return nil
}

// writeEvents appends the events of all members and of the runs they start.
func (s *Store) writeEvents(q querier, d *drafted, members []*member) (left []*member, err error) {
	var all []*member
	for _, m := range members {
		if no := d.no(m.c.RunID); no != 0 {
			m.no = no
		}
		if len(m.c.Events) > 0 {
			all = append(all, m)
		}
	}
	own := len(all)
	started := map[string]bool{}
	for _, m := range members {
		for i := range m.c.Start {
			c := &m.c.Start[i]
			if d.creates(c) && !started[c.RunID] {
				started[c.RunID] = true
				all = append(all, &member{c: c, no: d.no(c.RunID)})
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	written, err := appendEvents(q, all)
	if err != nil {
		return nil, err
	}
	for _, m := range all[:own] {
		if !written[m.no] {
			left = append(left, m)
		}
	}
	return left, nil
}

// creates reports whether the draft creates the run of c, from c: a Start of a run
// that already exists does nothing.
func (d *drafted) creates(c *store.Change) bool {
	r := d.Row(c.RunID)
	return r != nil && r.Created() == c
}

func writeMessages(q querier, d *drafted) error {
	rows := d.sorted(func(r *draft.Row) bool { return len(r.Messages) > 0 })
	if len(rows) == 0 {
		return nil
	}
	var a [8]array
	for _, r := range rows {
		for i := range r.Messages {
			m := &r.Messages[i]
			a[0].int(r.no)
			a[1].int(m.Seq)
			a[2].text(string(m.Kind))
			a[3].text(m.Name)
			a[4].text(m.ID)
			a[5].int(int64(m.At))
			a[6].textOrNull(m.Data)
			a[7].bytes(m.Payload)
		}
	}
	_, err := q.exec("insert_messages", values(a[:])...)
	return err
}

func writeBranches(q querier, d *drafted) error {
	rows := d.sorted(func(r *draft.Row) bool { return len(r.Branches) > 0 })
	if len(rows) == 0 {
		return nil
	}
	var a [8]array
	for _, r := range rows {
		for _, b := range r.Branches {
			a[0].int(r.no)
			a[1].int(int64(b.N))
			a[2].int(int64(b.Parent))
			a[3].int(int64(b.Generation))
			a[4].int(b.Cutoff)
			a[5].text(b.CutScope)
			a[6].text(b.Reason)
			a[7].int(int64(b.CreatedAt))
		}
	}
	_, err := q.exec("insert_branches", values(a[:])...)
	return err
}

func writeAttributes(q querier, d *drafted) error {
	rows := d.sorted(func(r *draft.Row) bool { return r.Attributes })
	var old, nos, names, vals array
	for _, r := range rows {
		if r.Created() == nil {
			old.int(r.no)
		}
		for name, value := range r.Run.Attributes {
			nos.int(r.no)
			names.text(name)
			vals.text(value)
		}
	}
	if len(old.b) > 0 {
		if _, err := q.exec("delete_attributes", old.value()); err != nil {
			return err
		}
	}
	if len(nos.b) == 0 {
		return nil
	}
	_, err := q.exec("insert_attributes", nos.value(), names.value(), vals.value())
	return err
}

func writeHolds(q querier, d *drafted) error {
	if rows := d.sorted(func(r *draft.Row) bool { return r.Released }); len(rows) > 0 {
		var nos array
		for _, r := range rows {
			nos.int(r.no)
		}
		if _, err := q.exec("release_holds", nos.value()); err != nil {
			return err
		}
	}
	rows := d.sorted(func(r *draft.Row) bool { return len(r.Hold) > 0 })
	if len(rows) == 0 {
		return nil
	}
	var keys, nos array
	for _, r := range rows {
		for _, key := range r.Hold {
			keys.text(key)
			nos.int(r.no)
		}
	}
	_, err := q.exec("insert_holds", keys.value(), nos.value())
	return err
}

// remember caches the numbers of the created runs.
func (s *Store) remember(d *drafted) {
	for id, r := range d.Rows {
		if r.Created() != nil {
			s.numbers.put(id, d.no(id))
		}
	}
}
