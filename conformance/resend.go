package conformance

import (
	"github.com/holdfast-dev/holdfast/store"
)

var resendCases = []Case{
	{Name: "a change of any shape that is sent again is done once", Clauses: "S6", run: resendShapes},
	{Name: "a change is recognised after later ones were written behind it", Clauses: "S6", run: resendLater},
	{Name: "a whole batch may be sent again", Clauses: "S2, S6", run: resendBatch},
	{Name: "what differs is not taken for what was done", Clauses: "S3, S6", run: resendOther},
	{Name: "the same events under another act are another change", Clauses: "S6", run: resendActs},
	{Name: "the same change sent by many at once is done once", Clauses: "S6", run: resendRace},
}

// shape is a kind of Change on its own run.
type shape struct {
	name  string
	build func(t *T, s store.Store, id string) store.Change
}

func shapes() []shape {
	running := func(r *store.Run) { r.Status = store.Running }
	return []shape{
		{"plain", func(t *T, s store.Store, id string) store.Change { return t.run(s, id).append(step("a")) }},
		{"two events", func(t *T, s store.Store, id string) store.Change { return t.run(s, id).append(step("a"), step("b")) }},
		{"create", func(t *T, _ store.Store, id string) store.Change { c, _ := t.create(id, fullRun); return c }},
		{"create with more events", func(t *T, _ store.Store, id string) store.Change {
			c, w := t.create(id)
			c.Events = append(c.Events, w.seal(step("a"))...)
			return c
		}},
		{"create that yields", func(t *T, _ store.Store, id string) store.Change {
			c, w := t.create(id, func(r *store.Run) { r.Owner, r.Status = "x", store.Interrupted })
			c.Events = append(c.Events, w.seal(step("a"))...)
			c.Yield = true
			return c
		}},
		{"events and row", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id).append(step("a"))
			c.Row = &store.RowPatch{Status: ptr(store.Running), Attributes: map[string]string{"a": "b"}}
			return c
		}},
		{"completion", func(t *T, s store.Store, id string) store.Change { return t.run(s, id, running).end(store.Completed) }},
		{"interruption", func(t *T, s store.Store, id string) store.Change { return t.claimed(s, "a", id).end(store.Interrupted) }},
		{"taken epoch", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id).append(step("a"))
			c.Expect.TakeEpoch = true
			return c
		}},
		{"taken epoch that yields", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id, running).end(store.Cancelled)
			c.Expect.TakeEpoch = true
			return c
		}},
		{"branch", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id).append(step("a"))
			c.Branch = &store.Branch{N: 1, Cutoff: 1, CreatedAt: t.now()}
			c.Row = &store.RowPatch{Branch: ptr(int32(1))}
			return c
		}},
		{"send", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id).append(step("a"))
			c.Send = []store.Message{signal(id, "1"), {To: id, Kind: store.KindCancel, ID: "1"}}
			return c
		}},
		{"start", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id).append(step("a"))
			child, _ := t.create(id+" child", func(r *store.Run) { r.Parent = id })
			c.Start = []store.Change{child}
			return c
		}},
		{"hold", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id).append(step("a"))
			c.Hold = []string{id}
			return c
		}},
		{"release", func(t *T, s store.Store, id string) store.Change {
			w := t.run(s, id)
			c := w.append(step("a"))
			c.Hold = []string{id}
			w.must(s, c)
			c = w.append(step("b"))
			c.Release = true
			return c
		}},
		{"under NoCancel and a status", func(t *T, s store.Store, id string) store.Change {
			c := t.run(s, id, running).end(store.Completed)
			c.Expect.NoCancel, c.Expect.Statuses = true, []store.Status{store.Running}
			return c
		}},
		{"everything", func(t *T, s store.Store, id string) store.Change { c, _ := t.full(s, id); return c }},
		{"row alone", func(t *T, s store.Store, id string) store.Change {
			return t.run(s, id).patch(store.RowPatch{Priority: ptr(int32(4))})
		}},
		{"messages alone", func(t *T, s store.Store, id string) store.Change {
			t.run(s, id)
			return send(signal(id, "1"), signal(id, "2"))
		}},
		{"starts alone", func(t *T, _ store.Store, id string) store.Change {
			c, _ := t.create(id)
			return store.Change{Start: []store.Change{c}}
		}},
	}
}

// still is a dump without the time of the last update, which a repeated row patch may
// move.
func (t *T) still(s store.Store) map[string]loaded {
	t.Helper()
	m := t.dump(s)
	for id, l := range m {
		l.Run.UpdatedAt = 0
		m[id] = l
	}
	return m
}

