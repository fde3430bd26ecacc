package conformance

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/store"
)

var batchCases = []Case{
	{Name: "an empty batch is no error", Clauses: "S2", run: batchEmpty},
	{Name: "a plain member that fails leaves the others alone", Clauses: "S2", run: batchPlainFails},
	{Name: "a member that fails, for whatever reason, leaves the others alone", Clauses: "S2", run: batchAnyFails},
	{Name: "many members that fail leave the others alone", Clauses: "S2", run: batchManyFail},
	{Name: "a second change of one run is refused, the first carried out", Clauses: "S2", run: batchTwice},
	{Name: "a batch may hold several changes without a run of their own", Clauses: "S2, S13", run: batchSends},
	{Name: "a large mixed batch is carried out", Clauses: "S1, S2", run: batchLarge},
	{Name: "in a batch every part of a member counts", Clauses: "S1, S2, S11", run: batchParts},
	{Name: "a batch may have more members than are worth forming", Clauses: "S2", run: batchMany},
	{Name: "a batch that the store has formed when it can write is like any other", Clauses: "S2", run: batchLate},
	{Name: "concurrent batches over the same runs do not mix", Clauses: "S1, S2, S3", run: batchRace},
}

func batchEmpty(t *T) {
	s := t.open()
	require.Empty(t, s.Commit(t.Context(), nil))
	require.Empty(t, s.Commit(t.Context(), []store.Change{}))
}

func batchLate(t *T) {
	s := t.open()
	late := capabilities(s).LateCommitter
	if late == nil {
		return // every batch is given to it
	}
	a, b := t.run(s, "a"), t.run(s, "b")
	foreign := b.append(step("one"))
	foreign.Expect.Epoch++
	formed := 0
	commit := func(batch ...store.Change) []error {
		formed = 0
		errs := late.CommitLate(t.Context(), func() []store.Change { formed++; return batch })
		require.Equal(t, 1, formed, "form is called once")
		require.Len(t, errs, len(batch))
		return errs
	}
	one := a.append(step("one"))
	errs := commit(one, foreign)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrFenced)
	a.done(one)
	two := a.append(step("two"))
	require.NoError(t, commit(two)[0])
	t.requireDone(s, []store.Change{two})
	require.Empty(t, commit())
	require.NoError(t, s.Close())
	require.ErrorIs(t, commit(b.append(step("one")))[0], store.ErrClosed)
}

// refusal is a Change that a store prepared by scene refuses.
type refusal struct {
	name   string
	want   error
	change func(t *T, s store.Store, id string) store.Change
}

// scene prepares the runs that refusals conflict with: "held" holds the key "desk",
// "dup" has the dedup value "once", "done" has ended.
func (t *T) scene(s store.Store) {
	t.Helper()
	held := t.run(s, "held")
	c := held.append(step("hold"))
	c.Hold = []string{"desk"}
	held.must(s, c)
	t.run(s, "dup", func(r *store.Run) { r.Dedup = "once" })
	done := t.run(s, "done", func(r *store.Run) { r.Status = store.Running })
	done.must(s, done.end(store.Completed))
}

// full returns a Change on a new run that has everything a Change can have, all of it
// valid. A separate Commit writes the run's row.
func (t *T) full(s store.Store, id string) (store.Change, *writer) {
	t.Helper()
	w := t.run(s, id, func(r *store.Run) { r.Status = store.Running })
	t.run(s, id+" friend")
	c := w.append(step("one"), step("two"))
	c.Row = &store.RowPatch{Status: ptr(store.Waiting), Attributes: map[string]string{"full": id}}
	c.Branch = &store.Branch{N: 1, Parent: 0, Generation: 0, Cutoff: 1, CutScope: "a", Reason: "why", CreatedAt: t.now()}
	c.Send = []store.Message{signal(id+" friend", "1"), signal(id, "2")}
	child, _ := t.create(id+" child", func(r *store.Run) { r.Parent, r.ParentKey = id, "one" })
	child.Hold = []string{id + " child key"}
	c.Start = []store.Change{child}
	c.Hold = []string{id + " key"}
	c.Yield = true
	c.Expect.NoCancel, c.Expect.Statuses = true, []store.Status{store.Running}
	return c, w
}

