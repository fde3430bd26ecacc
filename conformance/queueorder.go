package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

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
	later := t.beat(s, "a").Now.Add(time.Hour)
	delay := func(id, partition string, until store.Time, priority int32) {
		t.run(s, id, in("mail", partition), func(r *store.Run) { r.WakeAt, r.Priority = until, priority })
	}
	delay("far1", "x", later, 9)
	delay("far2", "x", later.Add(time.Hour), 9)
	delay("other", "y", later.Add(24*time.Hour), 0)
	st := t.queue(s, "mail")
	require.Equal(t, []int64{3, 0}, []int64{st.Delayed, st.InLine})
	due := t.beat(s, "a").Now.Add(shortLease)
	delay("far0", "x", due, 9)
	delay("delayed", "x", due, 0)
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
	t.putQueue(s, store.Queue{Name: "mail", Max: 100})
	require.Equal(t, []string{"mail2", "mail3", "mail8"}, ids(t.take(s, "a", 3, "mail")), "S34: of c and d, before a has another turn, also when the queue was put meanwhile")
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
