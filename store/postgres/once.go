package postgres

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/sqlstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/draft"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// A Change that concerns one run, or only delivers messages, is one statement and one round
// trip, and so are many such Changes of one kind. A statement writes what everything allows. What
// it does not write is left to transact, which also finds out why it is refused. docs/adr/0051-one-statement.md
// says what keeps that right.

// carryOnce carries out members without a transaction of several statements, if all of them are of
// the kinds for which there is a statement: steps and swift Changes, creations, and messages. left holds
// the ones for transact.
func (s *Store) carryOnce(w *wire, members []*member) (left []*member, err error) {
	if len(members) == 1 {
		tried, err := s.carryOne(w, members[0])
		switch {
		case err != nil || members[0].decided:
			return nil, err
		case tried && !members[0].c.Release:
			return members, nil
		}
	}
	var rows, births, posts []*member
	for _, m := range members {
		switch {
		case m.c.Plain() || swift(m.c):
			rows = append(rows, m)
		case born(m.c):
			births = append(births, m)
		case posted(m.c):
			posts = append(posts, m)
		default:
			return members, nil // together, which takes one transaction
		}
	}
	for _, kind := range []struct {
		members []*member
		carry   func(*wire, []*member) ([]*member, error)
	}{{rows, s.carry}, {births, s.createMany}, {posts, s.sendMany}} {
		if len(kind.members) == 0 {
			continue
		}
		l, err := kind.carry(w, kind.members)
		if err != nil {
			return nil, err
		}
		left = append(left, l...)
	}
	return left, nil
}

// carryOne carries out one member by the statement for one, which costs the server half of what the
// statement for many does. tried is false if there is none for it.
func (s *Store) carryOne(w *wire, m *member) (tried bool, err error) {
	c := m.c
	var done bool
	switch {
	case swift(c) && len(c.Events) == 1:
		done, err = s.changeOne(w, m)
	case born(c) && len(c.Events) <= 2 && len(c.Create.Attributes) == 0:
		done, err = s.createOne(w, m)
	case posted(c) && len(c.Send) == 1:
		done, err = s.sendOne(w, c)
	case received(c):
		done, err = s.receiveOne(w, m)
	default:
		return false, nil
	}
	if faultOf(err) == faultConflict {
		return true, nil // something came in between: the transaction sees it
	}
	if done {
		s.counts.commits.Add(1)
		m.decide(nil)
	}
	return true, err
}

// received reports whether a Change delivers a message to its own run, under a number that is known,
// records that with one event, and changes no more of the row than what a wait does.
func received(c *store.Change) bool {
	return c.RunID != "" && len(c.Events) == 1 && len(c.Send) == 1 && c.Send[0].To == c.RunID && c.Send[0].Kind != store.KindCancel &&
		c.Expect.Inbox != nil && len(c.Expect.Statuses) == 0 && !c.Expect.NoCancel && !c.Expect.TakeEpoch && !c.Yield && !c.Release &&
		c.Create == nil && c.Branch == nil && len(c.Start) == 0 && len(c.Hold) == 0 && ofWait(c.Row)
}

// ofWait reports whether a patch sets only what changes when a run waits, or goes on.
func ofWait(p *store.RowPatch) bool {
	return p == nil || swiftPatch(p) && p.Version == nil && p.Recoverable == nil && p.CancelAsked == nil && p.Paused == nil &&
		p.StartedAt == nil && p.EndedAt == nil && p.DeadlineAt == nil
}

// born reports whether a Change creates its run, and does nothing else.
func born(c *store.Change) bool {
	return c.Create != nil && c.Branch == nil && len(c.Send) == 0 && len(c.Start) == 0 && len(c.Hold) == 0
}

// posted reports whether a Change only delivers messages.
func posted(c *store.Change) bool { return c.RunID == "" && len(c.Start) == 0 }

