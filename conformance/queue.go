package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var queueCases = []Case{
	{Name: "a queue reads back as it was put", Clauses: "S4, S35", Needs: Queues, run: queueReadsBack},
	{Name: "a queue is put at the revision that it has, and at no other", Clauses: "S35", Needs: Queues, run: queueCompares},
	{Name: "of many who put a queue at once one wins", Clauses: "S35", Needs: Queues, run: queuePutRace},
	{Name: "an invalid queue is refused and changes nothing", Clauses: "S35", Needs: Queues, run: queueInvalid},
	{Name: "what was put holds for the next claim", Clauses: "S33, S35", Needs: Queues, run: queuePutHolds},
	{Name: "a queue that was never put has no limits", Clauses: "S33", Needs: Queues, run: queueUnput},
	{Name: "a queue gives as many places as it has", Clauses: "S33", Needs: Queues, run: queueMax},
	{Name: "a waiting run keeps its place, an interrupted one gives it up", Clauses: "S33", Needs: Queues, run: queueKeeps},
	{Name: "a partition gives as many places as it has, and holds up no other", Clauses: "S33, S34", Needs: Queues, run: queuePartitionMax},
	{Name: "a claim by ids keeps the limits of a queue", Clauses: "S33", Needs: Queues, run: queueByID},
	{Name: "a paused queue gives no place", Clauses: "S33", Needs: Queues, run: queuePaused},
	{Name: "a run that was cancelled in line needs no place", Clauses: "S33", Needs: Queues, run: queueCancelled},
	{Name: "many executors together stay within the limits of a queue", Clauses: "S33", Needs: Queues, run: queueRace},
	{Name: "a rate holds in every window", Clauses: "S33", Needs: Queues, run: queueRate},
	{Name: "many executors together stay within a rate", Clauses: "S33", Needs: Queues, run: queueRateRace},
	{Name: "only runs that begin count for a rate", Clauses: "S33", Needs: Queues, run: queueRateBegins},
	{Name: "a rate outlives a clock that jumps", Clauses: "S33", Needs: Queues, hook: hookAdvance, run: queueRateJumps},
	{Name: "a rate that is replaced counts what is remembered", Clauses: "S33", Needs: Queues, run: queueRateReplaced},
	{Name: "within a partition the lowest rank comes first", Clauses: "S34", Needs: Queues, run: queueRank},
	{Name: "a delayed run is in line when its time has come", Clauses: "S20, S34", Needs: Queues, run: queueDelayed},
	{Name: "partitions take turns, over claims and handles", Clauses: "S34", Needs: Queues, run: queueTurns},
	{Name: "a claim by ids is no turn", Clauses: "S34", Needs: Queues, run: queueTurnByID},
	{Name: "between queues the lowest rank among the next comes first", Clauses: "S34", Needs: Queues, run: queueBetween},
	{Name: "a claim tells which queues held runs back, and until when", Clauses: "S33", Needs: Queues, run: queueHeld},
	{Name: "a run of a queue that a claim cannot take is in nobody's way", Clauses: "S19, S34", Needs: Queues, run: queueUnserved},
	{Name: "a queue says what is in it", Clauses: "Queues", Needs: Queues, run: queueState},
	{Name: "a queue describes its longest partitions", Clauses: "Queues", Needs: Queues, run: queueShown},
	{Name: "a run in line knows how many come before it", Clauses: "Queues, S34", Needs: Queues, run: queueAhead},
	{Name: "limits, turns and rates outlive the handles", Clauses: "S4, S33, S34", Needs: Queues, run: queueReopen},
	{Name: "names of queues and partitions are taken to the letter", Clauses: "S33, S34", Needs: Queues, run: queueNames},
	{Name: "a closed store keeps no queues", Clauses: "S23", Needs: Queues, run: queueClosed},
}

func queues(s store.Store) store.Queues { return capabilities(s).Queues }

// putQueue stores a queue over the revision that is there.
func (t *T) putQueue(s store.Store, q store.Queue) {
	t.Helper()
	states, err := queues(s).Queues(t.Context(), q.Name)
	require.NoError(t, err)
	q.Revision = 0
	if len(states) > 0 {
		q.Revision = states[0].Revision
	}
	require.NoError(t, queues(s).PutQueue(t.Context(), q), "S35: a queue is put at its revision")
}

// queue returns the state of a queue.
func (t *T) queue(s store.Store, name string) store.QueueState {
	t.Helper()
	states, err := queues(s).Queues(t.Context(), name)
	require.NoError(t, err)
	require.Len(t, states, 1, "the queue %q", name)
	return states[0]
}

// in puts a run into a queue and a partition.
func in(queue, partition string) func(*store.Run) {
	return func(r *store.Run) { r.Queue, r.Partition = queue, partition }
}

// line creates n runs of a queue, q0 and so on, spread over the partitions.
func (t *T) line(s store.Store, n int, queue string, partitions ...string) (all []string) {
	t.Helper()
	for i := range n {
		partition := ""
		if len(partitions) > 0 {
			partition = partitions[i%len(partitions)]
		}
		all = append(all, t.run(s, fmt.Sprintf("%s%d", queue, i), in(queue, partition)).id)
	}
	return all
}

func of(executor string, most int, list ...string) store.Claim {
	c := store.Claim{Executor: executor, Serves: serves, Max: most}
	for _, q := range list {
		c.Queues = append(c.Queues, store.QueueRoom{Queue: q, Max: -1})
	}
	return c
}

// take claims at most so many runs from any place in the queues.
func (t *T) take(s store.Store, executor string, most int, list ...string) []store.Run {
	t.Helper()
	runs, err := s.Claim(t.Context(), of(executor, most, list...))
	require.NoError(t, err)
	return runs
}

// finish ends a claimed run.
func (t *T) finish(s store.Store, r store.Run) {
	t.Helper()
	w := t.at(r)
	w.must(s, w.end(store.Completed))
}

