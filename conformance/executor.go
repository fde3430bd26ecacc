package conformance

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

var executorCases = []Case{
	{Name: "an executor reads back as it beat", Clauses: "S4, S20", run: executorReadsBack},
	{Name: "a lease runs out, and not before", Clauses: "S20", run: executorLease},
	{Name: "beats extend a lease", Clauses: "S20", run: executorExtends},
	{Name: "a beat after the lease says that it is late", Clauses: "S20", run: executorLate},
	{Name: "an executor that leaves is gone at once", Clauses: "S20", run: executorLeaves},
	{Name: "runs of a dead executor go to another", Clauses: "S20", run: executorDies},
	{Name: "a beat tells of all that are gone", Clauses: "S20, S30", run: executorsGone},
	{Name: "the record of a dead executor stays while it owns a run", Clauses: "S30", run: executorStays},
	{Name: "a leaving beat brings no mail", Clauses: "S30", run: executorLeavingPulse},
	{Name: "what is due counts in every queue", Clauses: "S31", run: executorQueues},
	{Name: "a beat brings mail", Clauses: "S13, S20", run: executorMail},
	{Name: "a beat tells what is due, and when the next is", Clauses: "S20", run: executorNext},
	{Name: "a beat without an id or a lease is invalid", Clauses: "S20", run: executorInvalid},
}

func executorReadsBack(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	var want []store.Executor
	for i := range 3 {
		e := store.Executor{
			ID: fmt.Sprintf("e%d", 9-i), Name: "worker ü 🚚", Host: "host", Boot: "boot", PID: 4711 + i, Lease: longLease,
			Serves: []store.Served{{Workflow: "a", Versions: []string{"1", "2"}}, {Workflow: "b/ü", Versions: []string{""}, Queues: []string{"mail", "ü"}}},
		}
		p, err := s.Beat(t.Context(), e)
		require.NoError(t, err)
		require.Positive(t, p.Now)
		require.False(t, p.Late)
		e.Live, e.StartedAt, e.BeatAt = true, p.Now, p.Now
		want = append(want, e)
	}
	for _, reader := range []store.Store{s, other} {
		got, err := reader.Executors(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got, "oldest first, with the times of their beats")
	}
	p := t.beat(s, "e9", func(e *store.Executor) { e.Serves = nil })
	got, err := other.Executors(t.Context())
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, []store.Time{want[0].StartedAt, p.Now}, []store.Time{got[0].StartedAt, got[0].BeatAt}, "a second beat keeps StartedAt")
	require.Empty(t, got[0].Serves, "and brings what it serves now")
}

func executorLease(t *T) {
	d := t.fresh()
	s := t.handle(d)
	first := t.beat(s, "a", leased).Now
	owns(t, s, "a", "r")
	// The clock is read before and after, so that a slow machine does not fail the
	// case.
	t.eventually("S20: the run of an executor whose lease ran out is taken", func() bool {
		before := t.beat(s, "watch").Now
		live := t.live(s, "a")
		t.beat(s, "b")
		taken := len(t.claim(s, "b", "r")) == 1
		after := t.beat(s, "watch").Now
		switch {
		case !live || taken:
			require.GreaterOrEqual(t, after, first.Add(shortLease), "S20: not before its lease has run out")
		case before > first.Add(shortLease):
			require.Fail(t, "S20: it counts as live though its lease has run out")
		}
		if !taken && d.Advance != nil {
			d.Advance(shortLease / 5)
		}
		return taken
	})
}

func executorExtends(t *T) {
	d := t.fresh()
	s := t.handle(d)
	start := t.beat(s, "a", leased)
	t.beat(s, "b")
	owns(t, s, "a", "r")
	t.eventually("an executor beats for twice its lease", func() bool {
		if d.Advance != nil {
			d.Advance(shortLease / 5)
		}
		p := t.beat(s, "a", leased)
		if p.Late {
			start = p // the machine was too slow for this lease: start over
		}
		if taken := t.claim(s, "b", "r"); len(taken) > 0 {
			require.True(t, t.beat(s, "a", leased).Late, "S20: it was taken from an executor that beats in time")
			return true
		}
		return p.Now > start.Now.Add(2*shortLease)
	})
}

