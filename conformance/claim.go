package conformance

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var claimCases = []Case{
	{Name: "with nothing to do a claim returns at once, with nothing", Clauses: "S18", run: claimEmpty},
	{Name: "a claim starts a pending run", Clauses: "S19, S22", run: claimPending},
	{Name: "the creation that a claim hands over is all the run's history before it", Clauses: "S19, S41", run: claimCreated},
	{Name: "what comes while a run is claimed is not missing in what the claim hands over", Clauses: "S41", run: claimCreatedRace},
	{Name: "a claim resumes, and leaves a waiting run waiting", Clauses: "S19, S22", run: claimResumes},
	{Name: "a claim changes what it says and nothing else", Clauses: "S19, S24, S27", run: claimKeeps},
	{Name: "a claim's event continues the log on the current branch", Clauses: "S3, S22, S29", run: claimEvent},
	{Name: "only an executor that is live claims", Clauses: "S20", run: claimNeedsBeat},
	{Name: "only what the executor serves is taken", Clauses: "S19", run: claimServes},
	{Name: "a run with a live owner is never taken", Clauses: "S20", run: claimOwned},
	{Name: "what is due is taken, and nothing else", Clauses: "S19, S20", run: claimDue},
	{Name: "a delayed run is taken when its time has come, not before", Clauses: "S20, S29", run: claimDelayed},
	{Name: "by id everything unfinished that is free is taken", Clauses: "S19, S20", run: claimByID},
	{Name: "higher priority goes first, then who waits longest", Clauses: "S19", run: claimOrder},
	{Name: "no more are taken than asked for", Clauses: "S19", run: claimMax},
	{Name: "as many are taken as asked for", Clauses: "S19", run: claimMany},
	{Name: "named queues are taken only if listed, and as far as there is room", Clauses: "S19", run: claimQueues},
	{Name: "many claimers share many runs without a double or a loss", Clauses: "S19", run: claimRace},
	{Name: "many claimers after one run: one gets it", Clauses: "S19, S20", run: claimOneRace},
	{Name: "what a claim took that was answered with an error is the executor's, and whole", Clauses: "S19, S32", run: claimCut},
	{Name: "a claim lands while the old owner writes", Clauses: "S3, S19", run: claimAgainstAppends},
	{Name: "strikes count the deaths with nothing recorded in between", Clauses: "S21", run: claimStrikes},
	{Name: "a claim passes over the runs that it is told to leave", Clauses: "S19", run: claimSpares},
	{Name: "a run that was given up is claimable at once", Clauses: "S5, S19", run: claimReleased},
}

func claimEmpty(t *T) {
	s := t.open()
	t.beat(s, "a")
	require.Empty(t, t.claim(s, "a"))
	require.Empty(t, t.claim(s, "a", "absent"))
	t.run(s, "r")
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves})
	require.NoError(t, err)
	require.Empty(t, runs, "Max 0 takes none")
	runs, err = s.Claim(t.Context(), store.Claim{Executor: "a", Max: 10})
	require.NoError(t, err)
	require.Empty(t, runs, "who serves nothing takes none")
}

func claimPending(t *T) {
	d := t.fresh()
	s := t.handle(d)
	created := t.run(s, "r")
	before := t.row(s, "r")
	t.beat(s, "a")
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 1, Data: []byte(`{"by":"a"}`), At: t.now()})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	got := plainRun(runs[0])
	require.Fields(t, fields{"Owner": "a", "Status": store.Running, "Epoch": created.epoch + 1}, got)
	require.Fields(t, fields{"Type": store.WorkflowStarted, "Seq": int64(2), "Epoch": created.epoch + 1, "Data": []byte(`{"by":"a"}`)}, got.Last)
	require.Equal(t, got.Last.At, got.StartedAt, "StartedAt is the time of the event")
	require.Zero(t, got.Resumes)
	require.Zero(t, got.Strikes)
	want := before
	want.Owner, want.Status, want.Epoch, want.StartedAt, want.UpdatedAt, want.Last = got.Owner, got.Status, got.Epoch, got.StartedAt, got.UpdatedAt, got.Last
	require.Equal(t, want, got, "nothing else changed")
	require.Equal(t, got, t.row(t.handle(d), "r"), "S4: as returned, so stored")
	t.at(runs[0]).steps(s, 2)

	// With DataOf the event of each run has its own data.
	t.run(s, "x")
	t.run(s, "y")
	runs, err = s.Claim(t.Context(), store.Claim{
		Executor: "a", Serves: serves, Max: 2, IDs: []string{"x", "y"}, Data: []byte(`{"by":"a"}`), At: t.now(),
		DataOf: func(r *store.Run) []byte { return []byte(fmt.Sprintf(`{"of":%q,"status":%q}`, r.ID, r.Status)) },
	})
	require.NoError(t, err)
	require.Len(t, runs, 2)
	for _, r := range runs {
		says := fmt.Sprintf(`{"of":%q,"status":"pending"}`, r.ID)
		require.Equal(t, says, string(r.Last.Data), "DataOf is called with the row as it was before")
		require.Equal(t, says, string(t.row(t.handle(d), r.ID).Last.Data))
	}
}

