package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/durable/durabletest"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A process declares a queue, puts runs in line and executes them, and dies just before or just
// after each of its writes. The next one ends all that was started; at no moment are more
// bodies executed, of both, than the queue lets in.
func TestAQueueHoldsThroughADeathAtEachWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Greater(t, dieAtEachWrite(func(at int, after bool) bool { return queueAndDie(t, at, after) }), 30)
	})
}

func queueAndDie(t *testing.T, at int, after bool) (died bool) {
	t.Helper()
	data := memory.Open()
	var m meter
	wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
		body := func(ctx context.Context) error {
			defer m.enter(durable.Attempt(ctx).RunID)()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return ctx.Err()
		}
		if err := durable.Do(ctx, "a", body); err != nil {
			return 0, err
		}
		if err := durable.Sleep(ctx, 20*time.Second); err != nil {
			return 0, err
		}
		return n, durable.Do(ctx, "b", body)
	})
	started := map[string]bool{}
	life := func(die int, act func(ctx context.Context)) *crashstore.Store {
		m := crashstore.NewQueues(data.Handle())
		m.DieAt(die, after)
		eng, err := durable.Open(context.Background(), m, durable.Options{
			Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Grace: -1,
			Queues: []durable.Queue{{Name: "q", Max: 2, MaxPerPartition: 1, MaxPerProcess: 2, Rate: 2, Per: 10 * time.Second}},
		})
		if err != nil {
			require.True(t, m.IsDead())
			return m.Store
		}
		ctx := durable.NewContext(context.Background(), eng)
		if _, err := eng.Recover(ctx); !m.IsDead() {
			require.NoError(t, err)
		}
		act(ctx)
		if die > 0 {
			m.Die()
		}
		_ = eng.Close()
		time.Sleep(2 * durable.DefaultLease)
		return m.Store
	}
	first := life(at, func(ctx context.Context) {
		for i := range 4 {
			id := fmt.Sprint("r", i)
			short, stop := context.WithTimeout(ctx, time.Second)
			_, err := wf.Start(short, id, i, durable.OnQueue("q"), durable.Partition(fmt.Sprint(i%2)), durable.Delay(time.Duration(i)*time.Second), durable.Dedup(id))
			stop()
			started[id] = err == nil
		}
		time.Sleep(40 * time.Second)
	})
	died = first.IsDead() && first.Writes() >= at
	life(0, func(ctx context.Context) {
		time.Sleep(5 * time.Minute)
		synctest.Wait()
	})
	what := fmt.Sprintf("write %d, after it: %v", at, after)
	page, err := data.List(context.Background(), store.Filter{OldestFirst: true})
	require.NoError(t, err)
	there := map[string]bool{}
	var begins []store.Time
	for _, r := range page.Runs {
		require.Equal(t, store.Completed, r.Status, "%s: %s", what, r.ID)
		require.GreaterOrEqual(t, r.StartedAt, r.WakeAt, "%s: %s began too early", what, r.ID)
		there[r.ID] = true
		begins = append(begins, r.StartedAt)
	}
	for id, said := range started {
		require.True(t, there[id] || !said, "%s: %s was started and is lost", what, id)
	}
	for i := range begins {
		in := 0
		for _, other := range begins {
			if other >= begins[i] && other.Sub(begins[i]) < 10*time.Second {
				in++
			}
		}
		require.LessOrEqual(t, in, 2, "%s: a window of the rate", what)
	}
	require.LessOrEqual(t, m.most, 2, what)
	checkVerified(t, data)
	return died
}

// Runs of several queues are started, paused, cancelled and resumed by processes that come and go, in any
// order. Whatever happens, no more bodies are executed at once than each queue lets in, and in
// the end every run has ended.
func TestLimitsHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failed string
		synctest.Test(t, func(t *testing.T) { failed = limitsHold(t, rt) })
		if failed != "" {
			rt.Fatal(failed)
		}
	})
}