// changeValues returns the arguments of change_run.
func changeValues(m *member) []driverValue {
	c := m.c
	p := c.Row
	if p == nil {
		p = &store.RowPatch{}
	}
	e := &c.Events[0]
	args := make([]driverValue, 0, 34)
	args = append(args, m.no, e.Seq, c.Expect.Epoch, c.EventEpoch(0))
	args = appendEventValues(args, e)
	args = append(args, orNull(c.Expect.Inbox), c.Expect.NoCancel)
	if list, any := befores(c); any {
		args = append(args, nil)
	} else {
		args = append(args, list)
	}
	args = append(args, c.Expect.TakeEpoch)
	if p.Status == nil {
		args = append(args, nil)
	} else {
		args = append(args, string(*p.Status))
	}
	if c.Yield || c.Expect.TakeEpoch {
		args = append(args, c.RowEpoch())
	} else {
		args = append(args, nil)
	}
	var reason driverValue
	if p.Reason != nil {
		reason = store.CleanText(*p.Reason)
	}
	args = append(args, orNull(p.Version), orNull(p.Code), reason, orNull(p.Recoverable), orNull(p.Seen), orNull(p.CancelAsked), orNull(p.Paused))
	for _, t := range []*store.Time{p.StartedAt, p.EndedAt, p.WakeAt, p.DeadlineAt} {
		args = append(args, orNull((*int64)(t)))
	}
	return append(args, c.Release)
}

// changeOne carries out a swift Change of one event.
func (s *Store) changeOne(w *wire, m *member) (done bool, err error) {
	c := m.c
	after := store.Run{ID: c.RunID}
	err = w.query("change_run", func(v []driverValue) error {
		done = true
		after.Owner, after.Status, after.Paused = v[0].(string), store.Status(v[1].(string)), v[2].(bool)
		return nil
	}, changeValues(m)...)
	if err != nil || !done {
		return false, err
	}
	s.notices.tell(changedTo(c, &after))
	return true, nil
}

// receiveOne carries out a Change that delivers a message to its own run and records the receipt.
func (s *Store) receiveOne(w *wire, m *member) (done bool, err error) {
	c, msg := m.c, &m.c.Send[0]
	clear(c.Sent) // S42: an earlier attempt may have filled it in
	p := c.Row
	if p == nil {
		p = &store.RowPatch{}
	}
	e := &c.Events[0]
	args := make([]driverValue, 0, 28)
	args = append(args, m.no, e.Seq, c.Expect.Epoch)
	args = appendEventValues(args, e)
	list, any := befores(c)
	if any {
		list = unfinished
	}
	args = append(args, *c.Expect.Inbox, list)
	var reason driverValue
	if p.Reason != nil {
		reason = store.CleanText(*p.Reason)
	}
	args = append(args, orNull((*string)(p.Status)), orNull(p.Code), reason, orNull(p.Seen), orNull((*int64)(p.WakeAt)))
	args = append(args, string(msg.Kind), msg.Name, msg.ID, int64(msg.At), sqlstore.Text(msg.Data), sqlstore.Bytes(msg.Payload))
	after := store.Run{ID: c.RunID}
	err = w.query("receive", func(v []driverValue) error {
		done = true
		after.Owner, after.Status, after.Paused = v[0].(string), store.Status(v[1].(string)), v[2].(bool)
		return nil
	}, args...)
	if err != nil || !done {
		return false, err
	}
	seq := *c.Expect.Inbox + 1
	c.SetSent(0, seq)
	news := changedTo(c, &after)
	news.Sent(c.RunID, after.Owner, seq)
	s.notices.tell(news)
	return true, nil
}

// changedTo is the news of a Change after which the row is like this.
func changedTo(c *store.Change, after *store.Run) (news notice.News) {
	// How the row was is not known here. What the Change sets counts as new: to tell too much costs the
	// listeners a look, to tell too little loses it.
	before := *after
	if c.Row != nil && c.Row.Status != nil {
		before.Status = ""
	}
	if c.Row != nil && c.Row.Paused != nil {
		before.Paused = !after.Paused
	}
	if c.Yield || c.Expect.TakeEpoch {
		before.Owner = "?"
	}
	news.Carried(c, &before, after)
	return news
}

// orNull returns what p points to, NULL for nil.
func orNull[T any](p *T) driverValue {
	if p == nil {
		return nil
	}
	return *p
}

// createOne creates a run without attributes and its first event or two.
func (s *Store) createOne(w *wire, m *member) (done bool, err error) {
	c := m.c
	run := draft.Born(c)
	args := make([]driverValue, 0, runColumns-2+2*(eventColumns-1))
	for i, v := range sqlstore.RunValues(&run) {
		if i != updatedAt {
			args = append(args, v)
		}
	}
	for i := range c.Events {
		e := &c.Events[i]
		args = append(args, e.Seq, c.EventEpoch(i))
		args = appendEventValues(args, e)
	}
	args = args[:cap(args)] // without a second event, its columns are NULL
	var news notice.News
	err = w.query("create_run", func(v []driverValue) error {
		s.numbers.put(c.RunID, v[0].(int64))
		news.Created(&run, store.Time(v[1].(int64)))
		done = true
		return nil
	}, args...)
	if err != nil {
		return false, err
	}
	s.notices.tell(news)
	return done, nil
}