func queueReadsBack(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	before := t.beat(s, "a").Now
	want := []store.Queue{
		{Name: "Mail"},
		{Name: "mail", Max: 7, MaxPerPartition: 3, Rate: store.MaxRate, Per: 90 * time.Minute, Paused: true, Reason: "till Monday ü 🚚"},
		{Name: "print", Rate: 1, Per: 1001 * time.Microsecond},
	}
	for _, i := range []int{2, 0, 1} {
		require.NoError(t, queues(s).PutQueue(t.Context(), want[i]))
		want[i].Revision = 1
	}
	after := t.beat(s, "a").Now
	check := func(s store.Store, names ...string) {
		t.Helper()
		states, err := queues(s).Queues(t.Context(), names...)
		require.NoError(t, err)
		var got []store.Queue
		for i := range states {
			q := &states[i].Queue
			require.GreaterOrEqual(t, q.UpdatedAt, before, "UpdatedAt is by the store's clock")
			require.LessOrEqual(t, q.UpdatedAt, after, "UpdatedAt is by the store's clock")
			q.UpdatedAt = 0
			got = append(got, *q)
		}
		require.Equal(t, want, got, "S4: queues, in the order of their names")
	}
	check(s)
	check(other)
	check(other, "print", "nobody's", "mail", "Mail")
	states, err := queues(other).Queues(t.Context(), "nobody's")
	require.NoError(t, err)
	require.Empty(t, states)

	q := want[1]
	q.Max, q.Paused, q.Reason, q.Rate, q.Per, q.UpdatedAt = 0, false, "", 0, 0, 1
	require.NoError(t, queues(other).PutQueue(t.Context(), q))
	after = t.beat(s, "a").Now
	q.Revision, q.UpdatedAt = 2, 0
	want[1] = q
	check(s)
}

func queueCompares(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	q := store.Queue{Name: "mail", Max: 1}
	fenced := func(s store.Store, revision int64) {
		t.Helper()
		before := t.queueStates(s)
		r := q
		r.Revision, r.Max = revision, 99
		require.ErrorIs(t, queues(s).PutQueue(t.Context(), r), store.ErrRevision, "S35: revision %d", revision)
		require.Equal(t, before, t.queueStates(s), "S35: what is refused changes nothing")
	}
	fenced(s, 1)
	require.NoError(t, queues(s).PutQueue(t.Context(), q))
	fenced(other, 0)
	fenced(other, 2)
	q.Revision, q.Max = 1, 2
	require.NoError(t, queues(other).PutQueue(t.Context(), q))
	fenced(s, 0)
	fenced(s, 1)
	require.Fields(t, fields{"Revision": int64(2), "Max": 2}, t.queue(s, "mail").Queue)
	// Runs alone make no revision.
	t.line(s, 1, "print")
	require.Zero(t, t.queue(s, "print").Revision)
	require.NoError(t, queues(s).PutQueue(t.Context(), store.Queue{Name: "print", Max: 4}), "S35: a queue that was not put is at revision 0")
}

func (t *T) queueStates(s store.Store) []store.QueueState {
	t.Helper()
	states, err := queues(s).Queues(t.Context())
	require.NoError(t, err)
	return states
}

func queuePutRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const clients, rounds = 6, 8
	for round := range rounds {
		errs := make([]error, clients)
		t.together(clients, func(i int) {
			errs[i] = queues(handles[i%2]).PutQueue(t.Context(), store.Queue{Name: "mail", Revision: int64(round), Max: 1 + i})
		})
		won := -1
		for i, err := range errs {
			switch {
			case err == nil:
				require.Equal(t, -1, won, "S35: two put revision %d", round+1)
				won = i
			default:
				require.ErrorIs(t, err, store.ErrRevision, "S35: who comes second is told so")
			}
		}
		require.GreaterOrEqual(t, won, 0, "S35: one of them puts revision %d", round+1)
		require.Fields(t, fields{"Revision": int64(round + 1), "Max": 1 + won}, t.queue(handles[1], "mail").Queue, "S35: what the winner put is there")
	}
}

func queueInvalid(t *T) {
	s := t.open()
	require.NoError(t, queues(s).PutQueue(t.Context(), store.Queue{Name: "mail", Max: 1}))
	before := t.queueStates(s)
	for why, q := range map[string]store.Queue{
		"no name":           {},
		"a control char":    {Name: "a\x00b"},
		"broken UTF-8":      {Name: "a\xffb"},
		"a negative limit":  {Name: "mail", Revision: 1, Max: -1},
		"for a partition":   {Name: "mail", Revision: 1, MaxPerPartition: -1},
		"a negative rate":   {Name: "mail", Revision: 1, Rate: -1, Per: time.Second},
		"a rate per what":   {Name: "mail", Revision: 1, Rate: 1},
		"what per second":   {Name: "mail", Revision: 1, Per: time.Second},
		"a negative window": {Name: "mail", Revision: 1, Rate: 1, Per: -time.Second},
		"a short window":    {Name: "mail", Revision: 1, Rate: 1, Per: time.Microsecond},
		"a huge rate":       {Name: "mail", Revision: 1, Rate: store.MaxRate + 1, Per: time.Second},
	} {
		require.ErrorIs(t, queues(s).PutQueue(t.Context(), q), store.ErrInvalid, "S35: %s", why)
	}
	require.Equal(t, before, t.queueStates(s))
}

func queuePutHolds(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.beat(s, "a")
	t.line(s, 10, "mail")
	t.putQueue(s, store.Queue{Name: "mail", Max: 2})
	require.Len(t, t.take(other, "a", 10, "mail"), 2, "S35: a limit, on another handle")
	t.putQueue(s, store.Queue{Name: "mail", Max: 3})
	require.Len(t, t.take(other, "a", 10, "mail"), 1, "S35: one more")
	t.putQueue(other, store.Queue{Name: "mail", Max: 1})
	require.Empty(t, t.take(s, "a", 10, "mail"), "S35: fewer than hold a place: none is given, none taken away")
	require.Equal(t, int64(3), t.queue(s, "mail").Placed)
	t.putQueue(other, store.Queue{Name: "mail", Paused: true})
	require.Empty(t, t.take(s, "a", 10, "mail"), "S35: paused")
	t.putQueue(s, store.Queue{Name: "mail"})
	require.Len(t, t.take(other, "a", 10, "mail"), 7, "S35: no limit any more")
}

func queueUnput(t *T) {
	s := t.open()
	t.beat(s, "a")
	all := t.line(s, 30, "mail", "x", "y", "")
	t.putQueue(s, store.Queue{Name: "another", Max: 1, MaxPerPartition: 1, Paused: true})
	require.ElementsMatch(t, all, ids(t.take(s, "a", 100, "mail", "another")), "S33: there is nothing that limits it")
}

