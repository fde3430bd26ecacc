package postgres

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/internal/notice"
)

// swift reports whether a Change can be carried out by carry's one statement: it changes the
// row of its own run, may append to its log, and does nothing else. An end, an interruption, a
// wait and a take-over are such Changes.
func swift(c *store.Change) bool {
	return c.RunID != "" && (c.Row != nil || c.Yield || c.Expect.TakeEpoch) && c.Create == nil && c.Branch == nil &&
		len(c.Send) == 0 && len(c.Start) == 0 && len(c.Hold) == 0 && swiftPatch(c.Row)
}

// alone reports whether a Change has no events, whose place in the log would keep it from being
// carried out late. The row that was read for it does.
func alone(c *store.Change) bool { return len(c.Events) == 0 }

// swiftPatch leaves out what hardly ever changes.
func swiftPatch(p *store.RowPatch) bool {
	return p == nil || p.Branch == nil && p.Generation == nil && p.Strikes == nil && p.Priority == nil && p.ArchivedSeq == nil && p.Attributes == nil
}

// statuses are all there are.
var statuses = []store.Status{
	store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted, store.Completed, store.Failed, store.Cancelled,
}

// befores lists the statuses that a run may have before a swift Change (S9), each with a comma
// after it; any is true if it may have any. Where the Change sets a status, those of a run that had
// ended are not among them: its Dedup would have to be looked at.
func befores(c *store.Change) (list string, any bool) {
	sets := c.Row != nil && c.Row.Status != nil
	if !sets && len(c.Expect.Statuses) == 0 {
		return "", true
	}
	if sets && len(c.Expect.Statuses) == 0 {
		return beforeAll[*c.Row.Status], false
	}
	for _, from := range c.Expect.Statuses {
		if !sets || store.MayFollow(from, *c.Row.Status) && !from.Terminal() {
			list += string(from) + ","
		}
	}
	return list, false
}

// beforeAll has what befores returns for Changes that expect no status, by the one they set.
var beforeAll = func() map[store.Status]string {
	all := map[store.Status]string{}
	for _, to := range statuses {
		for _, from := range statuses {
			if store.MayFollow(from, to) && !from.Terminal() {
				all[to] += string(from) + ","
			}
		}
	}
	return all
}()

// unfinished lists the statuses of runs that have not ended, each with a comma after it.
var unfinished = func() (list string) {
	for _, s := range statuses {
		if !s.Terminal() {
			list += string(s) + ","
		}
	}
	return list
}()

// carry carries out members of which each is plain or swift, in one statement and one
// round trip. The statement writes those that everything allows. The others, and all if
// another transaction has come in between, are left to transact, which also says why one is
// refused.
func (s *Store) carry(w *wire, members []*member) (left []*member, err error) {
	var e [17]array
	var a [22]array
	rows := map[int64]*member{}
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b *member) int { return cmp.Compare(a.c.RunID, b.c.RunID) }) {
		if m.c.Plain() {
			addEvents(&e, m)
			continue
		}
		rows[m.no] = m
		addSwift(&a, m)
		for i := range m.c.Events {
			addEvent(&e, m.no, m.c.EventEpoch(i), &m.c.Events[i])
			e[15].null()
			e[16].null()
		}
	}
	written := make(map[int64]bool, len(members))
	var news notice.News
	err = w.query("carry_out", func(v []driverValue) error {
		no := v[0].(int64)
		written[no] = true
		if m := rows[no]; m != nil {
			before := store.Run{Status: store.Status(v[1].(string)), Owner: v[2].(string), Paused: v[3].(bool)}
			addNews(&news, m.c, &before)
		}
		return nil
	}, append(values(e[:]), values(a[:])...)...)
	if faultOf(err) == faultConflict {
		return members, nil
	}
	if err != nil {
		return nil, err
	}
	if len(written) > 0 {
		s.counts.commits.Add(1)
	}
	for _, m := range members {
		if written[m.no] {
			m.decide(nil)
		} else {
			left = append(left, m)
		}
	}
	s.notices.tell(news)
	return left, nil
}

// addNews adds what c does to a run that others may be waiting for; before is how the run was,
// as far as carry_out returns it. It is what package draft says, but for times and reasons.
func addNews(news *notice.News, c *store.Change, before *store.Run) {
	before.ID = c.RunID
	after := *before
	c.Row.Apply(&after)
	if c.Yield || c.Expect.TakeEpoch {
		after.Owner = ""
	}
	news.Carried(c, before, &after)
}

func addSwift(a *[22]array, m *member) {
	c := m.c
	p := c.Row
	if p == nil {
		p = &store.RowPatch{}
	}
	a[0].int(m.no)
	a[1].int(c.Expect.Epoch)
	if len(c.Events) > 0 {
		a[2].int(c.Events[0].Seq - 1)
	} else {
		a[2].null()
	}
	addOr(&a[3], c.Expect.Inbox, a[3].int)
	a[4].bool(c.Expect.NoCancel)
	if list, any := befores(c); any {
		a[5].null()
	} else {
		a[5].text(list)
	}
	addOr(&a[6], p.Status, func(s store.Status) { a[6].text(string(s)) })
	if c.Yield || c.Expect.TakeEpoch {
		a[7].int(c.RowEpoch())
	} else {
		a[7].null()
	}
	addOr(&a[8], p.Version, a[8].text)
	addOr(&a[9], p.Code, a[9].text)
	addOr(&a[10], p.Reason, func(s string) { a[10].text(store.CleanText(s)) })
	addOr(&a[11], p.Recoverable, a[11].bool)
	addOr(&a[12], p.Seen, a[12].int)
	addOr(&a[13], p.CancelAsked, a[13].bool)
	addOr(&a[14], p.Paused, a[14].bool)
	for i, t := range []*store.Time{p.StartedAt, p.EndedAt, p.WakeAt, p.DeadlineAt} {
		addOr(&a[15+i], t, func(t store.Time) { a[15+i].int(int64(t)) })
	}
	a[19].bool(c.Release)
	a[20].bool(c.Expect.TakeEpoch)
	if alone(c) {
		a[21].int(m.asOf)
	} else {
		a[21].null()
	}
}

// addOr adds what v points to, NULL for nil.
func addOr[T any](a *array, v *T, add func(T)) {
	if v == nil {
		a.null()
		return
	}
	add(*v)
}
