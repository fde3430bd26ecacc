package conformance

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/store"
)

var inboxCases = []Case{
	{Name: "a message reads back as it was sent", Clauses: "S4, S13", run: inboxReadsBack},
	{Name: "messages are numbered in the order they were committed", Clauses: "S13", run: inboxOrder},
	{Name: "a second message of a kind with the same id is dropped", Clauses: "S14", run: inboxDedup},
	{Name: "a cancel message asks for cancellation, once", Clauses: "S14, S15", run: inboxCancel},
	{Name: "a message to nobody fails, unless it is only for the living", Clauses: "S15", run: inboxAbsent},
	{Name: "a message to a run that has ended fails, unless it is only for the living", Clauses: "S15", run: inboxEnded},
	{Name: "a run reads the messages behind a number", Clauses: "S13", run: inboxAfter},
	{Name: "many senders and a busy owner lose no message", Clauses: "S1, S13, S14", run: inboxRace},
	{Name: "of a message and the end of its receiver one comes first", Clauses: "S13, S15", run: inboxEndRace},
	{Name: "runs that send to each other do not lock up", Clauses: "S1, S13", run: inboxCross},
	{Name: "the numbers that a commit hands over are those of its messages", Clauses: "S42", run: inboxSent},
	{Name: "senders that race for an inbox get the numbers of their own messages", Clauses: "S42", run: inboxSentRace},
}

func inboxReadsBack(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "r")
	messages := []store.Message{
		{To: "r", Kind: store.KindSignal, Name: "approve ü 🚚", ID: "id %_'\"", At: t.now(), Data: []byte(`{"by":"\u0000"}`), Payload: []byte("\x00\xff")},
		{To: "r", Kind: store.KindPause, ID: "1", At: t.now()},
		{To: "r", Kind: store.KindChild, Name: "c", ID: "1", At: t.now(), Data: []byte(`{}`), IfLive: true},
		{To: "r", Kind: "kind of tomorrow", ID: "1"},
	}
	t.must(s, send(messages...))
	for i := range messages {
		messages[i].Seq, messages[i].IfLive = int64(i+1), false
	}
	for _, reader := range []store.Store{s, t.handle(d)} {
		require.Equal(t, messages, t.all(reader, "r").Inbox)
	}
}

func inboxOrder(t *T) {
	s := t.open()
	t.run(s, "a", func(r *store.Run) { r.Inbox = 7 })
	require.Zero(t, t.row(s, "a").Inbox, "S13: messages are numbered by the store, whatever a new row says")
	w := t.run(s, "b")
	var want []string
	for i := range 5 {
		x, y, z := fmt.Sprint("x", i), fmt.Sprint("y", i), fmt.Sprint("z", i)
		t.must(s, send(signal("a", x), signal("b", x), signal("a", y)))
		c := w.append(step("a"))
		c.Send = []store.Message{signal("a", z)}
		w.must(s, c)
		want = append(want, x, y, z)
	}
	var got []string
	for i, m := range t.all(s, "a").Inbox {
		require.Equal(t, int64(i+1), m.Seq)
		got = append(got, m.ID)
	}
	require.Equal(t, want, got, "S13: first in, first out")
	require.Equal(t, int64(15), t.row(s, "a").Inbox)
	require.Equal(t, int64(5), t.row(s, "b").Inbox)
}

func inboxDedup(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "r")
	t.run(s, "other")
	first := signal("r", "1")
	t.must(s, send(first))
	again := first
	again.Name, again.Payload = "another name", []byte("another payload")
	require.NoError(t, t.commit(s, send(again)), "S14: it succeeds")
	require.NoError(t, t.commit(t.handle(d), send(again, signal("r", "2"), again)), "S14: also beside a new one")
	pause := first
	pause.Kind = store.KindPause
	t.must(s, send(pause, signal("other", "1")), send(signal("r", "3"), signal("r", "3")))
	got := t.all(s, "r")
	var had []string
	for _, m := range got.Inbox {
		had = append(had, fmt.Sprint(m.Kind, " ", m.ID))
	}
	require.Equal(t, []string{"signal 1", "signal 2", "pause 1", "signal 3"}, had, "S14: ids are per kind and receiver")
	require.Equal(t, first.Payload, got.Inbox[0].Payload, "the first stays")
	require.Equal(t, int64(1), t.row(s, "other").Inbox)
}