// refusals returns one Change for each reason to refuse one. Everything else in it is
// valid.
func refusals() []refusal {
	edited := func(f func(t *T, s store.Store, c *store.Change)) func(*T, store.Store, string) store.Change {
		return func(t *T, s store.Store, id string) store.Change {
			c, _ := t.full(s, id)
			f(t, s, &c)
			return c
		}
	}
	restart := func(t *T, id string, edit func(*store.Run)) store.Change {
		c, _ := t.create(id, edit)
		return c
	}
	return []refusal{
		{"foreign epoch", store.ErrFenced, edited(func(_ *T, _ store.Store, c *store.Change) { c.Expect.Epoch++ })},
		{"gap", store.ErrFenced, edited(func(_ *T, _ store.Store, c *store.Change) { c.Events[0].Seq++; c.Events[1].Seq++ })},
		{"plain, foreign epoch", store.ErrFenced, func(t *T, s store.Store, id string) store.Change {
			w := *t.run(s, id)
			w.epoch--
			return w.append(step("a"))
		}},
		{"status expected", store.ErrStatus, edited(func(_ *T, _ store.Store, c *store.Change) { c.Expect.Statuses = []store.Status{store.Failed} })},
		{"status step", store.ErrStatus, edited(func(_ *T, _ store.Store, c *store.Change) { c.Row.Status = ptr(store.Pending) })},
		{"unread cancel", store.ErrCancelAsked, edited(func(t *T, s store.Store, c *store.Change) {
			t.must(s, send(store.Message{To: c.RunID, Kind: store.KindCancel, ID: "c"}))
		})},
		{"live owner", store.ErrOwned, func(t *T, s store.Store, id string) store.Change {
			w := t.claimed(s, "owner", id)
			c := w.append(step("a"))
			c.Expect.TakeEpoch = true
			return c
		}},
		{"key occupied", store.ErrOccupied, edited(func(_ *T, _ store.Store, c *store.Change) { c.Hold = append(c.Hold, "desk") })},
		{"key of a start occupied", store.ErrOccupied, edited(func(_ *T, _ store.Store, c *store.Change) { c.Start[0].Hold = []string{"desk"} })},
		{"receiver absent", store.ErrNotFound, edited(func(_ *T, _ store.Store, c *store.Change) { c.Send = append(c.Send, signal("nobody", "1")) })},
		{"receiver ended", store.ErrStatus, edited(func(_ *T, _ store.Store, c *store.Change) { c.Send = append(c.Send, signal("done", "1")) })},
		{"start of another run", store.ErrExists, edited(func(t *T, _ store.Store, c *store.Change) {
			c.Start = append(c.Start, restart(t, "held", func(r *store.Run) { r.Workflow = "other" }))
		})},
		{"start with a dedup in use", store.ErrExists, edited(func(t *T, _ store.Store, c *store.Change) {
			c.Start = append(c.Start, restart(t, c.RunID+" second", func(r *store.Run) { r.Dedup = "once" }))
		})},
		{"start of nonsense", store.ErrInvalid, edited(func(t *T, _ store.Store, c *store.Change) { c.Start[0].Create.Epoch = 0 })},
		{"run exists", store.ErrExists, func(t *T, s store.Store, id string) store.Change {
			t.run(s, id)
			c, _ := t.create(id)
			c.Send = []store.Message{signal("held", id)}
			return c
		}},
		{"dedup in use", store.ErrExists, func(t *T, s store.Store, id string) store.Change {
			c, _ := t.create(id, func(r *store.Run) { r.Dedup = "once" })
			c.Send = []store.Message{signal("held", id)}
			return c
		}},
		{"created run's key occupied", store.ErrOccupied, func(t *T, s store.Store, id string) store.Change {
			c, _ := t.create(id)
			c.Hold = []string{"desk"}
			return c
		}},
		{"run absent", store.ErrNotFound, func(t *T, _ store.Store, id string) store.Change {
			_, w := t.create(id)
			return w.append(step("a"))
		}},
		{"message to nobody", store.ErrNotFound, func(_ *T, _ store.Store, _ string) store.Change {
			return send(signal("held", "x"), signal("nobody", "1"))
		}},
		{"too large", store.ErrTooLarge, edited(func(_ *T, s store.Store, c *store.Change) { c.Events[1].Payload = make([]byte, s.Limits().Payload+1) })},
		{"invalid", store.ErrInvalid, edited(func(_ *T, _ store.Store, c *store.Change) { c.Events[1].Type = "" })},
	}
}