func queueMax(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.beat(s, "a")
	t.beat(s, "b")
	t.putQueue(s, store.Queue{Name: "mail", Max: 3})
	t.line(s, 9, "mail", "x", "y")
	t.run(s, "free")
	runs := t.take(s, "a", 2, "mail")
	require.Len(t, runs, 2)
	more := t.take(other, "b", 10, "mail")
	require.Len(t, more, 2, "S33: the last place, and the run that needs none")
	require.Contains(t, ids(more), "free", "S33: a run outside the queue")
	require.Empty(t, t.take(s, "a", 10, "mail"), "S33: no place is left")
	require.Equal(t, int64(3), t.queue(s, "mail").Placed)
	t.finish(s, runs[0])
	require.Len(t, t.take(other, "b", 10, "mail"), 1, "S33: who ends gives a place up")
	for _, status := range []store.Status{store.Failed, store.Cancelled} {
		placed := t.list(s, store.Filter{Queues: []string{"mail"}, Statuses: []store.Status{store.Running}, WithLast: true})
		require.Len(t, placed, 3)
		w := t.at(placed[0])
		w.must(s, w.end(status))
		require.Len(t, t.take(other, "b", 10, "mail"), 1, "S33: who ends %s gives a place up", status)
	}
}

func queueKeeps(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.beat(s, "b")
	t.putQueue(s, store.Queue{Name: "mail", Max: 1})
	t.line(s, 3, "mail")
	runs := t.take(s, "b", 10, "mail")
	require.Len(t, runs, 1)
	w := t.at(runs[0])
	wake := t.beat(s, "b").Now.Add(time.Hour)
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Waiting), WakeAt: &wake}))
	require.Equal(t, int64(1), t.queue(s, "mail").Placed, "S33: a waiting run holds its place")
	require.Empty(t, t.take(s, "b", 10, "mail"), "S33: a waiting run holds its place")
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Running), WakeAt: ptr(store.Time(0))}))

	// Its owner dies: the place is kept for who goes on with it.
	w.must(s, w.end(store.Interrupted))
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "b", Serves: serves, Max: 1, IDs: []string{w.id}})
	require.NoError(t, err)
	require.Len(t, runs, 1, "S33: an interrupted run gets a place again")
	w = t.at(runs[0])
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Waiting), WakeAt: ptr(store.Time(1))}))
	t.beat(s, "b", leaving)
	t.beat(s, "c")
	require.Equal(t, int64(1), t.queue(s, "mail").Placed, "S33: also when its owner is gone")
	runs = t.take(s, "c", 10, "mail")
	require.Equal(t, []string{w.id}, ids(runs), "S33: it wakes up in its place, and nobody else gets one")
	w = t.at(runs[0])
	w.must(s, w.end(store.Interrupted))
	require.Zero(t, t.queue(s, "mail").Placed, "S33: an interrupted run gives its place up")
	runs = t.take(s, "c", 10, "mail")
	require.Len(t, runs, 1, "S33: and another gets it, or the same again")
	require.Equal(t, w.id, runs[0].ID, "S34: the one that was created first")
	w = t.at(runs[0])
	w.must(s, func() store.Change {
		c := w.end(store.Interrupted)
		c.Row.Code = ptr("definition_changed")
		return c
	}())
	require.Equal(t, []string{"mail1"}, ids(t.take(s, "c", 10, "mail")), "S33: a parked run holds no place")
}

func queuePartitionMax(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Max: 6, MaxPerPartition: 2})
	for _, partition := range []string{"x", "y"} {
		for i := range 8 {
			t.run(s, fmt.Sprint(partition, i), in("mail", partition))
		}
	}
	for i := range 3 {
		t.run(s, fmt.Sprint("z", i), in("mail", "z"))
	}
	t.run(s, "none", in("mail", ""))
	byID := map[string]store.Run{}
	take := func(why string, want ...string) {
		t.Helper()
		runs := t.take(s, "a", 100, "mail")
		require.Equal(t, strings.Join(want, " "), strings.Join(ids(runs), " "), "S33: %s", why)
		for _, r := range runs {
			byID[r.ID] = r
		}
	}
	runs := t.take(s, "a", 100, "mail")
	require.Equal(t, []string{"none", "x0", "x1", "y0", "y1", "z0"}, sortedIDs(runs), "S33: six in all, two of a partition")
	require.Equal(t, "y1", runs[5].ID)
	for _, r := range runs {
		byID[r.ID] = r
	}
	t.finish(s, byID["y1"])
	take("whose turn it is", "z1")
	t.finish(s, byID["none"])
	take("x is at its limit and holds up nobody", "y2")
	take("all are at their limits")
	t.finish(s, byID["x0"])
	t.finish(s, byID["x1"])
	take("a place of a partition is for its runs", "x2", "x3")
	t.putQueue(s, store.Queue{Name: "mail", MaxPerPartition: 2})
	take("each partition has its own places")
	t.finish(s, byID["z0"])
	t.finish(s, byID["z1"])
	take("x and y are at their limits", "z2")
}

func queueByID(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Max: 3, MaxPerPartition: 2})
	all := t.line(s, 9, "mail", "x", "x", "y")
	runs := t.claim(s, "a", all...)
	require.Equal(t, []string{"mail0", "mail1", "mail2"}, ids(runs), "S33: within the limits, in the order given")
	require.Empty(t, t.claim(s, "a", all...), "S33: no place is left")
	t.finish(s, runs[2])
	t.putQueue(s, store.Queue{Name: "mail", MaxPerPartition: 2, Rate: 1, Per: time.Hour})
	require.Equal(t, []string{"mail5"}, ids(t.claim(s, "a", all...)), "S33: of a partition that is not full")
	require.Empty(t, t.claim(s, "a", all...), "S33: the rate is used up")
	w := t.at(runs[0])
	w.must(s, w.end(store.Interrupted))
	require.Equal(t, []string{"mail0"}, ids(t.claim(s, "a", append(all, all...)...)), "S33: who resumes does not begin")
	t.putQueue(s, store.Queue{Name: "mail", Paused: true})
	require.Empty(t, t.claim(s, "a", "mail3", "mail4"), "S33: a paused queue")
	orphan := t.run(s, "orphan", in("mail", "x"), func(r *store.Run) { r.Status, r.Owner = store.Running, "gone" })
	require.Len(t, t.claim(s, "a", orphan.id), 1, "S33: a run that holds a place needs none")
}

