package conformance

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/store"
)

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
	for i, queue := range []string{"mail", "", "mail"} {
		t.run(s, fmt.Sprint("delayed", i), in(queue, ""), func(r *store.Run) { r.WakeAt, r.Paused = t.now().Add(time.Hour), i == 2 })
		cancel(fmt.Sprint("delayed", i))
	}
	require.True(t, t.beat(s, "a").Due, "S15: a run that will execute nothing waits for no time")
	require.ElementsMatch(t, []string{"delayed0", "delayed1", "delayed2"}, ids(t.take(s, "a", 10, "mail")), "S15: a run that will execute nothing waits for no time")
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
