package durable_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// meter is what the bodies of steps see of the limits of their queue.
type meter struct {
	mu    sync.Mutex
	now   int
	most  int
	began []string
	at    []time.Time
}

// enter counts a body; the returned function ends it.
func (m *meter) enter(id string) (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now++
	m.most = max(m.most, m.now)
	m.began, m.at = append(m.began, id), append(m.at, time.Now())
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now--
	}
}

func TestAQueueLetsInNoMoreRunsThanItsMax(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "body", func(ctx context.Context) error {
				defer m.enter(durable.Attempt(ctx).RunID)()
				time.Sleep(time.Second)
				return nil
			})
		})
		o := with(wf)
		o.Queues = []durable.Queue{{Name: "q", Max: 2}}
		w.boot(t, o)
		_, err := durable.Recover(w.ctx())
		require.NoError(t, err)
		began := time.Now()
		for i := range 6 {
			_, err := wf.Start(w.ctx(), fmt.Sprint("r", i), i, durable.OnQueue("q"))
			require.NoError(t, err)
		}
		for i := range 6 {
			_, err := wait(t, w, wf, fmt.Sprint("r", i))
			require.NoError(t, err)
		}
		require.Equal(t, 2, m.most)
		for i := 0; i < 6; i += 2 {
			require.ElementsMatch(t, []string{fmt.Sprint("r", i), fmt.Sprint("r", i+1)}, m.began[i:i+2], "first come, first served")
		}
		require.Less(t, time.Since(began), 3*time.Second+100*time.Millisecond, "a place that becomes free is given at once")
		synctest.Wait()
	})
}

func TestAnotherStartWithTheKeyIsToldWhoHasIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hold := make(chan struct{})
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "body", func(ctx context.Context) error { <-hold; return nil })
		})
		w.boot(t, with(wf))
		_, err := durable.Recover(w.ctx())
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "a", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "b", 1, durable.OnQueue("q"), durable.Dedup("k"))
		var conflict *durable.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, &durable.ConflictError{RunID: "b", Want: "w", Queue: "q", Dedup: "k", Holder: "a"}, conflict)
		require.ErrorIs(t, err, durable.ErrConflict)
		_, err = wf.Start(w.ctx(), "a", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err, "a start that is made again")
		_, err = wf.Start(w.ctx(), "c", 1, durable.OnQueue("other"), durable.Dedup("k"))
		require.NoError(t, err, "of another queue")
		close(hold)
		_, err = wait(t, w, wf, "a")
		require.NoError(t, err)
		_, err = wf.Start(w.ctx(), "b", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err, "the key is free again")
		require.False(t, errors.Is(err, durable.ErrConflict))
	})
}

// bodies is a workflow whose only step takes this long, and is seen by m.
func (m *meter) bodies(d time.Duration) *durable.Workflow[int, int] {
	return durable.Define("w", func(ctx context.Context, n int) (int, error) {
		return n, durable.Do(ctx, "body", func(ctx context.Context) error {
			defer m.enter(durable.Attempt(ctx).RunID)()
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
}

// order returns the runs whose bodies began, in that order.
func (m *meter) order() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.began)
}

func queued(wf durable.Definition, q ...durable.Queue) durable.Options {
	o := with(wf)
	o.Queues = q
	return o
}

func enqueue(t *testing.T, w *world, wf *durable.Workflow[int, int], id string, o ...durable.StartOption) {
	t.Helper()
	_, err := wf.Enqueue(w.ctx(), id, 0, o...)
	require.NoError(t, err)
}

func waitAll(t *testing.T, w *world, wf *durable.Workflow[int, int], ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := wait(t, w, wf, id)
		require.NoError(t, err)
	}
}

func TestNoWindowOfARateHasMoreBeginningsAndNoneIsHeldUpLonger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(time.Second)
		w.boot(t, queued(wf, durable.Queue{Name: "q", Rate: 3, Per: 10 * time.Second}))
		var ids []string
		for i := range 10 {
			ids = append(ids, fmt.Sprint("r", i))
			enqueue(t, w, wf, ids[i], durable.OnQueue("q"))
			time.Sleep(time.Second)
		}
		waitAll(t, w, wf, ids...)
		for i := 3; i < len(ids); i++ {
			between := w.row(ids[i]).StartedAt.Sub(w.row(ids[i-3]).StartedAt)
			require.GreaterOrEqual(t, between, 10*time.Second, "%s", ids[i])
			require.Less(t, between, 10*time.Second+20*time.Millisecond, "%s begins as soon as it may", ids[i])
		}
	})
}