func claimCreated(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.run(s, "fresh")
	t.run(s, "with attributes", func(r *store.Run) { r.Attributes = map[string]string{"n": "1"} })
	t.run(s, "with mail")
	t.must(s, send(signal("with mail", "1")))
	t.run(s, "cancelled")
	t.must(s, send(store.Message{To: "cancelled", Kind: store.KindCancel, ID: "1", At: 1}))
	t.run(s, "with steps").steps(s, 1)
	branched := t.run(s, "with a branch")
	c := branched.append(store.Event{Type: store.StepCompleted, Key: "k"})
	c.Branch = &store.Branch{N: 1, Cutoff: 1}
	branched.must(s, c)
	t.must(s, t.run(s, "with a branch alone").branching())
	t.run(s, "delayed", func(r *store.Run) { r.WakeAt = t.now().Add(time.Hour) })
	t.run(s, "interrupted", func(r *store.Run) { r.Status = store.Interrupted })
	before := t.dump(s)
	created := map[string]store.Event{}
	claim := claimOf("a")
	claim.Max = len(before)
	claim.Created = func(id string, e store.Event) { created[id] = plainEvent(e) }
	runs, err := s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, runs, len(before)-1)
	for _, r := range runs {
		e, ok := created[r.ID]
		delete(created, r.ID)
		if !ok {
			continue // no store has to
		}
		require.Contains(t, []string{"fresh", "with attributes"}, r.ID, "S41: handed over")
		require.Equal(t, before[r.ID].Events, []store.Event{e}, "S41: of %s", r.ID)
		require.Equal(t, plainEvent(*r.Last), t.all(s, r.ID).Events[1])
	}
	require.Empty(t, created, "S41: handed over, and not claimed")
}

func claimResumes(t *T) {
	s := t.open()
	t.beat(s, "a")
	for from, want := range map[store.Status]struct {
		status  store.Status
		event   store.Type
		resumes int32
	}{
		store.Running:     {store.Resuming, store.RunResumed, 8},
		store.Resuming:    {store.Resuming, store.RunResumed, 8},
		store.Interrupted: {store.Resuming, store.RunResumed, 8},
		store.Waiting:     {store.Waiting, store.RunClaimed, 7},
		store.Pending:     {store.Running, store.WorkflowStarted, 7},
	} {
		id := string(from)
		w := t.run(s, id, func(r *store.Run) { r.Status, r.Owner, r.Resumes = from, "gone", 7 })
		runs := t.claim(s, "a", id)
		require.Len(t, runs, 1, "a run that was %s", from)
		r := runs[0]
		require.Fields(t, fields{"Status": want.status, "Resumes": want.resumes, "Owner": "a", "Epoch": w.epoch + 1}, r, "from %s", from)
		require.Equal(t, want.event, r.Last.Type, "from %s", from)
	}
}

func claimEvent(t *T) {
	s := t.open()
	t.beat(s, "a")
	w := t.run(s, "r", func(r *store.Run) { r.Status, r.Branch = store.Interrupted, 2 })
	late := t.now() + 3_600_000_000
	w.must(s, w.append(store.Event{Type: store.StepCompleted, Key: "k", Branch: 2, At: late, Active: 90_000_000_000, Steps: 41, Payload: []byte("x")}))
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 1, IDs: []string{"r"}, At: late - 1})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	want := store.Event{Seq: 3, Epoch: w.epoch + 1, Branch: 2, Type: store.RunResumed, At: late, Active: 90_000_000_000, Steps: 41}
	want.Sum = store.Seal("r", w.sum, &want)
	require.GreaterOrEqual(t, runs[0].Last.At, late, "S29: a claim's event is no older than the event before")
	require.Equal(t, want, plainEvent(*runs[0].Last), "it continues what was counted, is sealed, and is no older than the event before")
	require.Equal(t, want, t.all(s, "r").Events[2])
}