func executorLate(t *T) {
	d := t.fresh()
	s := t.handle(d)
	require.False(t, t.beat(s, "a", leased).Late, "a first beat is not late")
	t.kill(d, s, "a")
	require.True(t, t.beat(s, "a").Late)
	require.True(t, t.live(s, "a"), "it lives again")
	require.False(t, t.beat(s, "a").Late)
}

func executorLeaves(t *T) {
	s := t.open()
	t.claimed(s, "a", "r")
	t.beat(s, "b")
	require.Empty(t, t.claim(s, "b", "r"))
	t.beat(s, "a", leaving)
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1, "its record is removed")
	require.Equal(t, "b", all[0].ID)
	require.Equal(t, []string{"a"}, t.beat(s, "b").Gone, "it left a run behind")
	require.Equal(t, []string{"r"}, ids(t.list(s, store.Filter{Orphaned: true})))
	require.Len(t, t.claim(s, "b", "r"), 1)
	require.Empty(t, t.beat(s, "b").Gone)
	t.beat(s, "c", leaving) // an executor that never registered
}

func executorDies(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.beat(s, "a", leased)
	t.beat(other, "b")
	var all []string
	for i, status := range []store.Status{store.Running, store.Resuming, store.Waiting, store.Pending} {
		all = append(all, t.run(s, fmt.Sprintf("r%d", i), func(r *store.Run) { r.Status, r.Owner = status, "a" }).id)
	}
	ended := t.claimed(s, "b", "ended")
	ended.must(s, ended.end(store.Completed))
	t.claimed(s, "b", "b's own")
	t.kill(d, s, "a")
	require.Equal(t, []string{"a"}, t.beat(other, "b").Gone, "S20: the beat of another tells")
	require.ElementsMatch(t, all, ids(t.list(other, store.Filter{Orphaned: true})))
	require.ElementsMatch(t, all, ids(t.claim(other, "b", all...)))
	require.Empty(t, t.beat(other, "b").Gone)
	require.Empty(t, t.list(other, store.Filter{Orphaned: true}))
	require.Empty(t, t.beat(s, "a").Mail, "nothing is left to it")
}

func executorMail(t *T) {
	d := t.fresh()
	s, client := t.handle(d), t.handle(d)
	one := t.claimed(s, "a", "one")
	one.must(s, one.patch(store.RowPatch{Status: ptr(store.Waiting)}))
	two := t.claimed(s, "a", "two")
	t.claimed(s, "a", "quiet")
	t.claimed(s, "b", "other")
	t.run(s, "nobody's")
	require.Empty(t, t.beat(s, "a").Mail)
	t.must(client, send(signal("one", "1"), signal("two", "1"), signal("two", "2"), signal("other", "1"), signal("nobody's", "1")))
	require.ElementsMatch(t, []store.Mail{{RunID: "one", Inbox: 1}, {RunID: "two", Inbox: 2}}, t.beat(s, "a").Mail)
	two.must(s, two.patch(store.RowPatch{Seen: ptr(int64(2))}))
	require.Equal(t, []store.Mail{{RunID: "one", Inbox: 1}}, t.beat(s, "a").Mail, "what was seen is no mail")
	t.must(client, send(signal("two", "3")))
	require.ElementsMatch(t, []store.Mail{{RunID: "one", Inbox: 1}, {RunID: "two", Inbox: 3}}, t.beat(s, "a").Mail)
}

func executorNext(t *T) {
	s := t.open()
	now := t.beat(s, "a").Now
	require.Zero(t, t.beat(s, "a").Next)
	hour := store.Time(3_600_000_000)
	expect := func(next store.Time, due bool, why string) {
		t.Helper()
		p := t.beat(s, "a")
		require.Fields(t, fields{"Next": next, "Due": due}, p, why)
	}
	t.run(s, "delayed", func(r *store.Run) { r.WakeAt = now + 9*hour })
	expect(now+9*hour, false, "a delayed start")
	t.run(s, "timer", func(r *store.Run) { r.Status, r.WakeAt = store.Waiting, now+8*hour })
	expect(now+8*hour, false, "a timer of a run that nobody owns")
	t.run(s, "mine", func(r *store.Run) { r.Status, r.Owner, r.WakeAt = store.Waiting, "a", now+7*hour })
	expect(now+7*hour, false, "a timer of its own run")
	t.beat(s, "b")
	t.run(s, "b's", func(r *store.Run) { r.Status, r.Owner, r.WakeAt = store.Waiting, "b", now+hour })
	t.run(s, "foreign", func(r *store.Run) { r.Workflow, r.WakeAt = "mail", now+hour })
	t.run(s, "paused", func(r *store.Run) { r.Paused, r.WakeAt = true, now+hour })
	ended := t.run(s, "ended", func(r *store.Run) { r.Status, r.WakeAt = store.Running, now+hour })
	ended.must(s, ended.end(store.Completed))
	expect(now+7*hour, false, "what another owns, or nobody serves, or is paused, or has ended, is none of its business")
	w := t.run(s, "free")
	expect(now+7*hour, true, "a free run is due")
	w.must(s, w.end(store.Cancelled))
	expect(now+7*hour, false, "and not when it has ended")
}