func TestADelayedRunBeginsAtItsTimeAndNotBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(0)
		w.boot(t, queued(wf))
		began := time.Now()
		due := map[string]time.Time{"a": began.Add(1500 * time.Millisecond), "b": began.Add(40 * time.Second), "c": began.Add(700 * time.Millisecond)}
		enqueue(t, w, wf, "a", durable.Delay(1500*time.Millisecond))
		enqueue(t, w, wf, "b", durable.OnQueue("q"), durable.StartAt(due["b"]))
		enqueue(t, w, wf, "c", durable.OnQueue("q"), durable.Delay(700*time.Millisecond))
		enqueue(t, w, wf, "past", durable.StartAt(began.Add(-time.Hour)))
		synctest.Wait()
		require.Equal(t, []string{"past"}, m.order())
		require.Equal(t, store.Pending, w.row("a").Status)
		waitAll(t, w, wf, "a", "b", "c", "past")
		require.Equal(t, []string{"past", "c", "a", "b"}, m.order())
		for id, at := range due {
			late := w.row(id).StartedAt.Sub(store.TimeOf(at))
			require.True(t, late >= 0 && late < 10*time.Millisecond, "%s is %s late", id, late)
		}
	})
}

func TestARunKeepsItsPlaceWhileItWaits(t *testing.T) {
	for _, q := range []durable.Queue{{Name: "all", Max: 1}, {Name: "here", MaxPerProcess: 1}} {
		inWorld(t, func(t *testing.T, w *world) {
			var m meter
			wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
				body := func(ctx context.Context) error { m.enter(durable.Attempt(ctx).RunID)(); return nil }
				if err := durable.Do(ctx, "before", body); err != nil {
					return 0, err
				}
				if err := durable.Sleep(ctx, time.Minute); err != nil {
					return 0, err
				}
				return n, durable.Do(ctx, "after", body)
			})
			w.boot(t, queued(wf, q))
			enqueue(t, w, wf, "a", durable.OnQueue(q.Name))
			enqueue(t, w, wf, "b", durable.OnQueue(q.Name))
			pass(30 * time.Second)
			require.Equal(t, []string{"a"}, m.order(), "it sleeps, is unloaded, and still has its place")
			waitAll(t, w, wf, "a", "b")
			require.Equal(t, []string{"a", "a", "b", "b"}, m.order())
		})
	}
}

func TestAProcessHasNoMoreRunsOfAQueueThanItSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m [2]meter
		var ids []string
		var wf *durable.Workflow[int, int]
		for i := range m {
			wf = m[i].bodies(time.Second)
			w.boot(t, queued(wf, durable.Queue{Name: "q", MaxPerProcess: i + 1}))
		}
		began := time.Now()
		for i := range 9 {
			ids = append(ids, fmt.Sprint("r", i))
			enqueue(t, w, wf, ids[i], durable.OnQueue("q"))
		}
		waitAll(t, w, wf, ids...)
		require.Equal(t, 1, m[0].most)
		require.Equal(t, 2, m[1].most)
		require.Less(t, time.Since(began), 3*time.Second+100*time.Millisecond, "both are at work all the time")
	})
}

func TestAFullQueueHoldsUpNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(10 * time.Second)
		w.boot(t, queued(wf, durable.Queue{Name: "full", Max: 1}, durable.Queue{Name: "slow", Rate: 1, Per: time.Hour}))
		for i := range 100 {
			enqueue(t, w, wf, fmt.Sprint("f", i), durable.OnQueue("full"))
			enqueue(t, w, wf, fmt.Sprint("s", i), durable.OnQueue("slow"))
		}
		enqueue(t, w, wf, "free", durable.OnQueue("free"))
		enqueue(t, w, wf, "none")
		synctest.Wait()
		require.ElementsMatch(t, []string{"f0", "s0", "free", "none"}, m.order())
		claims := 0
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "claim" {
				claims++
			}
			return forward()
		})
		pass(9 * time.Second)
		require.Less(t, claims, 10, "it does not ask again and again")
		w.disk.tamperCalls(nil)
	})
}