func resendShapes(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	for _, sh := range shapes() {
		c := sh.build(t, s, "r "+sh.name)
		require.NoError(t, t.commit(s, c), sh.name)
		before := t.still(s)
		require.NoError(t, t.commit(s, c), "S6: %s, sent again", sh.name)
		require.NoError(t, t.commit(other, c), "S6: %s, sent again through another handle", sh.name)
		require.Equal(t, before, t.still(s), "S6: %s, sent again, changed something", sh.name)
	}
}

func resendLater(t *T) {
	s := t.open()
	for _, sh := range shapes() {
		if sh.name == "row alone" {
			continue // it has no event by which to recognise it
		}
		id := "r " + sh.name
		c := sh.build(t, s, id)
		require.NoError(t, t.commit(s, c), sh.name)
		// Another executor goes on: an event after it, a new epoch, another end.
		r := t.row(s, id)
		w := t.at(r)
		next := w.append(step("next"))
		next.Release = true
		w.must(s, next)
		if !r.Status.Terminal() {
			if t.live(s, r.Owner) {
				w.must(s, w.end(store.Interrupted))
			}
			cancel := w.end(store.Cancelled)
			cancel.Expect.TakeEpoch = true
			w.must(s, cancel)
		}
		before := t.still(s)
		require.NoError(t, t.commit(s, c), "S6: %s, sent again when others had gone on", sh.name)
		require.Equal(t, before, t.still(s), "S6: %s, sent again, changed something", sh.name)
		for _, key := range c.Hold {
			require.NoError(t, t.tryHold(s, key), "S6: %s, sent again, took a key that was released since", sh.name)
		}
	}
}

func resendBatch(t *T) {
	s := t.open()
	var batch []store.Change
	for _, sh := range shapes() {
		batch = append(batch, sh.build(t, s, "r "+sh.name))
	}
	t.must(s, batch...)
	before := t.still(s)
	t.must(s, batch...)
	require.Equal(t, before, t.still(s), "S6: sent again, the batch changed something")

	// Half of a batch is new.
	fresh := t.run(s, "fresh")
	half := append([]store.Change{fresh.append(step("a"))}, batch[:3]...)
	t.must(s, half...)
	require.Len(t, t.all(s, "fresh").Events, 2)
}

func resendOther(t *T) {
	s := t.open()
	w := t.run(s, "r")
	done := w.append(step("a"), step("b"))
	t.must(s, done)
	before := t.dump(s)
	other := w.append(step("a"), step("c"))
	require.ErrorIs(t, t.commit(s, other), store.ErrFenced, "another second event")
	shorter := w.append(step("x"))
	require.ErrorIs(t, t.commit(s, shorter), store.ErrFenced, "another first event")
	foreign := *w
	foreign.epoch++
	require.ErrorIs(t, t.commit(s, foreign.append(step("a"), step("b"))), store.ErrFenced, "the same events under another epoch")
	created, _ := t.create("r", func(r *store.Run) { r.Epoch = w.epoch })
	require.ErrorIs(t, t.commit(s, created), store.ErrExists, "another first event of the run")
	require.Equal(t, before, t.dump(s))
}

func resendRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	for _, sh := range shapes() {
		id := "r " + sh.name
		c := sh.build(t, handles[0], id)
		errs := make([]error, 4)
		t.together(len(errs), func(i int) { errs[i] = one(t.Context(), handles[i%2], c) })
		for i, err := range errs {
			require.NoError(t, err, "S6: %s, sender %d", sh.name, i)
		}
		got := t.all(handles[0], id)
		if n := len(c.Events); n > 0 {
			require.Equal(t, stored(c), got.Events[len(got.Events)-n:], sh.name)
			require.Equal(t, c.Events[n-1].Seq, int64(len(got.Events)), "S6: %s is there once", sh.name)
		}
		require.LessOrEqual(t, len(got.Inbox), 2, "S14: %s: each message is there once", sh.name)
	}
}

// resendActs sends the very same events again, with the same sums but with an act of
// another epoch. That act was not done: a caller that gets nil would believe that the
// run was given up.
func resendActs(t *T) {
	s := t.open()
	acts := map[string]func(*store.Change){
		"plain":           func(*store.Change) {},
		"yield":           func(c *store.Change) { c.Yield = true },
		"taken epoch":     func(c *store.Change) { c.Expect.TakeEpoch = true },
		"taken and given": func(c *store.Change) { c.Expect.TakeEpoch, c.Yield = true, true },
	}
	epochs := map[string]int64{"plain": 0, "yield": 1, "taken epoch": 1, "taken and given": 2}
	for done, do := range acts {
		for other, act := range acts {
			if epochs[done] == epochs[other] {
				continue
			}
			w := t.run(s, done+" then "+other)
			c := w.append(step("a"))
			again := c
			do(&c)
			act(&again)
			t.must(s, c)
			before := t.still(s)
			require.ErrorIs(t, t.commit(s, again), store.ErrFenced, "S6: %s was done, not %s", done, other)
			require.Equal(t, before, t.still(s))
		}
	}
}