func queuePaused(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.line(s, 3, "mail", "x", "y")
	runs := t.take(s, "a", 1, "mail")
	w := t.at(runs[0])
	w.must(s, w.patch(store.RowPatch{Status: ptr(store.Waiting), WakeAt: ptr(store.Time(1))}))
	t.putQueue(s, store.Queue{Name: "mail", Paused: true, Reason: "closed"})
	require.Empty(t, t.take(s, "a", 10, "mail"), "S33: paused")
	w.steps(s, 1) // who holds a place goes on
	t.beat(s, "a", leaving)
	t.beat(s, "b")
	require.Equal(t, []string{w.id}, ids(t.take(s, "b", 10, "mail")), "S33: also on another executor")
	st := t.queue(s, "mail")
	require.Fields(t, fields{"Paused": true, "Reason": "closed"}, st.Queue)
	require.Equal(t, int64(2), st.InLine, "S33: they stay in line")
	require.True(t, t.beat(s, "b").Due, "S31: a beat does not ask the queue")
	t.putQueue(s, store.Queue{Name: "mail"})
	require.Len(t, t.take(s, "b", 10, "mail"), 2, "S33: it goes on")
}

func queueCancelled(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Max: 1, MaxPerPartition: 1, Rate: 1, Per: time.Hour})
	all := t.line(s, 5, "mail")
	require.Len(t, t.take(s, "a", 10, "mail"), 1)
	cancel := func(id string) {
		t.must(s, send(store.Message{To: id, Kind: store.KindCancel, ID: "1", At: 1}))
	}
	cancel(all[1])
	require.Equal(t, []string{all[1]}, ids(t.take(s, "a", 10, "mail")), "S33: though the queue is full")
	require.Equal(t, int64(1), t.queue(s, "mail").Begun, "S33: it is none that begins")
	t.putQueue(s, store.Queue{Name: "mail", Paused: true})
	cancel(all[2])
	cancel(all[3])
	require.Equal(t, []string{all[2]}, ids(t.claim(s, "a", all[2], all[4])), "S33: by id, though the queue is paused")
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "a", Serves: serves, Max: 10, Queues: []store.QueueRoom{{Queue: "mail", Max: 0}}})
	require.NoError(t, err)
	require.Equal(t, []string{all[3]}, ids(runs), "S33: though the claim has no room for runs that need a place")
	require.Equal(t, int64(1), t.queue(s, "mail").InLine, "S33: who needs no place is not in line")
}

// queueRace has executors on several handles begin, end and interrupt runs of a queue,
// and counts by itself: a run is counted after its claim has returned, and no more before
// it is given up, which is after the next claim of its executor.
func queueRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d), t.handle(d)}
	const items, executors, most, mostOfOne = 60, 6, 4, 3
	t.putQueue(handles[0], store.Queue{Name: "mail", Max: most, MaxPerPartition: mostOfOne})
	all := t.line(handles[0], items, "mail", "x", "y", "z", "x")
	for i := range executors {
		t.beat(handles[i%3], fmt.Sprint("e", i))
	}
	ctx := t.patient()
	var mu sync.Mutex
	placed, of1, done := 0, map[string]int{}, map[string]bool{}
	interrupted := map[string]bool{}
	t.together(executors, func(i int) {
		s, executor := handles[i%3], fmt.Sprint("e", i)
		var before []store.Run
		for ctx.Err() == nil {
			c := of(executor, 3, "mail")
			if i%3 == 2 {
				c.IDs = all
			}
			runs, err := s.Claim(ctx, c)
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			mu.Lock()
			for _, r := range runs {
				placed++
				of1[r.Partition]++
				if placed > most || of1[r.Partition] > mostOfOne {
					t.Errorf("S33: %d runs hold a place, of them %d of partition %q; at most %d and %d may", placed, of1[r.Partition], r.Partition, most, mostOfOne)
				}
			}
			mu.Unlock()
			for _, r := range before {
				mu.Lock()
				placed--
				of1[r.Partition]--
				status := store.Completed
				if !interrupted[r.ID] && len(done)%3 == 0 {
					status, interrupted[r.ID] = store.Interrupted, true
				} else {
					done[r.ID] = true
				}
				mu.Unlock()
				if err := one(ctx, s, t.at(r).end(status)); err != nil {
					t.Errorf("end of %s: %v", r.ID, err)
					return
				}
			}
			before = runs
			mu.Lock()
			complete := len(done) == items
			mu.Unlock()
			if complete {
				return
			}
		}
	})
	require.Len(t, done, items, "S33: none is lost, and a place that was given up is given again")
	require.Zero(t, t.queue(handles[0], "mail").Placed)
}

// begun collects when runs of a queue began, by the store's clock.
type begun struct {
	rate int
	per  time.Duration
	at   []store.Time
}

// add adds claimed runs; nothing wrote to their rows since but the claim.
func (b *begun) add(runs []store.Run) {
	for _, r := range runs {
		b.at = append(b.at, r.UpdatedAt)
	}
	slices.Sort(b.at)
}

// check says that no window holds more than the rate.
func (b *begun) check(t *T) {
	t.Helper()
	for i := range b.at[:max(0, len(b.at)-b.rate)] {
		if d := b.at[i+b.rate].Sub(b.at[i]); d < b.per {
			require.Fail(t, fmt.Sprintf("S33: %d runs began within %v; at most %d may within %v", b.rate+1, d, b.rate, b.per))
		}
	}
}

// after counts those that began after a moment.
func (b *begun) after(at store.Time) (n int) {
	for _, b := range b.at {
		if b > at {
			n++
		}
	}
	return n
}

// queueRate drains a queue as fast as its rate allows.
func queueRate(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	const items = 12
	b := &begun{rate: 3, per: 210 * time.Millisecond}
	t.putQueue(s, store.Queue{Name: "mail", Rate: b.rate, Per: b.per})
	t.line(s, items, "mail", "x", "y")
	n := 0
	t.eventually("S33: a queue with a rate is drained", func() bool {
		n++
		before := t.beat(s, "a").Now
		used := b.after(before.Add(-b.per))
		most := 1 + n%4
		runs := t.take([]store.Store{s, other}[n%2], "a", most, "mail")
		b.add(runs)
		if want := min(most, b.rate-used, items-len(b.at)+len(runs)); len(runs) < want {
			require.Fail(t, fmt.Sprintf("S33: %d of %d runs began in the last %v, and a claim of %d more got %d", used, b.rate, b.per, most, len(runs)))
		}
		if d.Advance != nil {
			d.Advance(b.per / 7)
		}
		return len(b.at) == items
	})
	b.check(t)
}