func inboxCancel(t *T) {
	s := t.open()
	w := t.run(s, "r")
	t.must(s, send(signal("r", "c")))
	require.False(t, t.row(s, "r").CancelAsked, "S15: a signal is no cancel")
	cancel := store.Message{To: "r", Kind: store.KindCancel, ID: "c"}
	t.must(s, send(cancel))
	r := t.row(s, "r")
	require.True(t, r.CancelAsked)
	require.Equal(t, int64(2), r.Inbox)
	w.must(s, w.patch(store.RowPatch{CancelAsked: ptr(false), Seen: ptr(int64(2))}))
	t.must(s, send(cancel))
	r = t.row(s, "r")
	require.False(t, r.CancelAsked, "S14: a message that is dropped does nothing")
	cancel.ID = "another"
	t.must(s, send(cancel))
	require.True(t, t.row(s, "r").CancelAsked)
	at := t.now()
	t.run(s, "waits", func(r *store.Run) { r.Status, r.WakeAt = store.Waiting, at })
	cancel.To = "waits"
	t.must(s, send(cancel))
	require.Equal(t, at, t.row(s, "waits").WakeAt, "S15: only a run that has not begun waits no longer")
}

func inboxAbsent(t *T) {
	s := t.open()
	t.run(s, "r")
	m := signal("nobody", "1")
	require.ErrorIs(t, t.commit(s, send(signal("r", "1"), m)), store.ErrNotFound)
	require.Zero(t, t.row(s, "r").Inbox, "S1: the other message is not delivered either")
	m.IfLive = true
	require.NoError(t, t.commit(s, send(signal("r", "1"), m)))
	require.Equal(t, int64(1), t.row(s, "r").Inbox)
	t.run(s, "nobody")
	require.Zero(t, t.row(s, "nobody").Inbox, "S15: what was dropped does not come later")
}

func inboxEnded(t *T) {
	s := t.open()
	t.run(s, "r")
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled} {
		id := string(status)
		w := t.run(s, id, func(r *store.Run) { r.Status = store.Running })
		t.must(s, send(signal(id, "early")))
		w.must(s, w.end(status))
		before := t.dump(s)
		err := t.commit(s, send(signal("r", id), signal(id, "late")))
		require.ErrorIs(t, err, store.ErrStatus)
		var se *store.StatusError
		require.ErrorAs(t, err, &se)
		require.Fields(t, fields{"RunID": id, "Status": status}, se)
		require.ErrorIs(t, t.commit(s, send(store.Message{To: id, Kind: store.KindCancel, ID: "c"})), store.ErrStatus)
		m := signal(id, "late")
		m.IfLive = true
		require.NoError(t, t.commit(s, send(m)))
		require.NoError(t, t.commit(s, send(signal(id, "early"))), "S14: what it has already is no failure")
		require.Equal(t, before, t.dump(s))
	}
	w := t.run(s, "again", func(r *store.Run) { r.Status = store.Running })
	w.must(s, w.end(store.Failed))
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Interrupted)}))
	t.must(s, send(signal("again", "1")))
}