// members returns Changes of several kinds that succeed.
func (t *T) members(s store.Store, prefix string) []store.Change {
	t.Helper()
	plain := t.run(s, prefix+" plain")
	ended := t.run(s, prefix+" ended", func(r *store.Run) { r.Status = store.Running })
	patched := t.run(s, prefix+" patched")
	created, _ := t.create(prefix + " created")
	full, _ := t.full(s, prefix+" full")
	return []store.Change{
		plain.append(step("a"), step("b")), created, ended.end(store.Completed),
		patched.patch(store.RowPatch{Priority: ptr(int32(5))}), full,
	}
}

// requireDone checks that Changes of members were carried out.
func (t *T) requireDone(s store.Store, changes []store.Change) {
	t.Helper()
	for _, c := range changes {
		got := t.all(s, c.RunID)
		if n := len(c.Events); n > 0 {
			require.GreaterOrEqual(t, len(got.Events), n)
			require.Equal(t, stored(c), got.Events[len(got.Events)-n:], "S2: the events of %q are there", c.RunID)
			require.Equal(t, c.RowEpoch(), got.Run.Epoch)
		}
		if c.Row != nil {
			want := got.Run
			c.Row.Apply(&want)
			require.Equal(t, want, got.Run, "S2: the row of %q is patched", c.RunID)
		}
		for _, m := range c.Send {
			require.Positive(t, t.row(s, m.To).Inbox, "S2: %q has its message", m.To)
		}
		for i := range c.Start {
			require.Equal(t, stored(c.Start[i]), t.all(s, c.Start[i].RunID).Events, "S2: %q is started", c.Start[i].RunID)
		}
	}
}

func batchPlainFails(t *T) {
	s := t.open()
	const n = 5
	for bad := range n {
		var batch []store.Change
		for i := range n {
			w := *t.run(s, fmt.Sprintf("b%d-r%d", bad, i))
			if i == bad {
				w.epoch++
			}
			batch = append(batch, w.append(step("a"), step("b")))
		}
		for i, err := range s.Commit(t.Context(), batch) {
			got := t.all(s, batch[i].RunID).Events
			if i == bad {
				require.ErrorIs(t, err, store.ErrFenced)
				require.Len(t, got, 1)
			} else {
				require.NoError(t, err, "S2: member %d, when member %d fails", i, bad)
				require.Equal(t, stored(batch[i]), got[1:])
			}
		}
	}
}

func batchAnyFails(t *T) {
	s := t.open()
	t.scene(s)
	for _, r := range refusals() {
		good := t.members(s, r.name)
		bad := r.change(t, s, "bad "+r.name)
		before := t.dump(s)
		// The bad one comes first, in the middle, and last in turn. When the batch is
		// sent again, what was carried out counts as carried out.
		for _, place := range []int{2, 0, len(good)} {
			batch := append(append(append([]store.Change{}, good[:place]...), bad), good[place:]...)
			errs := s.Commit(t.Context(), batch)
			require.Len(t, errs, len(batch))
			for i, err := range errs {
				if i == place {
					require.ErrorIs(t, err, r.want, "%s", r.name)
				} else {
					require.NoError(t, err, "S2: member %d (%s) beside %q", i, batch[i].RunID, r.name)
				}
			}
		}
		t.requireDone(s, good)
		t.requireUntouched(s, before, bad, r.name)
	}
}

// requireUntouched checks that a refused Change has left nothing.
func (t *T) requireUntouched(s store.Store, before map[string]loaded, c store.Change, why string) {
	t.Helper()
	after := t.dump(s)
	touched := []string{c.RunID}
	for i := range c.Start {
		touched = append(touched, c.Start[i].RunID)
	}
	for _, m := range c.Send {
		touched = append(touched, m.To)
	}
	for _, id := range touched {
		require.Equal(t, before[id], after[id], "S1: refused (%s), but run %q changed", why, id)
	}
	// Keys cannot be read, but one can try to take them.
	keys := c.Hold
	for i := range c.Start {
		keys = append(keys[:len(keys):len(keys)], c.Start[i].Hold...)
	}
	for _, key := range keys {
		if key != "desk" {
			require.NoError(t, t.tryHold(s, key), "S1: refused (%s), but key %q is held", why, key)
		}
	}
}