func queueRateRace(t *T) {
	d := t.fresh()
	handles := []store.Store{t.handle(d), t.handle(d)}
	const items, executors = 30, 6
	b := &begun{rate: 5, per: 40 * time.Millisecond}
	t.putQueue(handles[0], store.Queue{Name: "mail", Rate: b.rate, Per: b.per})
	all := t.line(handles[0], items, "mail", "x", "y", "z")
	for i := range executors {
		t.beat(handles[i%2], fmt.Sprint("e", i))
	}
	ctx := t.patient()
	var mu sync.Mutex
	t.together(executors, func(i int) {
		for ctx.Err() == nil {
			c := of(fmt.Sprint("e", i), 2, "mail")
			if i%3 == 2 {
				c.IDs = all
			}
			runs, err := handles[i%2].Claim(ctx, c)
			if err != nil {
				t.Errorf("claim: %v", err)
				return
			}
			mu.Lock()
			b.add(runs)
			complete := len(b.at) >= items
			mu.Unlock()
			if complete {
				return
			}
			if d.Advance != nil && len(runs) == 0 {
				d.Advance(time.Millisecond)
			}
		}
	})
	require.Len(t, b.at, items, "S33: all of them begin")
	b.check(t)
}

func queueRateBegins(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: time.Hour})
	t.run(s, "resumes", in("mail", "x"), func(r *store.Run) { r.Status = store.Interrupted })
	t.run(s, "wakes", in("mail", "x"), func(r *store.Run) { r.Status, r.WakeAt = store.Waiting, 1 })
	t.line(s, 3, "mail", "x")
	require.Equal(t, []string{"mail0", "mail1", "resumes", "wakes"}, sortedIDs(t.take(s, "a", 10, "mail")), "S33: two begin")
	t.run(s, "resumes too", in("mail", "x"), func(r *store.Run) { r.Status = store.Interrupted })
	require.Equal(t, []string{"resumes too"}, ids(t.take(s, "a", 10, "mail")), "S33: who resumes begins nothing, and is not held up by who is to begin")
	require.Equal(t, int64(2), t.queue(s, "mail").Begun)
}

func queueRateJumps(t *T) {
	const year = 365 * 24 * time.Hour
	for _, jump := range []time.Duration{time.Hour, year} {
		d := t.fresh()
		s := t.handle(d)
		t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: 10 * time.Minute})
		t.line(s, 12, "mail")
		take := func(want int, why string) {
			t.Helper()
			t.beat(s, "a")
			require.Len(t, t.take(s, "a", 10, "mail"), want, "S33: %s", why)
		}
		take(2, "the rate")
		take(0, "the rate is used up")
		d.Advance(jump)
		take(2, "the clock has gone on")
		take(0, "the rate is used up")
		d.Advance(-jump)
		now := t.beat(s, "a").Now
		take(0, "the clock has gone back: what has begun later counts as of now")
		require.GreaterOrEqual(t, t.queue(s, "mail").NextAt, now.Add(10*time.Minute), "S33")
		d.Advance(9 * time.Minute)
		take(0, "it is still in the window")
		d.Advance(2 * time.Minute)
		take(2, "a window later two more begin, however far the clock had been ahead")
		take(0, "the rate is used up")
		d.Advance(-jump - time.Hour)
		take(0, "further back than it ever was")
		d.Advance(11 * time.Minute)
		take(2, "a window later")
	}
}

func queueRateReplaced(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Rate: 3, Per: time.Hour})
	t.line(s, 12, "mail")
	require.Len(t, t.take(s, "a", 10, "mail"), 3)
	t.putQueue(s, store.Queue{Name: "mail", Rate: 5, Per: time.Hour})
	require.Len(t, t.take(s, "a", 10, "mail"), 2, "S33: those that have begun count")
	t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: 2 * time.Hour})
	require.Empty(t, t.take(s, "a", 10, "mail"), "S33: those that have begun count")
	st := t.queue(s, "mail")
	require.Equal(t, int64(5), st.Begun)
	require.Positive(t, st.NextAt)
	t.putQueue(s, store.Queue{Name: "mail"})
	t.putQueue(s, store.Queue{Name: "mail", Rate: 4, Per: time.Hour})
	require.Zero(t, t.queue(s, "mail").Begun, "S33: a queue without a rate has forgotten them")
	require.Len(t, t.take(s, "a", 10, "mail"), 4)
}

// order claims everything in the queues one by one.
func (t *T) order(s store.Store, executor string, list ...string) (all []string) {
	t.Helper()
	for {
		runs := t.take(s, executor, 1, list...)
		if len(runs) == 0 {
			return all
		}
		all = append(all, ids(runs)...)
	}
}

func queueRank(t *T) {
	now := t.now()
	hour := store.Time(time.Hour / time.Microsecond)
	runs := func(s store.Store) {
		add := func(id string, ago store.Time, priority int32, edits ...func(*store.Run)) {
			t.run(s, id, append([]func(*store.Run){in("mail", "x"), func(r *store.Run) { r.CreatedAt, r.Priority = now-ago, priority }}, edits...)...)
		}
		add("now", 0, 0)
		add("an hour ago", hour, 0)
		add("an hour ago too", hour, 0)
		add("above", hour/2, 1)
		add("far above", 1, 40_005)
		add("below", 3*hour, -2)
		add("far below", 10*hour, -40_000)
		add("two above", 0, 2, func(r *store.Run) { r.Status = store.Interrupted })
		add("old and interrupted", 5*hour, 0, func(r *store.Run) { r.Status, r.WakeAt = store.Interrupted, now })
		add("newly served", 4*hour, 0, func(r *store.Run) { r.Status, r.Code = store.Interrupted, store.CodeNotRegistered })
		add("due since two hours", 9*hour, 0, func(r *store.Run) { r.WakeAt = now - 2*hour })
		add("due since an hour, above", 9*hour, 2, func(r *store.Run) { r.WakeAt = now - hour + 1 })
	}
	want := []string{"far above", "old and interrupted", "newly served", "due since an hour, above", "two above", "due since two hours", "above",
		"an hour ago", "an hour ago too", "below", "now", "far below"}
	// In claims of one, and in one of all.
	s := t.open()
	t.beat(s, "a")
	runs(s)
	require.Equal(t, want, t.order(s, "a", "mail"), "S34: since when it is due, and an hour for each step of priority; who came first among equals")
	s = t.open()
	t.beat(s, "a")
	runs(s)
	require.Equal(t, want, ids(t.take(s, "a", 100, "mail")), "S34: in one claim")
}