func inboxAfter(t *T) {
	s := t.open()
	t.run(s, "r")
	for i := range 6 {
		t.must(s, send(signal("r", fmt.Sprint(i))))
	}
	for _, after := range []int64{math.MinInt64, -1, 0, 1, 2, 3, 4, 5, 6, 7, math.MaxInt64 - 1, math.MaxInt64} {
		got := t.load(s, "r", store.Cursor{AfterMessage: after, NoEvents: true})
		require.Len(t, got.Inbox, int(6-min(max(after, 0), 6)))
		for i, m := range got.Inbox {
			require.Equal(t, max(after, 0)+int64(i)+1, m.Seq)
		}
		require.Empty(t, got.Events)
		require.Equal(t, int64(6), got.Run.Inbox)
		only := t.load(s, "r", store.Cursor{AfterMessage: after, NoEvents: true, OnlyInbox: true})
		require.Equal(t, got.Inbox, only.Inbox)
		require.Empty(t, only.Events)
	}
	_, err := s.Load(t.Context(), "nobody", store.Cursor{NoEvents: true, OnlyInbox: true})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func inboxRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	owner := t.claimed(handles[0], "a", "r")
	senders := []*writer{t.run(handles[0], "s0"), t.run(handles[0], "s1"), t.run(handles[0], "s2")}
	const each = 12
	var mu sync.Mutex
	sent := make(map[string][]string)
	t.together(len(senders)+2, func(i int) {
		s := handles[i%2]
		for n := range each {
			var err error
			switch {
			case i == len(senders): // the owner
				c := owner.append(step(fmt.Sprint(n)))
				c.Row = &store.RowPatch{Priority: ptr(int32(n))}
				if err = one(t.Context(), s, c); err == nil {
					owner.done(c)
				}
			case i > len(senders): // a client that sends everything twice
				m := signal("r", fmt.Sprint("client ", n))
				if err = one(t.Context(), s, send(m)); err == nil {
					err = one(t.Context(), s, send(m))
				}
				mu.Lock()
				sent["client"] = append(sent["client"], m.ID)
				mu.Unlock()
			default: // other runs
				c := senders[i].append(step("send"))
				c.Send = []store.Message{signal("r", fmt.Sprint(senders[i].id, " ", n))}
				if err = one(t.Context(), s, c); err == nil {
					senders[i].done(c)
				}
				mu.Lock()
				sent[senders[i].id] = append(sent[senders[i].id], c.Send[0].ID)
				mu.Unlock()
			}
			if err != nil {
				t.Errorf("S13: client %d, round %d: %v", i, n, err)
				return
			}
		}
	})
	got := t.all(handles[1], "r")
	require.Len(t, got.Inbox, each*(len(senders)+1), "S13: every message, once")
	require.Len(t, got.Events, 2+each, "a message is no fence to the owner")
	require.Equal(t, int32(each-1), got.Run.Priority)
	for from, want := range sent {
		var had []string
		for _, m := range got.Inbox {
			if slices.Contains(want, m.ID) {
				had = append(had, m.ID)
			}
		}
		require.Equal(t, want, had, "S13: those of %s in the order sent", from)
	}
}

func inboxEndRace(t *T) {
	d := t.fresh()
	owner, client := t.handle(d), t.handle(d)
	for round := range 10 {
		w := t.claimed(owner, "a", fmt.Sprint("r", round))
		var errEnd, errSend error
		end := w.end(store.Completed)
		t.together(2, func(i int) {
			if i == 0 {
				errEnd = one(t.Context(), owner, end)
			} else {
				errSend = one(t.Context(), client, send(signal(w.id, "1")))
			}
		})
		require.NoError(t, errEnd, "a message is no fence")
		r := t.row(client, w.id)
		require.Equal(t, store.Completed, r.Status)
		if errSend == nil {
			require.Equal(t, int64(1), r.Inbox, "S13: acknowledged and lost")
		} else {
			require.ErrorIs(t, errSend, store.ErrStatus)
			require.Zero(t, r.Inbox, "S15: refused and delivered")
		}
	}
}

func inboxCross(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	pair := []*writer{t.run(handles[0], "left"), t.run(handles[0], "right")}
	const rounds = 15
	t.together(2, func(i int) {
		for n := range rounds {
			c := pair[i].append(step(fmt.Sprint(n)))
			c.Row = &store.RowPatch{Priority: ptr(int32(n))}
			c.Send = []store.Message{signal(pair[1-i].id, fmt.Sprint(n))}
			if err := one(t.Context(), handles[i], c); err != nil {
				t.Errorf("S1: %s, round %d: %v", pair[i].id, n, err)
				return
			}
			pair[i].done(c)
		}
	})
	for _, w := range pair {
		require.Equal(t, int64(rounds), t.row(handles[0], w.id).Inbox)
	}
}