func limitsHold(t *testing.T, rt *rapid.T) (failed string) {
	data := memory.Open()
	limit := rapid.IntRange(1, 3).Draw(rt, "max")
	perPartition := rapid.IntRange(0, 2).Draw(rt, "max per partition")
	var mu sync.Mutex
	now, of := 0, map[string]int{}
	wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
		for i := range 2 {
			err := durable.Do(ctx, fmt.Sprint("body", i), func(ctx context.Context) error {
				part := durable.Headers(ctx)["part"]
				mu.Lock()
				now++
				of[part]++
				if now > limit || perPartition > 0 && of[part] > perPartition {
					failed = fmt.Sprintf("%d bodies at once, of partition %q %d; %d and %d are allowed", now, part, of[part], limit, perPartition)
				}
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					now--
					of[part]--
				}()
				select {
				case <-time.After(time.Duration(n%5) * time.Second):
				case <-ctx.Done():
				}
				return ctx.Err()
			})
			if err != nil {
				return 0, err
			}
			if err := durable.Sleep(ctx, time.Duration(n%3)*20*time.Second); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	open := func() *durable.Engine {
		eng, err := durable.Open(context.Background(), data.Handle(), durable.Options{
			Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Grace: -1,
			Queues: []durable.Queue{{Name: "q", Max: limit, MaxPerPartition: perPartition}},
		})
		require.NoError(t, err)
		_, err = eng.Recover(context.Background())
		require.NoError(t, err)
		return eng
	}
	engines := []*durable.Engine{open()}
	var ids, paused []string
	some := func(list []string) string { return list[rapid.IntRange(0, len(list)-1).Draw(rt, "run")] }
	for i := range rapid.IntRange(5, 40).Draw(rt, "acts") {
		eng := engines[rapid.IntRange(0, len(engines)-1).Draw(rt, "engine")]
		ctx := durable.NewContext(context.Background(), eng)
		switch act := rapid.SampledFrom([]string{"start", "start", "start", "wait", "open", "close", "pause", "unpause", "cancel"}).Draw(rt, "act"); {
		case act == "start":
			id, part := fmt.Sprint("r", i), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(rt, "partition")
			_, err := wf.Start(ctx, id, i, durable.OnQueue("q"), durable.Partition(part), durable.Header("part", part), durable.Priority(i%3), durable.Delay(time.Duration(i%4)*time.Second))
			require.NoError(t, err)
			ids = append(ids, id)
		case act == "wait":
			time.Sleep(time.Duration(rapid.IntRange(1, 30_000).Draw(rt, "ms")) * time.Millisecond)
		case act == "open" && len(engines) < 3:
			engines = append(engines, open())
		case act == "close" && len(engines) > 1:
			require.NoError(t, engines[0].Close())
			engines = engines[1:]
		case act == "pause" && len(ids) > 0:
			id := some(ids)
			if eng.Pause(ctx, id, "") == nil {
				paused = append(paused, id)
			}
		case act == "unpause" && len(paused) > 0:
			_ = eng.Unpause(ctx, some(paused))
		case act == "cancel" && len(ids) > 0:
			_ = eng.Cancel(ctx, some(ids), "")
		}
	}
	synctest.Wait()
	for _, id := range paused {
		_ = engines[0].Unpause(context.Background(), id)
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	for _, eng := range engines {
		require.NoError(t, eng.Close())
	}
	page, err := data.List(context.Background(), store.Filter{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, page.Runs, len(ids))
	for _, r := range page.Runs {
		if !r.Status.Terminal() && failed == "" {
			failed = fmt.Sprintf("%s is %s in the end", r.ID, r.Status)
		}
	}
	return failed
}

// The clock of the store jumps while runs are delayed and a rate holds others back.
func TestNoJumpOfTheClockBeginsARunEarlyOrTwice(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, 365 * 24 * time.Hour, -time.Hour, -365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var off time.Duration
			data := memory.OpenAt(func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Add(off)
			})
			var m meter
			wf := m.bodies(0)
			o := queued(wf, durable.Queue{Name: "rate", Rate: 1, Per: time.Minute})
			o.Logger, o.Grace, o.Lease = slog.New(slog.DiscardHandler), -1, 3*time.Hour // few beats in a year
			eng, err := durable.Open(context.Background(), data.Handle(), o)
			require.NoError(t, err)
			defer func() { require.NoError(t, eng.Close()) }()
			ctx := durable.NewContext(context.Background(), eng)
			_, err = eng.Recover(ctx)
			require.NoError(t, err)
			ids := []string{"soon", "late", "rate0", "rate1", "rate2"}
			for _, id := range ids {
				line := []durable.StartOption{durable.OnQueue("rate")}
				switch id {
				case "soon":
					line = []durable.StartOption{durable.Delay(30 * time.Second)}
				case "late":
					line = []durable.StartOption{durable.Delay(2 * time.Hour)}
				}
				_, err := wf.Enqueue(ctx, id, 0, line...)
				require.NoError(t, err)
			}
			time.Sleep(10 * time.Second)
			mu.Lock()
			off = jump
			mu.Unlock()
			time.Sleep(jump.Abs() + 24*time.Hour)
			synctest.Wait()
			require.ElementsMatch(t, ids, m.order(), "each once, after a jump by %s", jump)
			var begins []time.Time
			for _, id := range ids {
				h, err := data.Load(context.Background(), id, store.Cursor{NoEvents: true})
				require.NoError(t, err)
				require.GreaterOrEqual(t, h.Run.StartedAt, h.Run.WakeAt, "%s began early after a jump by %s", id, jump)
			}
			for i, id := range m.order() {
				if id[:4] == "rate" {
					begins = append(begins, m.at[i])
				}
			}
			if jump < 0 {
				for i := 1; i < len(begins); i++ {
					require.GreaterOrEqual(t, begins[i].Sub(begins[i-1]), time.Minute, "the rate after a jump by %s", jump)
				}
			}
		})
	}
}