func TestAPausedQueueLetsNobodyInUntilItIsResumed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(time.Second)
		o := queued(wf, durable.Queue{Name: "q", Max: 1})
		w.boot(t, o)
		enqueue(t, w, wf, "a", durable.OnQueue("q"))
		enqueue(t, w, wf, "b", durable.OnQueue("q"))
		synctest.Wait()
		put := func(change func(*store.Queue)) {
			states, err := w.data.Queues(context.Background(), "q")
			require.NoError(t, err)
			change(&states[0].Queue)
			require.NoError(t, w.data.PutQueue(context.Background(), states[0].Queue))
		}
		put(func(q *store.Queue) { q.Paused, q.Reason = true, "the provider is down" })
		pass(time.Hour)
		require.Equal(t, []string{"a"}, m.order())
		require.Equal(t, store.Completed, w.row("a").Status, "who has a place goes on")
		w.boot(t, queued(wf, durable.Queue{Name: "q", Max: 5}))
		pass(time.Hour)
		require.Equal(t, []string{"a"}, m.order(), "declaring it otherwise does not resume it")
		require.NoError(t, w.eng.Cancel(w.ctx(), "b", "no longer wanted"))
		w.eventually("b", store.Cancelled) // a run in line can be cancelled
		enqueue(t, w, wf, "c", durable.OnQueue("q"))
		put(func(q *store.Queue) { q.Paused, q.Reason = false, "" })
		waitAll(t, w, wf, "c")
	})
}

func TestPriorityIsWaitingTimeOfAnHourForEachStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(time.Second)
		w.boot(t, queued(wf, durable.Queue{Name: "q", Max: 1}))
		enqueue(t, w, wf, "first", durable.OnQueue("q"))
		synctest.Wait()
		q, err := w.data.Queues(context.Background(), "q")
		require.NoError(t, err)
		q[0].Paused = true
		require.NoError(t, w.data.PutQueue(context.Background(), q[0].Queue))
		pass(time.Minute)
		enqueue(t, w, wf, "old", durable.OnQueue("q"))
		time.Sleep(90 * time.Minute)
		enqueue(t, w, wf, "one", durable.OnQueue("q"), durable.Priority(1))
		time.Sleep(time.Minute)
		enqueue(t, w, wf, "two", durable.OnQueue("q"), durable.Priority(2))
		enqueue(t, w, wf, "low", durable.OnQueue("q"), durable.Priority(-1))
		enqueue(t, w, wf, "zero", durable.OnQueue("q"))
		enqueue(t, w, wf, "zero again", durable.OnQueue("q"))
		q[0].Revision++
		q[0].Paused = false
		require.NoError(t, w.data.PutQueue(context.Background(), q[0].Queue))
		waitAll(t, w, wf, "old", "one", "two", "low", "zero", "zero again")
		require.Equal(t, []string{"first", "two", "old", "one", "zero", "zero again", "low"}, m.order())
	})
}

func TestTenantsTakeTurns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(time.Second)
		w.boot(t, queued(wf, durable.Queue{Name: "q", Max: 2, MaxPerPartition: 1}))
		ids := func(tenant string, n int) iter.Seq2[string, int] {
			return func(yield func(string, int) bool) {
				for i := range n {
					if !yield(fmt.Sprintf("%s%02d", tenant, i), i) {
						return
					}
				}
			}
		}
		_, err := wf.StartAll(w.ctx(), ids("big", 30), durable.OnQueue("q"), durable.Partition("big"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"big00"}, m.order(), "a tenant's limit holds though the queue has room")
		_, err = wf.StartAll(w.ctx(), ids("a", 3), durable.OnQueue("q"), durable.Partition("a"))
		require.NoError(t, err)
		_, err = wf.StartAll(w.ctx(), ids("c", 3), durable.OnQueue("q"), durable.Partition("c"))
		require.NoError(t, err)
		for i := range 3 {
			waitAll(t, w, wf, fmt.Sprintf("a%02d", i), fmt.Sprintf("c%02d", i))
		}
		big := 0
		for _, id := range m.order() {
			if id[:2] == "bi" {
				big++
			}
		}
		require.LessOrEqual(t, big, 6, "the small tenants are served in turn: %s", m.order())
		// Without turns, the partition of the first name would be served whenever it has a run.
		require.Less(t, slices.Index(m.order(), "c00"), slices.Index(m.order(), "a01"), "%s", m.order())
	})
}