func claimNeedsBeat(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.run(s, "r")
	before := t.dump(s)
	_, err := s.Claim(t.Context(), claimOf("stranger"))
	require.ErrorIs(t, err, store.ErrNotFound, "one that never beat")
	t.beat(s, "short", leased)
	t.kill(d, s, "short")
	_, err = s.Claim(t.Context(), claimOf("short"))
	require.Error(t, err, "S20: one whose lease ran out")
	t.beat(s, "left")
	t.beat(s, "left", leaving)
	_, err = s.Claim(t.Context(), claimOf("left"))
	require.Error(t, err, "S20: one that left")
	require.Equal(t, before, t.dump(s))
}

func claimServes(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.run(s, "mine")
	t.run(s, "other workflow", func(r *store.Run) { r.Workflow = "mail" })
	t.run(s, "other version", func(r *store.Run) { r.Version = "v2" })
	t.run(s, "pinned", func(r *store.Run) { r.InitialVersion = "v9" }) // the pinned version counts
	t.run(s, "case", func(r *store.Run) { r.Workflow = "ORDER" })
	require.Equal(t, []string{"mine", "pinned"}, sortedIDs(t.claim(s, "a", "mine", "other workflow", "other version", "pinned", "case")))
	require.Empty(t, t.claim(s, "a"))
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Max: 10, Serves: []store.Served{
		{Workflow: workflow, Versions: []string{"v0", "v2"}}, {Workflow: "mail", Versions: []string{version}}, {Workflow: "ORDER"},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"other version", "other workflow"}, sortedIDs(runs))
}

func claimOwned(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	w := t.claimed(s, "a", "r")
	t.beat(other, "b")
	for _, executor := range []string{"b", "a"} {
		require.Empty(t, t.claim(other, executor, "r"), "S20: by id, by %s", executor)
		require.Empty(t, t.claim(other, executor), "S20: as due, by %s", executor)
	}
	// A waiting run with something to do is its owner's business, too.
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Waiting), WakeAt: ptr(store.Time(1))}))
	t.must(s, send(signal("r", "1")))
	require.Empty(t, t.claim(other, "b"))
	require.Empty(t, t.claim(other, "b", "r"))
	w.steps(s, 1)
}

// stock creates runs in every state that matters to a claim. The value says whether a
// claim without ids takes the run, and whether one that names it does.
type stocked struct{ due, named bool }