// updatedAt is the place of a column that the server sets in sqlstore.RunValues.
const updatedAt = 30

// createMany creates runs.
func (s *Store) createMany(w *wire, members []*member) (left []*member, err error) {
	rows := make([]array, runColumns-1)
	var events [eventColumns]array
	var attributes [3]array
	of := make(map[string]*member, len(members))
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b *member) int { return cmp.Compare(a.c.RunID, b.c.RunID) }) {
		c := m.c
		of[c.RunID] = m
		run := draft.Born(c)
		addRun(rows, &run)
		for i := range c.Events {
			events[0].text(c.RunID)
			addEventValues(events[1:], c.EventEpoch(i), &c.Events[i])
		}
		for name, value := range run.Attributes {
			attributes[0].text(c.RunID)
			attributes[1].text(name)
			attributes[2].text(value)
		}
	}
	args := values(slices.Delete(rows, updatedAt, updatedAt+1))
	args = append(append(args, values(events[:])...), values(attributes[:])...)
	numbers := make(map[string]int64, len(members))
	var news notice.News
	err = w.query("create_runs", func(v []driverValue) error {
		id := v[0].(string)
		numbers[id] = v[1].(int64)
		run := draft.Born(of[id].c)
		news.Created(&run, store.Time(v[2].(int64)))
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	if len(numbers) > 0 {
		s.counts.commits.Add(1)
	}
	for _, m := range members {
		no, created := numbers[m.c.RunID]
		if !created {
			left = append(left, m)
			continue
		}
		s.numbers.put(m.c.RunID, no)
		m.decide(nil)
	}
	s.notices.tell(news)
	return left, nil
}

// sendOne delivers a message, the only one of c.
func (s *Store) sendOne(w *wire, c *store.Change) (done bool, err error) {
	m := &c.Send[0]
	clear(c.Sent) // S42: an earlier attempt may have filled it in
	var news notice.News
	err = w.query("send_message", func(v []driverValue) error {
		done = true
		c.SetSent(0, v[0].(int64))
		news.Sent(m.To, v[1].(string), v[0].(int64))
		return nil
	}, m.To, string(m.Kind), m.Name, m.ID, int64(m.At), sqlstore.Text(m.Data), sqlstore.Bytes(m.Payload), m.Kind == store.KindCancel)
	if err != nil {
		return false, err
	}
	s.notices.tell(news)
	return done, nil
}

// sendMany delivers the messages of members.
func (s *Store) sendMany(w *wire, members []*member) (left []*member, err error) {
	type letter struct {
		*store.Message
		change, nth int
	}
	var letters []letter
	for i, m := range members {
		clear(m.c.Sent)
		for k := range m.c.Send {
			letters = append(letters, letter{&m.c.Send[k], i, k})
		}
	}
	slices.SortStableFunc(letters, func(a, b letter) int { return cmp.Compare(a.To, b.To) })
	var a [11]array
	for _, l := range letters {
		a[0].int(int64(l.change))
		a[1].int(int64(len(members[l.change].c.Send)))
		a[2].text(l.To)
		a[3].text(string(l.Kind))
		a[4].text(l.Name)
		a[5].text(l.ID)
		a[6].int(int64(l.At))
		a[7].textOrNull(l.Data)
		a[8].bytes(l.Payload)
		a[9].bool(l.Kind == store.KindCancel)
		a[10].int(int64(l.nth))
	}
	sent := make([]bool, len(members))
	var news notice.News
	err = w.query("send_messages", func(v []driverValue) error {
		c, nth := members[v[0].(int64)].c, int(v[1].(int64))
		sent[v[0].(int64)] = true
		c.SetSent(nth, v[2].(int64))
		news.Sent(c.Send[nth].To, v[3].(string), v[2].(int64))
		return nil
	}, values(a[:])...)
	if faultOf(err) == faultConflict {
		return members, nil
	}
	if err != nil {
		return nil, err
	}
	for i, m := range members {
		if sent[i] {
			m.decide(nil)
		} else {
			left = append(left, m)
		}
	}
	if !news.Empty() {
		s.counts.commits.Add(1)
	}
	s.notices.tell(news)
	return left, nil
}
