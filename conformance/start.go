package conformance

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/store"
)

var startCases = []Case{
	{Name: "a child is there together with the event of its parent", Clauses: "S1", run: startChild},
	{Name: "starting the same run again does nothing", Clauses: "S6", run: startSame},
	{Name: "starting what is another run fails the whole change", Clauses: "S1, S8", run: startOther},
	{Name: "a run that is started can be sent to in the same change", Clauses: "S1, S13", run: startAndSend},
	{Name: "a run is created with its owner, its keys and its mail", Clauses: "S1, S6, S11, S13, S14", run: startFurnished},
	{Name: "a run is started with all that a creation may have", Clauses: "S1", run: startWhole},
	{Name: "a parent may end while its child starts", Clauses: "S1, S5", run: startAndEnd},
	{Name: "many parents that start one child get one", Clauses: "S1, S8", run: startRace},
	{Name: "many runs are started in one change", Clauses: "S1", run: startMany},
}

func child(t *T, parent, id string, edits ...func(*store.Run)) store.Change {
	edits = append([]func(*store.Run){func(r *store.Run) { r.Parent, r.ParentKey = parent, "child" }}, edits...)
	c, _ := t.create(id, edits...)
	return c
}

func startChild(t *T) {
	d := t.fresh()
	s := t.handle(d)
	w := t.claimed(s, "a", "parent")
	c := w.append(store.Event{Type: store.ChildStarted, Key: "child"})
	kid := child(t, "parent", "parent/child", fullRun, func(r *store.Run) { r.Parent, r.ParentKey, r.Paused = "parent", "child", false })
	kid.Hold = []string{"desk"}
	c.Start = []store.Change{kid}
	w.must(s, c)
	for _, reader := range []store.Store{s, t.handle(d)} {
		require.Equal(t, stored(c), t.all(reader, "parent").Events[2:])
		got := t.all(reader, "parent/child")
		require.Equal(t, stored(kid), got.Events)
		want := *kid.Create
		want.Last, want.UpdatedAt = got.Run.Last, got.Run.UpdatedAt
		require.Equal(t, want, got.Run)
		require.Equal(t, []string{"parent/child"}, ids(t.list(reader, store.Filter{Parents: []string{"parent"}})))
	}
	require.ErrorIs(t, t.tryHold(s, "desk"), store.ErrOccupied, "S1: with its exclusive key")
}

func startSame(t *T) {
	s := t.open()
	w := t.run(s, "parent")
	kid := child(t, "parent", "kid", func(r *store.Run) { r.InputHash = [16]byte{7} })
	t.must(s, store.Change{Start: []store.Change{kid}})
	t.beat(s, "a")
	taken := t.at(t.claim(s, "a", "kid")[0])
	taken.must(s, taken.end(store.Completed))
	before := t.all(s, "kid")

	// The same run, started by another process at another time.
	again := child(t, "parent", "kid", func(r *store.Run) {
		r.InputHash = [16]byte{7}
		r.Attributes = map[string]string{"new": "1"}
		r.Version = "v2"
	})
	again.Hold = []string{"desk"}
	c := w.append(store.Event{Type: store.ChildStarted, Key: "child"})
	c.Start = []store.Change{again}
	w.must(s, c)
	require.Equal(t, before, t.all(s, "kid"), "the run that is there stays as it is")
	require.NoError(t, t.tryHold(s, "desk"), "and takes no key")
	require.Len(t, t.all(s, "parent").Events, 2, "the rest of the change is carried out")
}