func (t *T) stock(s store.Store) map[string]stocked {
	t.Helper()
	t.beat(s, "alive")
	const far = store.Time(1) << 60
	want := make(map[string]stocked)
	add := func(id string, due, named bool, edit func(*store.Run)) *writer {
		want[id] = stocked{due, named}
		return t.run(s, id, func(r *store.Run) { r.Status = store.Waiting; edit(r) })
	}
	add("pending", true, true, func(r *store.Run) { r.Status = store.Pending })
	add("pending, due", true, true, func(r *store.Run) { r.Status, r.WakeAt = store.Pending, 1 })
	add("pending, delayed", false, true, func(r *store.Run) { r.Status, r.WakeAt = store.Pending, far })
	add("pending, paused", false, false, func(r *store.Run) { r.Status, r.Paused = store.Pending, true })
	add("pending, paused, cancel", true, false, func(r *store.Run) { r.Status, r.Paused, r.CancelAsked = store.Pending, true, true })
	add("pending, owned", false, false, func(r *store.Run) { r.Status, r.Owner = store.Pending, "alive" })
	add("interrupted", true, true, func(r *store.Run) { r.Status = store.Interrupted })
	add("interrupted, parked", false, false, func(r *store.Run) { r.Status, r.Code = store.Interrupted, "definition_changed" })
	add("interrupted, newly served", true, true, func(r *store.Run) { r.Status, r.Code = store.Interrupted, store.CodeNotRegistered })
	add("interrupted, paused", false, false, func(r *store.Run) { r.Status, r.Paused = store.Interrupted, true })
	add("running, orphan", false, true, func(r *store.Run) { r.Status, r.Owner = store.Running, "dead" })
	add("running, nobody", false, true, func(r *store.Run) { r.Status = store.Running })
	add("running, owned", false, false, func(r *store.Run) { r.Status, r.Owner = store.Running, "alive" })
	add("resuming, orphan", false, true, func(r *store.Run) { r.Status, r.Owner = store.Resuming, "dead" })
	add("waiting", false, true, func(*store.Run) {})
	add("waiting, timer due", true, true, func(r *store.Run) { r.WakeAt = 1 })
	add("waiting, timer to come", false, true, func(r *store.Run) { r.WakeAt = far })
	add("waiting, timer due, orphan", true, true, func(r *store.Run) { r.WakeAt, r.Owner = 1, "dead" })
	add("waiting, timer due, owned", false, false, func(r *store.Run) { r.WakeAt, r.Owner = 1, "alive" })
	add("waiting, cancel", true, true, func(r *store.Run) { r.CancelAsked = true })
	add("waiting, paused", false, false, func(r *store.Run) { r.Paused, r.WakeAt = true, 1 })
	add("waiting, paused, cancel", true, false, func(r *store.Run) { r.Paused, r.CancelAsked = true, true })
	add("waiting, mail", true, true, func(*store.Run) {})
	seen := add("waiting, mail seen", false, true, func(*store.Run) {})
	t.must(s, send(signal("waiting, mail", "1"), signal("waiting, mail seen", "1")))
	seen.must(s, seen.patch(store.RowPatch{Seen: ptr(int64(1))}))
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled} {
		w := add("ended, "+string(status), false, false, func(r *store.Run) { r.Status = store.Running })
		w.must(s, w.end(status))
	}
	return want
}

func claimDue(t *T) {
	s := t.open()
	var want []string
	for id, st := range t.stock(s) {
		if st.due {
			want = append(want, id)
		}
	}
	require.True(t, t.beat(s, "a").Due, "a beat says that something is due")
	got := t.claim(s, "a")
	require.ElementsMatch(t, want, ids(got))
	for _, r := range got {
		require.Equal(t, "a", r.Owner)
	}
	require.Empty(t, t.claim(s, "a"), "S19: nothing twice")
	require.False(t, t.beat(s, "a").Due)
}

func claimDelayed(t *T) {
	d := t.fresh()
	s := t.handle(d)
	now := t.beat(s, "a").Now
	due := now.Add(shortLease)
	t.run(s, "delayed", func(r *store.Run) { r.WakeAt = due })
	t.run(s, "timer", func(r *store.Run) { r.Status, r.WakeAt = store.Waiting, due })
	taken := make(map[string]bool)
	t.eventually("S20: delayed runs are taken", func() bool {
		runs := t.claim(s, "a")
		p := t.beat(s, "a")
		if len(runs) > 0 {
			require.GreaterOrEqual(t, p.Now, due, "S20: not before its time, by the store's clock")
		}
		for _, r := range runs {
			require.False(t, taken[r.ID])
			require.GreaterOrEqual(t, r.Last.At, due, "S29: a claim's event is no older than the time its run waited for")
			taken[r.ID] = true
		}
		if p.Now > due && len(taken) < 2 {
			for _, r := range t.claim(s, "a") {
				taken[r.ID] = true
			}
			require.Len(t, taken, 2, "S20: its time has come")
		}
		if d.Advance != nil {
			d.Advance(shortLease / 5)
		}
		return len(taken) == 2
	})
}

func claimByID(t *T) {
	s := t.open()
	stock := t.stock(s)
	t.beat(s, "a")
	for id, st := range stock {
		runs := t.claim(s, "a", id, "absent", id)
		if !st.named {
			require.Empty(t, runs, "%q is not to be taken", id)
			continue
		}
		require.Equal(t, []string{id}, ids(runs), "%q is to be taken, once", id)
	}
	t.run(s, "in a queue", func(r *store.Run) { r.Queue = "mail" })
	require.Len(t, t.claim(s, "a", "in a queue"), 1, "by id the queue does not matter")
}

