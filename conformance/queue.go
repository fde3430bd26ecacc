package conformance

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var queueCases = []Case{
	{Name: "a queue reads back as it was put", Clauses: "S4, S35", Needs: Queues, run: queueReadsBack},
	{Name: "a queue is looked at without its runs", Clauses: "S4, S35", Needs: Queues, run: queueLooked},
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
	{Name: "a run that was cancelled in line needs no place", Clauses: "S15, S33", Needs: Queues, run: queueCancelled},
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
		{Name: "torn", Reason: "till \x00 Monday \xff"},
	}
	for _, i := range []int{2, 0, 3, 1} {
		require.NoError(t, queues(s).PutQueue(t.Context(), want[i]))
		want[i].Revision = 1
	}
	want[3].Reason = store.CleanText(want[3].Reason)
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
	check(other, "print", "torn", "nobody's", "mail", "Mail")
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

func queueLooked(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	look := func(want store.Queue) {
		t.Helper()
		for _, s := range []store.Store{s, other} {
			got, err := queues(s).Queue(t.Context(), want.Name)
			require.NoError(t, err)
			require.Equal(t, want, got, "S35: queue %q", want.Name)
		}
	}
	look(store.Queue{Name: "mail"})
	// Runs make no queue of it.
	t.line(s, 2, "mail")
	t.beat(s, "a")
	require.Len(t, t.take(s, "a", 1, "mail"), 1)
	look(store.Queue{Name: "mail"})
	q := store.Queue{Name: "mail", Max: 7, MaxPerPartition: 3, Rate: 9, Per: 90 * time.Minute, Paused: true, Reason: "till Monday"}
	for revision := range int64(3) { // what another handle has put is there at once
		for _, name := range []string{"mail", "Mail"} {
			q.Name, q.Revision, q.Max = name, revision, q.Max+1
			by := s
			if revision == 1 {
				by = other
			}
			require.NoError(t, queues(by).PutQueue(t.Context(), q))
			put := q
			put.Revision, put.UpdatedAt = revision+1, t.queue(s, name).UpdatedAt
			look(put)
		}
	}
	for _, name := range []string{"", "nobody's", "MAIL"} {
		look(store.Queue{Name: name})
	}
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