func TestTheEngineThatIsRecoveredLastSaysWhatTheLimitsAre(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := new(meter).bodies(0)
		one := queued(wf, durable.Queue{Name: "q", Max: 1}, durable.Queue{Name: "same", Max: 3})
		w.boot(t, one)
		require.Empty(t, w.log.find("declared"))
		w.boot(t, queued(wf, durable.Queue{Name: "q", Max: 2, Rate: 5, Per: time.Minute}, durable.Queue{Name: "same", Max: 3}))
		require.Len(t, w.log.find("queue was declared with other limits before"), 1)
		require.Contains(t, w.log.find("queue was declared with other limits before")[0], "queue=q before=at most 1 at once now=at most 2 at once, 5 in 1m0s")
		pass(time.Hour)
		state := func(name string) store.Queue {
			states, err := w.data.Queues(context.Background(), name)
			require.NoError(t, err)
			return states[0].Queue
		}
		require.Equal(t, 2, state("q").Max)
		require.EqualValues(t, 2, state("q").Revision, "engines that are open change nothing")
		require.EqualValues(t, 1, state("same").Revision)
		third := queued(wf, durable.Queue{Name: "third", Rate: 1, Per: time.Second / 3}) // which is kept in microseconds
		w.boot(t, third)
		w.boot(t, third)
		require.Len(t, w.log.find("queue was declared with other limits before"), 1)
		require.EqualValues(t, 1, state("third").Revision)
		for _, bad := range []durable.Queue{{Name: ""}, {Name: "x", Max: -1}, {Name: "x", Rate: 1}, {Name: "x", MaxPerProcess: -1}} {
			_, err := durable.Open(context.Background(), w.data, queued(wf, bad))
			var no *durable.QueueError
			require.ErrorAs(t, err, &no)
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		_, err := durable.Open(context.Background(), w.data, queued(wf, durable.Queue{Name: "x"}, durable.Queue{Name: "x"}))
		require.ErrorIs(t, err, durable.ErrInvalid)
		plain := struct{ store.Store }{w.data}
		_, err = durable.Open(context.Background(), plain, queued(wf, durable.Queue{Name: "x", Max: 1}))
		require.ErrorIs(t, err, errors.ErrUnsupported)
		eng, err := durable.Open(context.Background(), plain, queued(wf, durable.Queue{Name: "x", MaxPerProcess: 1}))
		require.NoError(t, err, "a store without queues can do what concerns one process")
		require.NoError(t, eng.Close())
	})
}

func TestAnEngineTakesRunsOfTheQueuesThatItServes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var picky, every meter
		o := queued(picky.bodies(0))
		o.ServeQueues = []string{"a"}
		w.boot(t, o)
		wf := every.bodies(0)
		enqueue(t, w, wf, "a", durable.OnQueue("a"))
		enqueue(t, w, wf, "b", durable.OnQueue("b"))
		enqueue(t, w, wf, "none")
		pass(time.Hour)
		require.ElementsMatch(t, []string{"a", "none"}, picky.order())
		w.boot(t, queued(wf))
		waitAll(t, w, wf, "b")
		require.Equal(t, []string{"b"}, every.order())
	})
}

func TestARunOfAQueueThatIsInterruptedGetsInLineAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(20 * time.Second)
		q := durable.Queue{Name: "q", Max: 1}
		w.boot(t, queued(wf, q))
		enqueue(t, w, wf, "a", durable.OnQueue("q"))
		time.Sleep(time.Second)
		enqueue(t, w, wf, "b", durable.OnQueue("q"))
		synctest.Wait()
		require.NoError(t, w.eng.Close())
		require.Equal(t, store.Interrupted, w.row("a").Status)
		rep := w.boot(t, queued(wf, q))
		require.Equal(t, []string{"a"}, rep.Deferred)
		waitAll(t, w, wf, "a", "b")
		require.Equal(t, []string{"a", "a", "b"}, m.order(), "by the order of their creation")
		require.Equal(t, 1, m.most)
	})
}

func TestAQueueKeepsItsLimitWhenProcessesDie(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m meter
		wf := m.bodies(20 * time.Second)
		q := durable.Queue{Name: "q", Max: 2, MaxPerProcess: 1}
		w.boot(t, queued(wf, q))
		for i := range 5 {
			enqueue(t, w, wf, fmt.Sprint("r", i), durable.OnQueue("q"))
		}
		pass(time.Second)
		w.reboot(t, queued(wf, q))
		for i := range 5 {
			waitAll(t, w, wf, fmt.Sprint("r", i))
		}
		require.Equal(t, 1, m.most, "one process, and one run of the queue in it")
		require.Equal(t, []string{"r0", "r0", "r1", "r2", "r3", "r4"}, m.order())
	})
}