func claimOrder(t *T) {
	s := t.open()
	t.beat(s, "a")
	for i, priority := range []int32{0, 40_005, 0, -40_003, 40_005, 0} {
		t.run(s, fmt.Sprintf("r%d", i), func(r *store.Run) { r.Priority = priority })
	}
	var got []string
	for range 6 {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 1})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		got = append(got, runs[0].ID)
	}
	require.Equal(t, []string{"r1", "r4", "r0", "r2", "r5", "r3"}, got)
}

func claimMax(t *T) {
	s := t.open()
	t.beat(s, "a")
	var all []string
	for i := range 7 {
		all = append(all, t.run(s, fmt.Sprintf("r%d", i)).id)
	}
	took := make(map[string]bool)
	for _, want := range []int{3, 3, 1, 0} {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 3})
		require.NoError(t, err)
		require.Len(t, runs, want)
		for _, r := range runs {
			took[r.ID] = true
		}
	}
	require.Len(t, took, len(all))
	for i := range 4 {
		t.run(s, fmt.Sprintf("s%d", i))
	}
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 2, IDs: []string{"s0", "s1", "s2", "s3"}})
	require.NoError(t, err)
	require.Len(t, runs, 2)
}

func claimQueues(t *T) {
	s := t.open()
	t.beat(s, "a")
	for i := range 3 {
		t.run(s, fmt.Sprintf("plain%d", i))
		t.run(s, fmt.Sprintf("mail%d", i), func(r *store.Run) { r.Queue = "mail" })
		t.run(s, fmt.Sprintf("print%d", i), func(r *store.Run) { r.Queue = "print" })
	}
	claim := func(queues ...store.QueueRoom) []string {
		t.Helper()
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 100, Queues: queues})
		require.NoError(t, err)
		return sortedIDs(runs)
	}
	require.Equal(t, []string{"plain0", "plain1", "plain2"}, claim(), "the unnamed queue alone")
	require.Empty(t, claim(store.QueueRoom{Queue: "mail"}), "no room")
	require.Equal(t, []string{"mail0", "mail1"}, claim(store.QueueRoom{Queue: "mail", Max: 2}), "as many as there is room for")
	require.Equal(t, []string{"mail2"}, claim(store.QueueRoom{Queue: "mail", Max: 2}), "room is a claim's own")
	require.Equal(t, []string{"print0", "print1", "print2"}, claim(store.QueueRoom{Queue: "print", Max: -1}), "any number")
	for i := range 2 {
		t.run(s, fmt.Sprintf("fax%d", i), func(r *store.Run) { r.Queue = "fax" })
		t.run(s, fmt.Sprintf("copy%d", i), func(r *store.Run) { r.Queue = "copy" })
	}
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 100, AnyQueue: true, Queues: []store.QueueRoom{{Queue: "copy", Max: 1}}})
	require.NoError(t, err)
	require.Equal(t, []string{"copy0", "fax0", "fax1"}, sortedIDs(runs), "S19: AnyQueue takes from every queue, and from a listed one as far as there is room")
}

// claimKeeps gives every field of the row a value, so that a claim that resets one is
// noticed.
func claimKeeps(t *T) {
	s := t.open()
	t.beat(s, "a")
	for _, status := range []store.Status{store.Pending, store.Running, store.Resuming, store.Waiting, store.Interrupted} {
		id := string(status)
		t.run(s, id, fullRun, func(r *store.Run) {
			r.ID, r.Workflow, r.Version, r.Status, r.Owner, r.Paused, r.Dedup = id, workflow, version, status, "gone", false, id
			if r.Code = "why"; status == store.Interrupted {
				r.Code = store.CodeNotRegistered
			}
			r.Reason, r.Seen, r.Inbox = "why "+id, 0, 0
		})
		t.must(s, send(signal(id, "1"), store.Message{To: id, Kind: store.KindCancel, ID: "1"}))
		before := t.row(s, id)
		runs := t.claim(s, "a", id)
		require.Len(t, runs, 1, "a run that is %s is claimed", id)
		got := plainRun(runs[0])
		require.NotNil(t, got.Last, "S27: a claimed run comes with the event of the claim")
		want := before
		want.Status, want.Owner, want.Epoch = got.Status, "a", before.Epoch+1
		want.StartedAt, want.Resumes, want.Strikes, want.UpdatedAt, want.Last = got.StartedAt, got.Resumes, got.Strikes, got.UpdatedAt, got.Last
		require.Equal(t, want, got, "S19: a claim of a run that is %s changes nothing else", id)
		if status != store.Pending {
			require.Equal(t, before.StartedAt, got.StartedAt, "S19: only a first claim sets StartedAt")
		}
		require.GreaterOrEqual(t, got.UpdatedAt, before.UpdatedAt, "S24: UpdatedAt does not go back")
		require.Equal(t, got, t.row(s, id), "S4: as returned, so stored")
	}
}