func queueDelayed(t *T) {
	d := t.fresh()
	s := t.handle(d)
	now := t.beat(s, "a").Now
	due := now.Add(shortLease)
	for i := range 3 {
		t.run(s, fmt.Sprint("far", i), in("mail", "x"), func(r *store.Run) { r.WakeAt, r.Priority = due.Add(time.Duration(i)*time.Hour), 9 })
	}
	t.run(s, "delayed", in("mail", "x"), func(r *store.Run) { r.WakeAt = due })
	t.run(s, "other", in("mail", "y"), func(r *store.Run) { r.WakeAt = due.Add(24 * time.Hour) })
	st := t.queue(s, "mail")
	require.Equal(t, []int64{5, 0}, []int64{st.Delayed, st.InLine})
	got := map[string]bool{}
	t.eventually("S20: delayed runs of a queue are taken", func() bool {
		runs := t.take(s, "a", 10, "mail")
		p := t.beat(s, "a")
		for _, r := range runs {
			require.GreaterOrEqual(t, p.Now, r.WakeAt, "S20: %s is taken before its time", r.ID)
			got[r.ID] = true
		}
		if p.Now > due && len(got) < 2 {
			for _, r := range t.take(s, "a", 10, "mail") {
				got[r.ID] = true
			}
			require.Len(t, got, 2, "S20: its time has come")
		}
		if d.Advance != nil {
			d.Advance(shortLease / 5)
		}
		return len(got) == 2
	})
	require.True(t, got["delayed"] && got["far0"], "S20: those whose time has come")
	require.Equal(t, []string{"far2"}, ids(t.claim(s, "a", "far2")), "S19: by id whatever its time")
	st = t.queue(s, "mail")
	require.Equal(t, []int64{2, 0, 3}, []int64{st.Delayed, st.InLine, st.Placed})
}

func queueTurns(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.beat(s, "a")
	add := func(partition string, n int, edits ...func(*store.Run)) {
		for i := range n {
			t.run(s, fmt.Sprint(partition, i), append(edits, in("mail", partition))...)
		}
	}
	add("c", 3)
	add("a", 6, func(r *store.Run) { r.Priority = 100 }) // which is no matter between partitions
	add("B", 2)
	add("ä", 1)
	want := []string{"B0", "a0", "c0", "ä0", "B1", "a1", "c1", "a2", "c2", "a3", "a4", "a5"}
	var got []string
	for n := 0; len(got) < len(want); n++ {
		runs := t.take([]store.Store{s, other}[n%2], "a", 1+n%3, "mail")
		require.NotEmpty(t, runs, "S34: there are more")
		got = append(got, ids(runs)...)
	}
	require.Equal(t, want, got, "S34: in turns, in the order of the bytes of their names, from claim to claim")
	add("b", 1)
	add("AA", 5)
	require.Equal(t, []string{"b0"}, ids(t.take(s, "a", 1, "mail")), "S34: the turn was at a, and goes on behind it")
}

func queueTurnByID(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail"})
	t.line(s, 12, "mail", "a", "b", "c", "d")
	require.Equal(t, []string{"mail0", "mail1"}, ids(t.take(s, "a", 2, "mail")), "S34: of a and of b")
	require.Len(t, t.claim(s, "a", "mail4"), 1)
	require.Equal(t, []string{"mail2", "mail3", "mail8"}, ids(t.take(s, "a", 3, "mail")), "S34: of c and d, before a has another turn")
}

func queueBetween(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "print", Max: 2})
	now := t.now()
	minute := store.Time(time.Minute / time.Microsecond)
	add := func(id, queue, partition string, ago store.Time, priority int32) {
		t.run(s, id, in(queue, partition), func(r *store.Run) { r.CreatedAt, r.Priority = now-ago*minute, priority })
	}
	add("m1", "mail", "a", 10, 0)
	add("m2", "mail", "b", 50, 0) // older, but b comes after a
	add("m3", "mail", "a", 9, 0)
	add("p1", "print", "", 30, 0)
	add("p2", "print", "", 5, 1)
	add("p3", "print", "", 60, -1)
	add("f1", "", "", 20, 0)
	add("f2", "", "", 70, -1)
	require.Equal(t, []string{"p2", "p1", "f1", "m1", "m2", "f2", "m3"}, t.order(s, "a", "mail", "print"), "S34")
}