func startOther(t *T) {
	s := t.open()
	w := t.run(s, "parent")
	t.must(s, child(t, "parent", "kid"))
	differing := map[string]func(*store.Run){
		"workflow":   func(r *store.Run) { r.Workflow = "mail" },
		"input":      func(r *store.Run) { r.InputHash = [16]byte{1} },
		"parent":     func(r *store.Run) { r.Parent = "somebody" },
		"parent key": func(r *store.Run) { r.ParentKey = "child#2" },
	}
	before := t.dump(s)
	for name, edit := range differing {
		c := w.append(store.Event{Type: store.ChildStarted, Key: "child"})
		c.Start = []store.Change{child(t, "parent", "new"), child(t, "parent", "kid", edit)}
		err := t.commit(s, c)
		require.ErrorIs(t, err, store.ErrExists, "another %s", name)
		var exists *store.ExistsError
		require.ErrorAs(t, err, &exists)
		require.Equal(t, "kid", exists.RunID)
		require.ErrorIs(t, t.commit(s, store.Change{Start: c.Start}), store.ErrExists, "another %s, without a parent's change", name)
		require.Equal(t, before, t.dump(s), "S1: neither the event nor the other start")
	}
}

func startAndSend(t *T) {
	s := t.open()
	c := store.Change{Start: []store.Change{child(t, "", "kid")}, Send: []store.Message{signal("kid", "1"), signal("kid", "2")}}
	t.must(s, c)
	require.Equal(t, int64(2), t.row(s, "kid").Inbox)
	t.must(s, c)
	require.Equal(t, int64(2), t.row(s, "kid").Inbox)

	created, _ := t.create("parent")
	created.Send = []store.Message{signal("parent", "1"), signal("other", "1")}
	created.Start = []store.Change{child(t, "parent", "other")}
	t.must(s, created)
	require.Equal(t, []int64{1, 1}, []int64{t.row(s, "parent").Inbox, t.row(s, "other").Inbox})
}

func startFurnished(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.beat(s, "a")
	furnished := func(id string, edits ...func(*store.Run)) store.Change {
		c, _ := t.create(id, append(edits, func(r *store.Run) { r.Owner, r.Status = "a", store.Running })...)
		c.Hold = []string{id + "'s desk", id + "'s lamp"}
		c.Send = []store.Message{signal(id, "1"), signal(id, "2"), signal(id, "2")}
		return c
	}
	// Alone, in a batch, and within the start of another run, to which only the creator
	// can send.
	alone, first, second := furnished("alone"), furnished("first"), furnished("second")
	t.must(s, alone)
	t.must(s, first, second)
	parent := t.run(s, "parent")
	kid := furnished("kid", func(r *store.Run) { r.Parent, r.ParentKey = "parent", "child" })
	c := parent.append(store.Event{Type: store.ChildStarted, Key: "child"})
	c.Send, kid.Send = kid.Send, nil
	for i := range c.Send {
		c.Send[i].IfLive = true
	}
	c.Start = []store.Change{kid}
	parent.must(s, c)
	t.must(s, alone)
	t.must(s, first, second)
	t.must(s, c) // all of it again: S6
	for _, reader := range []store.Store{s, t.handle(d)} {
		for _, id := range []string{"alone", "first", "second", "kid"} {
			got := t.all(reader, id)
			require.Fields(t, fields{"Owner": "a", "Status": store.Running, "Inbox": int64(2)}, got.Run, id)
			require.Len(t, got.Inbox, 2, "S14: each id once")
			require.Equal(t, []int64{1, 2}, []int64{got.Inbox[0].Seq, got.Inbox[1].Seq})
			require.ErrorIs(t, t.tryHold(s, id+"'s lamp"), store.ErrOccupied)
		}
	}

	// If a key is held, neither the run nor its messages exist.
	refused, _ := t.create("refused")
	refused.Hold = []string{"free", "first's desk"}
	refused.Send = []store.Message{signal("refused", "1"), signal("parent", "1")}
	before := t.dump(s)
	require.ErrorIs(t, t.commit(s, refused), store.ErrOccupied)
	require.Equal(t, before, t.dump(s))
	require.NoError(t, t.tryHold(s, "free"))
}