// asking returns c with room for the numbers of its messages.
func asking(c store.Change) store.Change {
	c.Sent = slices.Repeat([]int64{notFilledIn}, len(c.Send))
	return c
}

// notFilledIn is what asking puts in the place of each number.
const notFilledIn = -1

// sent requires that c, which was carried out, was handed these numbers, or none.
func (t *T) sent(c store.Change, want ...int64) {
	t.Helper()
	if !slices.Equal(c.Sent, asking(c).Sent) {
		require.Equal(t, want, c.Sent, "S42: the numbers")
	}
}

func inboxSent(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "a")
	w := t.run(s, "b")
	ended := t.run(s, "ended", func(r *store.Run) { r.Status = store.Running })
	t.must(s, send(signal("a", "0")), send(signal("ended", "early")))
	ended.must(s, ended.end(store.Completed))

	c := asking(send(signal("a", "1"), signal("b", "1"), signal("a", "2")))
	t.must(s, c)
	t.sent(c, 2, 1, 3)

	again := asking(send(signal("a", "1"), signal("a", "3"), signal("a", "3")))
	t.must(t.handle(d), again)
	t.sent(again, 0, 4, 0)

	late, nobody := signal("ended", "late"), signal("nobody", "1")
	late.IfLive, nobody.IfLive = true, true
	dropped := asking(send(late, signal("a", "4"), nobody, signal("ended", "early")))
	t.must(s, dropped)
	t.sent(dropped, 0, 5, 0, 0)

	act := w.append(step("x"))
	act.Row = &store.RowPatch{Priority: ptr(int32(1))}
	act.Send = []store.Message{signal("b", "2"), signal("a", "5")}
	act = asking(act)
	w.must(s, act)
	t.sent(act, 2, 6)
	t.must(s, act) // S6
	t.sent(act, 0, 0)

	refused := asking(send(signal("a", "6"), signal("nobody", "2")))
	one, other := asking(send(signal("a", "7"))), asking(send(signal("a", "8"), signal("b", "3")))
	errs := s.Commit(t.Context(), []store.Change{one, refused, other})
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrNotFound)
	require.NoError(t, errs[2])
	for _, c := range []store.Change{one, other} {
		t.numbered(s, c)
	}

	c = send(signal("a", "9"), signal("a", "10"))
	c.Sent = make([]int64, 1)
	require.ErrorIs(t, t.commit(s, c), store.ErrInvalid, "room for each message")
}

// numbered requires that the messages of c have the numbers that it was handed, if any.
func (t *T) numbered(s store.Store, c store.Change) {
	t.Helper()
	for i, m := range c.Send {
		if c.Sent[i] == notFilledIn {
			continue
		}
		inbox := t.all(s, m.To).Inbox
		require.True(t, c.Sent[i] > 0 && c.Sent[i] <= int64(len(inbox)), "S42: %s in %s is number %d of %d", m.ID, m.To, c.Sent[i], len(inbox))
		require.Equal(t, m.ID, inbox[c.Sent[i]-1].ID, "S42: number %d in %s", c.Sent[i], m.To)
	}
}

func inboxSentRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	t.run(handles[0], "r")
	t.run(handles[0], "q")
	const senders, each = 4, 10
	all := make([][]store.Change, senders)
	t.together(senders, func(i int) {
		for n := range each {
			c := asking(send(signal("r", fmt.Sprint(i, " ", n)), signal("q", fmt.Sprint(i, " ", n))))
			if err := one(t.Context(), handles[i%2], c); err != nil {
				t.Errorf("S42: sender %d, round %d: %v", i, n, err)
				return
			}
			all[i] = append(all[i], c)
		}
	})
	for _, list := range all {
		for _, c := range list {
			t.numbered(handles[0], c)
		}
	}
}