// In a queue that is never empty, a process at its limit has room for a moment only, and looks for
// runs of the dead more slowly than it claims those in line.
func TestTheRunOfADeadProcessDoesNotWaitForTheLineOfItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := memory.Open()
		wf := durable.Define("w", func(ctx context.Context, slow bool) (bool, error) {
			return slow, durable.Do(ctx, "work", func(ctx context.Context) error {
				took := 100 * time.Millisecond
				if slow && durable.Attempt(ctx).Number == 1 {
					took = time.Second
				}
				select {
				case <-time.After(took):
				case <-ctx.Done():
				}
				return ctx.Err()
			})
		})
		open := func(st store.Store) (context.Context, *durable.Engine) {
			eng, err := durable.Open(t.Context(), st, durable.Options{
				Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), Grace: -1, Lease: time.Second,
				Queues: []durable.Queue{{Name: "q", MaxPerProcess: 2}},
			})
			require.NoError(t, err)
			ctx := durable.NewContext(t.Context(), eng)
			_, err = durable.Recover(ctx)
			require.NoError(t, err)
			return ctx, eng
		}
		lost := durabletest.Faults(data)
		first, one := open(lost)
		defer one.Close() // it has no store then
		for i := range 2 {
			_, err := wf.Start(first, fmt.Sprint("first-", i), true, durable.OnQueue("q"))
			require.NoError(t, err)
		}
		synctest.Wait()
		lost.Cut()

		second, two := open(durabletest.Faults(data.Handle(), durabletest.Fault{Do: durabletest.Slow, For: 30 * time.Millisecond, On: "list"}))
		defer two.Close()
		for i := range 300 {
			_, err := wf.Start(second, fmt.Sprint("later-", i), false, durable.OnQueue("q"))
			require.NoError(t, err)
		}
		begun := time.Now()
		for i := range 2 {
			run, err := wf.Handle(second, fmt.Sprint("first-", i))
			require.NoError(t, err)
			_, err = run.Wait(second)
			require.NoError(t, err)
		}
		require.Less(t, time.Since(begun), 5*time.Second, "a lease, two works, and not the line of 15 s")
		last, err := wf.Handle(second, "later-299")
		require.NoError(t, err)
		_, err = last.Wait(second)
		require.NoError(t, err)
		require.Less(t, time.Since(begun), 20*time.Second, "no place is kept for nobody")
	})
}