func startAndEnd(t *T) {
	s := t.open()
	parent := t.run(s, "parent", func(r *store.Run) { r.Status = store.Running })
	w := t.claimed(s, "a", "kid", func(r *store.Run) { r.Parent = "parent" })
	c := w.end(store.Completed)
	c.Send = []store.Message{{To: "parent", Kind: store.KindChild, ID: "kid", Payload: []byte("result")}}
	c.Start = []store.Change{child(t, "kid", "successor")}
	w.must(s, c)
	require.Equal(t, store.Completed, t.row(s, "kid").Status)
	require.Equal(t, []byte("result"), t.all(s, "parent").Inbox[0].Payload)
	require.Equal(t, store.Pending, t.row(s, "successor").Status)
	parent.must(s, parent.end(store.Completed))
}

func startRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const parents = 6
	for round := range 4 {
		kid := fmt.Sprint("kid", round)
		writers := make([]*writer, parents)
		changes := make([]store.Change, parents)
		for i := range writers {
			writers[i] = t.run(handles[0], fmt.Sprintf("p%d.%d", round, i))
			changes[i] = writers[i].append(store.Event{Type: store.ChildStarted})
			// Odd ones start the same run, even ones a different run each.
			changes[i].Start = []store.Change{child(t, "shared", kid, func(r *store.Run) {
				if i%2 == 0 {
					r.InputHash = [16]byte{byte(i + 1)}
				}
			})}
		}
		errs := make([]error, parents)
		t.together(parents, func(i int) { errs[i] = one(t.Context(), handles[i%2], changes[i]) })
		winner := t.row(handles[0], kid).InputHash
		for i, err := range errs {
			same := changes[i].Start[0].Create.InputHash == winner
			events := len(t.all(handles[0], writers[i].id).Events)
			if same {
				require.NoError(t, err, "it is the run it wanted")
				require.Equal(t, 2, events)
			} else {
				require.ErrorIs(t, err, store.ErrExists)
				require.Equal(t, 1, events, "S1: its event is not there without its child")
			}
		}
		require.Len(t, t.all(handles[1], kid).Events, 1)
	}
}

func startMany(t *T) {
	s := t.open()
	w := t.run(s, "parent")
	c := w.append(store.Event{Type: store.ChildStarted})
	for i := range 100 {
		c.Start = append(c.Start, child(t, "parent", fmt.Sprintf("kid%02d", i)))
	}
	w.must(s, c)
	require.Equal(t, map[string]int64{"": 100}, t.count(s, store.Filter{Parents: []string{"parent"}}, ""))
	require.Len(t, t.list(s, store.Filter{IDPrefix: "kid"}), 100)
}

func startWhole(t *T) {
	s := t.open()
	w := t.run(s, "parent")
	kid := child(t, "parent", "kid", func(r *store.Run) { r.Owner, r.Status = "x", store.Interrupted })
	made := &writer{t: t, id: "kid", epoch: kid.Create.Epoch, seq: 1, sum: kid.Events[0].Sum, at: kid.Events[0].At}
	kid.Events = append(kid.Events, made.seal(step("copied"), step("too"))...)
	kid.Branch = &store.Branch{N: 1, Parent: 0, Generation: 2, Cutoff: 1, CutScope: "a", Reason: "why", CreatedAt: t.now()}
	kid.Hold, kid.Yield = []string{"desk"}, true
	c := w.append(store.Event{Type: store.ChildStarted})
	c.Start = []store.Change{kid}
	w.must(s, c)
	got := t.all(s, "kid")
	require.Equal(t, stored(kid), got.Events, "S1: every event, the last with the next epoch")
	require.Equal(t, []store.Branch{*kid.Branch}, got.Branches, "S1: its branch")
	require.Fields(t, fields{"Owner": "", "Epoch": kid.Create.Epoch + 1}, got.Run)
	require.ErrorIs(t, t.tryHold(s, "desk"), store.ErrOccupied, "S1: its exclusive key")
}