func TestAFanOutSpreadsOverTheProcessesThatServeItsQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m [2]meter
		var parent *durable.Workflow[int, int]
		for i := range m {
			child := durable.Define("child", func(ctx context.Context, n int) (int, error) {
				return n, durable.Do(ctx, "body", func(ctx context.Context) error {
					defer m[i].enter(durable.Attempt(ctx).RunID)()
					time.Sleep(time.Second)
					return nil
				})
			})
			parent = durable.Define("parent", func(ctx context.Context, n int) (int, error) {
				var runs []*durable.Run[int]
				for i := range n {
					r, err := child.Enqueue(ctx, durable.AutoID, i, durable.OnQueue("q"))
					if err != nil {
						return 0, err
					}
					runs = append(runs, r)
				}
				sum := 0
				for _, r := range runs {
					v, err := r.Wait(ctx)
					if err != nil {
						return 0, err
					}
					sum += v
				}
				return sum, nil
			})
			o := with(parent, child)
			o.Queues = []durable.Queue{{Name: "q", MaxPerProcess: 2}}
			w.boot(t, o)
		}
		began := time.Now()
		sum, err := run(t, w, parent, "p", 8)
		require.NoError(t, err)
		require.Equal(t, 28, sum)
		require.Equal(t, 2, m[0].most)
		require.Equal(t, 2, m[1].most)
		require.Less(t, time.Since(began), 3*time.Second)
	})
}

func TestTenThousandStartsAreOneCall(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := new(meter).bodies(0)
		w.open(t, queued(wf))
		_, err := wf.Enqueue(w.ctx(), "r77", 5, durable.OnQueue("q"))
		require.NoError(t, err)
		_, err = wf.Enqueue(w.ctx(), "other", 5, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err)
		many := func(yield func(string, int) bool) {
			for i := range 10_000 {
				if !yield(fmt.Sprint("r", i), i) {
					return
				}
			}
		}
		did, err := wf.StartAll(w.ctx(), many, durable.OnQueue("q"), durable.Partition("p"), durable.Priority(3))
		require.NoError(t, err)
		require.Equal(t, 9_999, did.Started)
		require.Len(t, did.Refused, 1)
		require.Equal(t, "r77", did.Refused[0].ID)
		require.ErrorIs(t, did.Refused[0].Err, durable.ErrConflict)
		did, err = wf.StartAll(w.ctx(), func(yield func(string, int) bool) { _ = yield("x", 1) && yield("y", 2) }, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err)
		require.Len(t, did.Refused, 2)
		var conflict *durable.ConflictError
		require.ErrorAs(t, did.Refused[1].Err, &conflict)
		require.Equal(t, "other", conflict.Holder)
		row := w.row("r9999")
		require.Equal(t, []any{"q", "p", int32(3), store.Pending}, []any{row.Queue, row.Partition, row.Priority, row.Status})
	})
}

func TestStartsWhoseOptionsDoNotGoTogetherAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := new(meter).bodies(0)
		w.boot(t, queued(wf))
		quick := durable.Debounce("k", time.Second, time.Minute)
		for _, o := range [][]durable.StartOption{
			{durable.OnQueue("")}, {durable.Partition("p")}, {durable.OnQueue("q"), durable.Partition("")}, {durable.Priority(1001)},
			{durable.Delay(-1)}, {durable.Delay(time.Second), durable.StartAt(time.Now())}, {durable.StartAt(time.Time{})}, {durable.Dedup("")},
			{durable.StartAt(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}, {durable.StartAt(time.Unix(1<<58+1, 0))}, // an hour of 1970, in 64 bits of microseconds
			{quick, durable.Dedup("k")}, {quick, durable.Delay(time.Second)}, {quick, durable.Exclusive("x")}, {quick, durable.WithSignal("s", 1)},
			{durable.Debounce("", 1, 1)}, {durable.Debounce("k", 0, 1)}, {durable.Debounce("k", time.Minute, time.Second)},
		} {
			_, err := wf.Start(w.ctx(), durable.AutoID, 1, o...)
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		_, err := wf.Start(w.ctx(), "named", 1, quick)
		require.ErrorIs(t, err, durable.ErrInvalid)
		_, err = wf.StartAll(w.ctx(), func(yield func(string, int) bool) { yield("x", 1) }, quick)
		require.ErrorIs(t, err, durable.ErrInvalid)
		page, err := w.data.List(context.Background(), store.Filter{})
		require.NoError(t, err)
		require.Empty(t, page.Runs)
	})
}