// tryHold takes a key with a separate run, and releases it.
func (t *T) tryHold(s store.Store, key string) error {
	t.Helper()
	c, w := t.create("tries " + key)
	c.Hold = []string{key}
	err := t.commit(s, c)
	if err == nil {
		release := w.patch(store.RowPatch{})
		release.Release = true
		t.must(s, release)
		_, err = s.Delete(t.Context(), store.Deletion{RunIDs: []string{w.id}, Force: true})
	}
	return err
}

func batchManyFail(t *T) {
	s := t.open()
	t.scene(s)
	var batch []store.Change
	var want []error
	for round := range 2 {
		for _, r := range refusals() {
			if errors.Is(r.want, store.ErrTooLarge) {
				continue // refused by the store without reading
			}
			id := fmt.Sprintf("%s %d", r.name, round)
			w := t.run(s, "good "+id)
			batch = append(batch, r.change(t, s, id), w.append(step("a")))
			want = append(want, r.want, nil)
		}
	}
	errs := s.Commit(t.Context(), batch)
	require.Len(t, errs, len(batch))
	for i, err := range errs {
		require.ErrorIs(t, err, want[i], "member %d, %q", i, batch[i].RunID)
		if want[i] == nil {
			require.Equal(t, stored(batch[i]), t.all(s, batch[i].RunID).Events[1:])
		}
	}
}

func batchTwice(t *T) {
	s := t.open()
	a, b := t.run(s, "a"), t.run(s, "b")
	first := a.append(step("first"))
	behind := *a
	behind.done(first)
	errs := s.Commit(t.Context(), []store.Change{first, b.append(step("b")), behind.append(step("second"))})
	require.Len(t, errs, 3)
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorIs(t, errs[2], store.ErrInvalid)
	require.Equal(t, stored(first), t.all(s, "a").Events[1:])
}

func batchSends(t *T) {
	s := t.open()
	t.run(s, "a")
	t.run(s, "b")
	t.must(s, send(signal("a", "1"), signal("b", "1"), signal("a", "2")), send(signal("a", "3"), signal("a", "4")), send(signal("b", "2"), signal("a", "5")))
	var got []string
	for _, m := range t.all(s, "a").Inbox {
		got = append(got, m.ID)
	}
	require.ElementsMatch(t, []string{"1", "2", "3", "4", "5"}, got)
	require.Less(t, slices.Index(got, "1"), slices.Index(got, "2"), "S13: those of one change in its order")
	require.Less(t, slices.Index(got, "3"), slices.Index(got, "4"), "S13: those of one change in its order")
	require.Equal(t, int64(2), t.row(s, "b").Inbox)
}

func batchLarge(t *T) {
	s := t.open()
	n := min(s.Limits().Changes, 512)
	batch := make([]store.Change, n)
	writers := make([]*writer, n)
	for i := range batch {
		batch[i], writers[i] = t.create(fmt.Sprintf("r%03d", i))
	}
	t.must(s, batch...)
	for i, w := range writers {
		switch i % 4 {
		case 0:
			batch[i] = w.append(step("a"))
		case 1:
			batch[i] = w.append(step("a"), step("b"))
			batch[i].Row = &store.RowPatch{Status: ptr(store.Running)}
		case 2:
			batch[i] = w.append(step("a"))
			batch[i].Send = []store.Message{signal("r000", w.id)}
		case 3:
			batch[i] = w.patch(store.RowPatch{Priority: ptr(int32(i))})
		}
	}
	t.must(s, batch...)
	require.Equal(t, map[string]int64{"pending": int64(n - (n+2)/4), "running": int64((n + 2) / 4)}, t.count(s, store.Filter{}, store.ByStatus))
	require.Equal(t, int64((n+1)/4), t.row(s, "r000").Inbox)
	for i := range batch {
		got := t.all(s, writers[i].id).Events
		require.Equal(t, stored(batch[i]), got[1:][:len(batch[i].Events)])
	}
}