func executorInvalid(t *T) {
	s := t.open()
	_, err := s.Beat(t.Context(), store.Executor{Lease: longLease})
	require.ErrorIs(t, err, store.ErrInvalid)
	_, err = s.Beat(t.Context(), store.Executor{ID: "a"})
	require.ErrorIs(t, err, store.ErrInvalid)
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func executorsGone(t *T) {
	d := t.fresh()
	s := t.handle(d)
	var want []string
	for i, status := range []store.Status{store.Running, store.Waiting, store.Waiting} {
		id := fmt.Sprint("gone", i)
		t.beat(s, id, leased)
		t.run(s, "of "+id, func(r *store.Run) { r.Status, r.Owner, r.Paused = status, id, i == 2 })
		want = append(want, id)
	}
	t.beat(s, "idle", leased)
	for _, id := range append(want, "idle") {
		t.kill(d, s, id)
	}
	require.Equal(t, want, t.beat(s, "here").Gone, "S20: each that is gone and owns a run, whatever that run does, and no other")
	require.Len(t, t.claim(s, "here", "of gone1"), 1)
	require.Equal(t, []string{"gone0", "gone2"}, t.beat(s, "here").Gone)
}

func executorStays(t *T) {
	d := t.fresh()
	s := t.handle(d)
	t.beat(s, "dead", leased)
	t.run(s, "r", func(r *store.Run) { r.Status, r.Owner = store.Running, "dead" })
	t.kill(d, s, "dead")
	for i := range 3 {
		if d.Advance != nil {
			d.Advance(1000 * time.Hour) // however long ago
		}
		p := t.beat(s, fmt.Sprint("new", i))
		require.Contains(t, p.Gone, "dead", "S30: a run waits for its heir")
		all, err := s.Executors(t.Context())
		require.NoError(t, err)
		var listed []string
		for _, e := range all {
			listed = append(listed, e.ID)
		}
		require.Contains(t, listed, "dead", "S30: its record says who had the run")
	}
	require.Len(t, t.claim(s, "new2", "r"), 1)
}

func executorLeavingPulse(t *T) {
	s := t.open()
	w := t.claimed(s, "a", "mine")
	t.must(s, send(signal("mine", "1")))
	require.Len(t, t.beat(s, "a").Mail, 1)
	p := t.beat(s, "a", leaving)
	require.Positive(t, p.Now)
	require.False(t, p.Late)
	require.Empty(t, p.Mail, "S30: it has no runs any more")
	w.steps(s, 1) // its epoch is valid until another executor takes the run
}

func executorQueues(t *T) {
	s := t.open()
	now := t.beat(s, "a").Now
	hour := store.Time(3_600_000_000)
	t.run(s, "later", func(r *store.Run) { r.Queue, r.WakeAt = "mail", now+hour })
	require.Equal(t, now+hour, t.beat(s, "a").Next, "S31: whatever its queue")
	t.run(s, "now", func(r *store.Run) { r.Queue = "mail" })
	require.True(t, t.beat(s, "a").Due, "S31: whatever its queue")
}

// owns creates a run owned by an executor with a short lease. It is created as claimed,
// because on a slow machine the lease may run out before a claim could be made.
func owns(t *T, s store.Store, executor, id string) *writer {
	t.Helper()
	return t.run(s, id, func(r *store.Run) { r.Status, r.Owner = store.Running, executor })
}