// A run whose process dies goes on in one that takes runs from its queue, and in no other; nor
// does an operator's act bring it there.
func TestARunOfADeadProcessStaysOnItsQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var h hold
		fails := true
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			if err := durable.Do(ctx, "hold", h.body); err != nil {
				return 0, err
			}
			return n, durable.Do(ctx, "fail", func(ctx context.Context) error {
				if fails {
					return durable.Permanent(errors.New("no"))
				}
				return nil
			})
		})
		serve := func(queues ...string) durable.Options {
			o := with(wf)
			o.ServeQueues = queues
			return o
		}
		w.boot(t, serve("letters", "emails"))
		enqueue(t, w, wf, "r", durable.OnQueue("emails"))
		pass(time.Second)
		rep := w.reboot(t, serve("letters"))
		require.Empty(t, rep.Resumed)
		require.Len(t, rep.Stuck, 1)
		require.Equal(t, "nobody alive who serves workflow w takes runs from queue emails", rep.Stuck[0].Reason)
		picky := w.eng
		pass(10 * time.Minute)
		require.False(t, owned(w, "r", picky))
		found, err := operate.On(picky).Stuck(w.ctx(), 0)
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Contains(t, found[0].Next, "takes runs from queue emails")
		require.Contains(t, w.log.find("runs are stuck: no live executor takes runs from their queue")[0], "takes runs from queue emails (Options.ServeQueues)")

		enqueue(t, w, wf, "next", durable.OnQueue("emails"))
		pass(time.Minute)
		line, err := operate.On(picky).Line(w.ctx(), "next")
		require.NoError(t, err)
		why, _ := line.Reason()
		require.Equal(t, operate.QueueUnserved, why)
		q, err := operate.On(picky).Queues(w.ctx(), "emails")
		require.NoError(t, err)
		require.Equal(t, []operate.QueueWait{{Reason: operate.QueueUnserved, Runs: 1}}, q[0].Waits)

		w.boot(t, serve("emails"))
		w.eventually("r", store.Failed)
		w.eventually("next", store.Running)
		w.crash()
		w.expire()
		fails = false
		w.eng = picky
		_, err = operate.On(picky).Resume(w.ctx(), "r", operate.ResumeOptions{})
		require.NoError(t, err)
		pass(time.Minute)
		require.Equal(t, store.Interrupted, w.row("r").Status, "it is in line, and not executed here")
		w.boot(t, serve("emails"))
		w.eventually("r", store.Completed)
		checkVerified(t, w.data)
	})
}

func owned(w *world, id string, by *durable.Engine) bool { return w.row(id).Owner == by.ID() }

// A child that waits for a time is cancelled with the others when its parent ends, not when
// that time has come.
func TestADelayedChildEndsWithItsParent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		child := new(meter).bodies(0)
		parent := durable.Define("parent", func(ctx context.Context, n int) (int, error) {
			_, err := child.Start(ctx, "in-line", 1, durable.OnQueue("q"), durable.Delay(24*time.Hour))
			if err == nil {
				_, err = child.Start(ctx, "alone", 1, durable.Delay(24*time.Hour))
			}
			return n, err
		})
		o := queued(child, durable.Queue{Name: "q", Max: 1})
		o.Workflows = append(o.Workflows, parent)
		w.boot(t, o)
		_, err := parent.Run(w.ctx(), "p", 1)
		require.NoError(t, err)
		for _, id := range []string{"in-line", "alone"} {
			ended := w.eventually(id, store.Cancelled)
			require.Less(t, ended.EndedAt.Sub(ended.CreatedAt), time.Minute)
			require.NotContains(t, w.story(id), "step_completed body")
		}
		checkVerified(t, w.data)
	})
}

func TestAQueueSaysThatRecoverIsMissing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := new(meter).bodies(0)
		w.open(t, queued(wf))
		enqueue(t, w, wf, "a", durable.OnQueue("q"))
		enqueue(t, w, wf, "b", durable.OnQueue("q"))
		enqueue(t, w, wf, "plain")
		waitAll(t, w, wf, "plain")
		require.Equal(t, store.Pending, w.row("a").Status)
		require.Len(t, w.log.find("Recover was not called: this engine takes it only then"), 1)
		_, err := w.eng.Recover(w.ctx())
		require.NoError(t, err)
		waitAll(t, w, wf, "a", "b")
	})
}
