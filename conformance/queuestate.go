package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

func queueState(t *T) {
	d := t.fresh()
	s, other := t.handle(d), t.handle(d)
	t.beat(s, "a")
	t.putQueue(s, store.Queue{Name: "mail", Max: 5, Rate: 2, Per: time.Hour})
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
	add("delayed and paused", "w", func(r *store.Run) { r.WakeAt, r.Paused = 1<<60, true })
	add("alone", "v", func(r *store.Run) { r.Status = store.Waiting })
	add("paused", "w", func(r *store.Run) { r.Paused = true })
	add("parked", "w", func(r *store.Run) { r.Status, r.Code = store.Interrupted, "definition_changed" })
	add("cancelled", "w", func(r *store.Run) { r.CancelAsked = true })
	ended := add("ended", "w", func(r *store.Run) { r.Status = store.Running })
	ended.must(s, ended.end(store.Completed))
	alone := map[string]func(*store.Run){
		"print":        func(r *store.Run) { r.Paused = true },
		"of cancelled": func(r *store.Run) { r.CancelAsked = true },
		"of both":      func(r *store.Run) { r.Paused, r.CancelAsked = true, true },
		"of parked":    func(r *store.Run) { r.Status, r.Code = store.Interrupted, "definition_changed" },
	}
	for queue, edit := range alone {
		t.run(s, "in "+queue, in(queue, "x"), edit)
	}
	over := t.run(s, "over", in("over", "x"), func(r *store.Run) { r.Status = store.Running })
	over.must(s, over.end(store.Completed))
	t.run(s, "free")

	states, err := queues(other).Queues(t.Context())
	require.NoError(t, err)
	var names []string
	for i := range states {
		if names = append(names, states[i].Name); i > 0 {
			require.Equal(t, store.QueueState{Queue: store.Queue{Name: states[i].Name}}, states[i], "a queue that was not put")
		}
	}
	require.Equal(t, append([]string{"mail"}, slices.Sorted(maps.Keys(alone))...), names, "those that were put or have unfinished runs")
	st := states[0]
	require.Equal(t, []int64{4, 3, 1}, []int64{st.Placed, st.InLine, st.Delayed}, "Placed, InLine, Delayed")
	require.Equal(t, now-20, st.Oldest, "since when the oldest in line has been due")
	require.Equal(t, []store.PartitionState{{Name: "y", Placed: 1, InLine: 2}, {Name: "x", Placed: 2, InLine: 1}, {Name: "v", Placed: 1}}, st.Partitions)
	require.Fields(t, fields{"Begun": int64(0), "NextAt": store.Time(0)}, st)

	before := t.beat(s, "a").Now
	require.Equal(t, []string{"pending"}, ids(t.claim(s, "a", "pending")))
	t.putQueue(s, store.Queue{Name: "mail", Rate: 2, Per: time.Hour})
	require.Equal(t, []string{"due"}, ids(t.claim(s, "a", "due")))
	after := t.beat(s, "a").Now
	st = t.queue(other, "mail")
	require.Fields(t, fields{"Placed": int64(6), "InLine": int64(1), "Begun": int64(2), "Oldest": now - 9}, st)
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
	_, err = queues(s).Queue(t.Context(), "mail")
	require.ErrorIs(t, err, store.ErrClosed)
	_, _, err = queues(s).Ahead(t.Context(), "r")
	require.ErrorIs(t, err, store.ErrClosed)
}