// batchRace has clients write the same runs in opposite orders, with messages between
// them: a store that locks in the order of the batch would deadlock.
func batchRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const runs, clients, rounds = 6, 4, 5
	writers := make([]*writer, runs)
	for i := range writers {
		writers[i] = t.run(handles[0], fmt.Sprintf("r%d", i))
	}
	acknowledged := make([]map[string]int, clients)
	t.together(clients, func(client int) {
		acknowledged[client] = make(map[string]int)
		s := handles[client%2]
		for round := range rounds {
			var batch []store.Change
			for i := range runs {
				if client%2 == 1 {
					i = runs - 1 - i
				}
				h, err := s.Load(t.Context(), writers[i].id, store.Cursor{NoEvents: true})
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				w := *writers[i]
				w.seq, w.sum, w.at = h.Run.Last.Seq, h.Run.Last.Sum, h.Run.Last.At
				c := w.append(step(fmt.Sprintf("%d.%d", client, round)), step("second"))
				c.Row = &store.RowPatch{Code: &c.Events[0].Key}
				c.Send = []store.Message{signal(writers[(i+1)%runs].id, fmt.Sprintf("%d.%d from %d", client, round, i))}
				batch = append(batch, c)
			}
			for i, err := range s.Commit(t.Context(), batch) {
				if err == nil {
					acknowledged[client][batch[i].RunID]++
					acknowledged[client]["to "+batch[i].Send[0].To]++
				} else if !isOneOf(err, store.ErrFenced) {
					t.Errorf("S2: %v", err)
				}
			}
		}
	})
	for _, w := range writers {
		changes, messages := 0, 0
		for _, a := range acknowledged {
			changes += a[w.id]
			messages += a["to "+w.id]
		}
		got := t.all(handles[0], w.id)
		require.Len(t, got.Events, 1+2*changes, "S1: both events of each acknowledged change, and no others")
		require.Len(t, got.Inbox, messages, "S1: the message of each acknowledged change, and no others")
		if changes > 0 {
			require.Equal(t, got.Events[len(got.Events)-2].Key, got.Run.Code, "S1: the row is that of the last change")
		}
	}
}

// batchParts does in a batch what other cases do with single Changes.
func batchParts(t *T) {
	s := t.open()
	holder, full := t.run(s, "holder"), t.run(s, "full", func(r *store.Run) { r.Status = store.Running })
	holder.must(s, holder.holding("desk", "lamp"))
	release := holder.append(step("release"))
	release.Release = true
	take := full.append(step("take"))
	take.Hold, take.Yield = []string{"chair"}, true
	take.Branch = &store.Branch{N: 1, Cutoff: 1, Reason: "why", CreatedAt: t.now()}
	take.Row = &store.RowPatch{Status: ptr(store.Interrupted), Attributes: map[string]string{"a": "b"}, Branch: ptr(int32(1))}
	kid := child(t, "full", "kid")
	kid.Branch, kid.Hold = &store.Branch{N: 1, Cutoff: 1, CreatedAt: t.now()}, []string{"bed"}
	take.Start, take.Send = []store.Change{kid}, []store.Message{signal("holder", "1")}
	t.must(s, release, take, t.run(s, "plain").append(step("a")))
	for _, key := range []string{"desk", "lamp"} {
		require.NoError(t, t.tryHold(s, key), "S11: the batch released %q", key)
	}
	for _, key := range []string{"chair", "bed"} {
		require.ErrorIs(t, t.tryHold(s, key), store.ErrOccupied, "S11: the batch took %q", key)
	}
	got := t.all(s, "full")
	require.Fields(t, fields{"Status": store.Interrupted, "Epoch": full.epoch + 1, "Attributes": map[string]string{"a": "b"}, "Branch": int32(1)}, got.Run)
	require.Equal(t, []store.Branch{*take.Branch}, got.Branches)
	require.Equal(t, []store.Branch{*kid.Branch}, t.all(s, "kid").Branches, "S1: the branch of a run that is started")
	require.Equal(t, int64(1), t.row(s, "holder").Inbox)
}

// batchMany sends more Changes than Limits recommends: that is a hint, not a bound.
func batchMany(t *T) {
	s := t.open()
	n := max(s.Limits().Changes, 512) + 88
	var batch []store.Change
	for i := range n {
		c, _ := t.create(fmt.Sprintf("r%04d", i))
		batch = append(batch, c)
	}
	t.must(s, batch...)
	require.Equal(t, map[string]int64{"": int64(n)}, t.count(s, store.Filter{}, ""), "S2: each member is carried out")
	t.must(s, batch...) // S6
}