func queueHeld(t *T) {
	s := t.open()
	t.beat(s, "a")
	now := t.beat(s, "a").Now
	for _, q := range []store.Queue{
		{Name: "full", Max: 1}, {Name: "paused", Paused: true}, {Name: "rated", Rate: 1, Per: time.Hour}, {Name: "parts", MaxPerPartition: 1},
		{Name: "both", Max: 1, Rate: 1, Per: time.Hour}, {Name: "open"}, {Name: "empty", Max: 1}, {Name: "mixed", MaxPerPartition: 1, Rate: 2, Per: time.Hour},
	} {
		t.putQueue(s, q)
	}
	for _, q := range []string{"full", "paused", "rated", "parts", "both", "open", "unlisted", "roomless"} {
		t.line(s, 2, q)
	}
	t.putQueue(s, store.Queue{Name: "roomless", Max: 2})
	t.line(s, 5, "mixed", "x", "y", "x", "y", "z")
	t.run(s, "later", in("empty", ""), func(r *store.Run) { r.WakeAt = now.Add(time.Hour) })
	t.run(s, "unserved", in("empty", ""), func(r *store.Run) { r.Workflow = "another" })
	held := map[string]store.Time{}
	claim := func(most int, ids ...string) []string {
		t.Helper()
		clear(held)
		c := of("a", most, "full", "paused", "rated", "parts", "both", "open", "empty", "mixed", "never")
		c.Queues = append(c.Queues, store.QueueRoom{Queue: "roomless", Max: 1})
		c.IDs = ids
		c.Held = func(q string, until store.Time) {
			if _, twice := held[q]; twice {
				t.Errorf("S33: Held is called twice for %q", q)
			}
			held[q] = until
		}
		runs, err := s.Claim(t.Context(), c)
		require.NoError(t, err)
		return sortedIDs(runs)
	}
	claim(0)
	require.Empty(t, held, "a claim of none")
	require.Len(t, claim(3), 3)
	require.Empty(t, held, "a claim that got what it asked for")
	require.Equal(t, 9, 3+len(claim(100)), "full, rated, parts, both, roomless and two of open and of mixed")
	names := []string{"both", "full", "mixed", "parts", "paused", "rated"}
	check := func() {
		t.Helper()
		require.ElementsMatch(t, names, slices.Collect(maps.Keys(held)), "S33: those of which a run had to stay in line")
		for _, q := range names {
			if q == "rated" || q == "mixed" {
				require.GreaterOrEqual(t, held[q], now.Add(time.Hour), "S33: %s: when the rate lets the next one begin", q)
				require.LessOrEqual(t, held[q], t.beat(s, "a").Now.Add(time.Hour), "S33: %s: when the rate lets the next one begin", q)
			} else {
				require.Zero(t, held[q], "S33: %s: no time is known", q)
			}
		}
	}
	check()
	require.Equal(t, []string{"roomless1"}, claim(100), "what had no room left")
	check()
	require.Empty(t, claim(100, "full1", "rated1"))
	require.Empty(t, held, "a claim by ids")
}

func queueUnserved(t *T) {
	s := t.open()
	t.beat(s, "a")
	t.beat(s, "b")
	t.putQueue(s, store.Queue{Name: "mail", Max: 3})
	for i, edit := range []func(*store.Run){
		func(r *store.Run) { r.Workflow = "another" },
		func(r *store.Run) { r.Version = "v2" },
		func(r *store.Run) { r.Paused = true },
		func(r *store.Run) { r.Owner = "b" },
		func(r *store.Run) { r.Status, r.Code = store.Interrupted, "parked" },
		func(r *store.Run) { r.WakeAt = 1 << 60 },
	} {
		t.run(s, fmt.Sprint("not", i), in("mail", "a"), edit)
		t.run(s, fmt.Sprint("nor", i), in("mail", string(rune('b'+i))), edit)
	}
	t.run(s, "of the dead", in("mail", "a"), func(r *store.Run) { r.Owner = "dead" })
	t.line(s, 2, "mail", "a", "z")
	require.Equal(t, []string{"of the dead", "mail1", "mail0"}, t.order(s, "a", "mail"), "S34: what cannot be taken takes no turn")
}

func queueState(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Max: 4, Rate: 2, Per: time.Hour})
	now := t.now()
	add := func(id, partition string, edit func(*store.Run)) *writer {
		return t.run(s, id, in("mail", partition), func(r *store.Run) { r.CreatedAt = now; edit(r) })
	}
	add("running", "x", func(r *store.Run) { r.Status, r.Owner = store.Running, "a" })
	add("resuming", "x", func(r *store.Run) { r.Status, r.Owner = store.Resuming, "dead" })
	add("waiting", "y", func(r *store.Run) { r.Status = store.Waiting })
	add("pending", "y", func(r *store.Run) { r.CreatedAt = now - 5 })
	add("interrupted", "y", func(r *store.Run) { r.Status, r.CreatedAt = store.Interrupted, now-9 })
	add("due", "x", func(r *store.Run) { r.WakeAt = now - 20 })
	add("delayed", "z", func(r *store.Run) { r.WakeAt = 1 << 60 })
	add("paused", "w", func(r *store.Run) { r.Paused = true })
	add("parked", "w", func(r *store.Run) { r.Status, r.Code = store.Interrupted, "definition_changed" })
	add("cancelled", "w", func(r *store.Run) { r.CancelAsked = true })
	ended := add("ended", "w", func(r *store.Run) { r.Status = store.Running })
	ended.must(s, ended.end(store.Completed))
	t.run(s, "elsewhere", in("print", "x"), func(r *store.Run) { r.Paused = true })
	over := t.run(s, "over", in("over", "x"), func(r *store.Run) { r.Status = store.Running })
	over.must(s, over.end(store.Completed))
	t.run(s, "free")

	states, err := queues(other).Queues(t.Context())
	require.NoError(t, err)
	require.Len(t, states, 2, "those that were put or have unfinished runs")
	require.Equal(t, []string{"mail", "print"}, []string{states[0].Name, states[1].Name})
	st := states[0]
	require.Equal(t, []int64{3, 3, 1}, []int64{st.Placed, st.InLine, st.Delayed}, "Placed, InLine, Delayed")
	require.Equal(t, now-20, st.Oldest, "since when the oldest in line has been due")
	require.Equal(t, []store.PartitionState{{Name: "y", Placed: 1, InLine: 2}, {Name: "x", Placed: 2, InLine: 1}}, st.Partitions)
	require.Fields(t, fields{"Begun": int64(0), "NextAt": store.Time(0)}, st)
	require.Equal(t, store.QueueState{Queue: store.Queue{Name: "print"}}, states[1], "a queue that was not put")

	before := t.beat(s, "a").Now
	require.Equal(t, []string{"pending"}, ids(t.claim(s, "a", "pending")))
	t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: time.Hour})
	require.Equal(t, []string{"due"}, ids(t.claim(s, "a", "due")))
	after := t.beat(s, "a").Now
	st = t.queue(other, "mail")
	require.Fields(t, fields{"Placed": int64(5), "InLine": int64(1), "Begun": int64(2), "Oldest": now - 9}, st)
	require.GreaterOrEqual(t, st.NextAt, before.Add(time.Hour), "NextAt: when the first of them leaves the window")
	require.LessOrEqual(t, st.NextAt, after.Add(time.Hour), "NextAt: when the first of them leaves the window")
}