func claimMany(t *T) {
	s := t.open()
	t.beat(s, "a")
	const n = 120
	var batch []store.Change
	var all []string
	for i := range n {
		c, w := t.create(fmt.Sprintf("r%03d", i))
		batch, all = append(batch, c), append(all, w.id)
	}
	t.must(s, batch...)
	require.Equal(t, all[:110], sortedIDs(t.claim(s, "a", all[:110]...)), "S19: by id, when nobody else is at work")
	for _, id := range all[:110] {
		w := t.at(t.row(s, id))
		w.must(s, w.end(store.Interrupted))
	}
	require.Equal(t, all, sortedIDs(t.claim(s, "a")), "S19: all that is due, when nobody else is at work")
}

func claimStrikes(t *T) {
	s := t.open()
	t.run(s, "r")
	var w *writer
	lives := 0
	die := func(strikes int32, why string) {
		t.Helper()
		lives++
		executor := fmt.Sprint("e", lives)
		t.beat(s, executor)
		runs := t.claim(s, executor, "r")
		require.Len(t, runs, 1)
		require.Equal(t, strikes, runs[0].Strikes, "S21: %s", why)
		require.Equal(t, strikes, t.row(s, "r").Strikes)
		w = t.at(runs[0])
		t.beat(s, executor, leaving) // gone without releasing its runs
	}
	die(0, "a first claim")
	die(1, "it died, and its last event is the claim: one more than 0")
	die(2, "again")
	die(3, "again")
	w.must(s, w.append(step("progress")))
	die(1, "something was recorded before it died")
	die(2, "and then nothing")
	w.must(s, w.end(store.Interrupted))
	die(0, "it was given up gracefully")
	die(1, "and died again")
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Waiting)}))
	die(0, "it was waiting")
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Running), Strikes: ptr(int32(7))}))
	die(8, "a row may be patched")
}

func claimReleased(t *T) {
	s := t.open()
	w := t.claimed(s, "a", "r")
	t.beat(s, "b")
	w.must(s, w.end(store.Interrupted))
	runs := t.claim(s, "b")
	require.Equal(t, []string{"r"}, ids(runs))
	require.Equal(t, w.epoch+1, runs[0].Epoch)
	require.ErrorIs(t, t.commit(s, w.append(step("late"))), store.ErrFenced)
	t.at(runs[0]).steps(s, 1)
}

func claimSpares(t *T) {
	s := t.open()
	t.beat(s, "a")
	want := map[string]store.Type{}
	for i := range 40 {
		r := t.run(s, fmt.Sprint("left ", i))
		r.steps(s, 1)
		want[fmt.Sprint("left ", i)] = store.StepCompleted
	}
	t.run(s, "taken")
	want["taken"] = store.WorkflowCreated
	before := t.dump(s)
	seen := map[string]store.Type{}
	claim := claimOf("a")
	claim.Max = len(want)
	claim.Spare = func(r *store.Run) bool {
		seen[r.ID] = r.Last.Type
		return r.ID != "taken"
	}
	runs, err := s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, "taken", runs[0].ID)
	require.Equal(t, want, seen, "Spare is called with the row as it was before, and its last event")
	after := t.dump(s)
	delete(before, "taken")
	delete(after, "taken")
	require.Equal(t, before, after, "nothing changed")

	t.run(s, "taken too")
	claim.Max, claim.Spare = 1, func(r *store.Run) bool { return r.ID != "taken too" }
	runs, err = s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Equal(t, []string{"taken too"}, ids(runs), "it is due, however many before it are passed over")

	claim.Max, claim.Spare, claim.IDs = len(want), func(r *store.Run) bool { return r.ID == "left 0" }, []string{"left 0", "left 1"}
	runs, err = s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, "left 1", runs[0].ID)
	claim.Spare, claim.IDs = nil, nil
	runs, err = s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, runs, 39)
}