func queueShown(t *T) {
	s := t.open()
	var batch []store.Change
	for i := range store.MaxPartitionsShown + 20 {
		for k := range 1 + i%3 {
			c, _ := t.create(fmt.Sprintf("r%03d.%d", i, k), in("mail", fmt.Sprintf("p%03d", i)))
			batch = append(batch, c)
		}
	}
	t.must(s, batch...)
	st := t.queue(s, "mail")
	require.Equal(t, int64(len(batch)), st.InLine)
	require.Len(t, st.Partitions, store.MaxPartitionsShown)
	for i, p := range st.Partitions {
		require.Equal(t, int64(3-i/40), p.InLine, "the longest come first")
		if i%40 > 0 {
			require.Less(t, cmp.Compare(st.Partitions[i-1].Name, p.Name), 0, "those of the same length in the order of their names")
		}
	}
}

func queueAhead(t *T) {
	s := t.open()
	t.beat(s, "a")
	now := t.now()
	hour := store.Time(time.Hour / time.Microsecond)
	add := func(id, partition string, edit func(*store.Run)) {
		t.run(s, id, in("mail", partition), func(r *store.Run) { r.CreatedAt = now; edit(r) })
	}
	add("first", "x", func(r *store.Run) {})
	add("second", "x", func(r *store.Run) {})
	add("above", "x", func(r *store.Run) { r.Priority = 1 })
	add("older", "x", func(r *store.Run) { r.CreatedAt -= hour / 2 })
	add("interrupted", "x", func(r *store.Run) { r.Status, r.CreatedAt = store.Interrupted, now-2*hour })
	add("delayed", "x", func(r *store.Run) { r.WakeAt, r.Priority = now+hour, 100 })
	add("due", "x", func(r *store.Run) { r.WakeAt, r.CreatedAt = now-1, now-9*hour })
	add("unserved", "x", func(r *store.Run) { r.Workflow, r.CreatedAt = "another", now-3*hour })
	add("other", "y", func(r *store.Run) { r.CreatedAt = now - 9*hour })
	add("paused", "x", func(r *store.Run) { r.Paused, r.CreatedAt = true, now-9*hour })
	add("running", "x", func(r *store.Run) { r.Status, r.CreatedAt = store.Running, now-9*hour })
	t.run(s, "free")
	ended := t.run(s, "ended", in("mail", "x"), func(r *store.Run) { r.Status = store.Running })
	ended.must(s, ended.end(store.Completed))
	for id, want := range map[string]int64{
		"unserved": 0, "interrupted": 1, "above": 2, "older": 3, "due": 4, "first": 5, "second": 6, "other": 0,
		"delayed": -1, "paused": -1, "running": -1, "free": -1, "ended": -1,
	} {
		n, inLine, err := queues(s).Ahead(t.Context(), id)
		require.NoError(t, err)
		if !inLine {
			n = -1
		}
		require.Equal(t, want, n, "of %q; -1: not in line", id)
	}
	_, _, err := queues(s).Ahead(t.Context(), "nobody")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func queueReopen(t *T) {
	d := t.fresh()
	var s store.Store
	reopen := func() {
		t.Helper()
		if s != nil {
			require.NoError(t, s.Close())
		}
		var err error
		s, err = d.Open()
		require.NoError(t, err)
		t.beat(s, "a")
	}
	reopen()
	t.putQueue(s, store.Queue{Name: "mail", Max: 4, MaxPerPartition: 2, Rate: 3, Per: time.Hour})
	t.line(s, 9, "mail", "a", "b", "c")
	require.Equal(t, []string{"mail0"}, ids(t.take(s, "a", 1, "mail")))
	reopen()
	require.Equal(t, []string{"mail1"}, ids(t.take(s, "a", 1, "mail")), "S34: the turn goes on behind a")
	reopen()
	require.Equal(t, []string{"mail2"}, ids(t.take(s, "a", 10, "mail")), "S33: one more begins in this hour")
	require.Equal(t, int64(3), t.queue(s, "mail").Begun, "S4")
	t.putQueue(s, store.Queue{Name: "mail", Max: 4, MaxPerPartition: 2})
	reopen()
	require.Equal(t, []string{"mail3"}, ids(t.take(s, "a", 10, "mail")), "S33: the last place")
	reopen()
	require.Empty(t, t.take(s, "a", 10, "mail"), "S33: four hold a place")
	require.Fields(t, fields{"Revision": int64(2), "Max": 4, "MaxPerPartition": 2}, t.queue(s, "mail").Queue, "S4")
	require.NoError(t, s.Close())
}

func queueNames(t *T) {
	s := t.open()
	t.beat(s, "a")
	names := []string{"mail", "Mail", "mail ", " mail", "måil", "ma\u030ail", "'; DROP TABLE durable_runs; --", "%", "_", "*", "ma%l", "🚚", "0", "null", "a/b#c@d~e[f]"}
	for i, name := range names {
		t.putQueue(s, store.Queue{Name: name, Max: 1 + i%2, MaxPerPartition: 1})
		for k, partition := range names {
			t.run(s, fmt.Sprint(i, ".", k), in(name, partition))
		}
	}
	states := t.queueStates(s)
	got := make([]string, len(states))
	for i := range states {
		got[i] = states[i].Name
	}
	require.Equal(t, slices.Sorted(slices.Values(names)), got, "in the order of their bytes")
	partitions := slices.Sorted(slices.Values(names))
	for i, name := range names {
		runs := t.take(s, "a", 100, name)
		require.Len(t, runs, 1+i%2, "S33: of queue %q", name)
		for k, r := range runs {
			require.Equal(t, name, r.Queue)
			require.Equal(t, partitions[k], r.Partition, "S34: partitions of %q, in the order of their bytes", name)
		}
		require.Empty(t, t.take(s, "a", 100, name), "S33: queue %q is full", name)
		st := t.queue(s, name)
		require.Equal(t, int64(1+i%2), st.Placed)
		require.Equal(t, int64(len(names)-1-i%2), st.InLine)
	}
}

func queueClosed(t *T) {
	d := t.fresh()
	s, err := d.Open()
	require.NoError(t, err)
	t.run(s, "r", in("mail", ""))
	require.NoError(t, s.Close())
	require.ErrorIs(t, queues(s).PutQueue(t.Context(), store.Queue{Name: "mail"}), store.ErrClosed)
	_, err = queues(s).Queues(t.Context())
	require.ErrorIs(t, err, store.ErrClosed)
	_, _, err = queues(s).Ahead(t.Context(), "r")
	require.ErrorIs(t, err, store.ErrClosed)
}
