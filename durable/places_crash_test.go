package durable_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// Four runs whose process has died are recovered by one that executes one at a
// time, and that dies just before or just after each of its writes. The next one
// finds those it had begun and those that stood in its queue, ends them all, and
// suspects none.
func TestAProcessThatDiesWithRunsLeftForLaterLosesNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Greater(t, dieAtEachWrite(func(at int, after bool) bool { return dieWithAQueue(t, at, after) }), 20)
	})
}

// dieWithAQueue reports whether the process got as far as to the write at which it
// is to die.
func dieWithAQueue(t *testing.T, at int, after bool) (died bool) {
	t.Helper()
	data := memory.Open()
	var mu sync.Mutex
	bodies, held := map[string]int{}, true
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		for _, name := range []string{"a", "b"} {
			if err := durable.Do(ctx, name, func(ctx context.Context) error {
				mu.Lock()
				hold := held
				bodies[durable.Attempt(ctx).RunID+"/"+name]++
				mu.Unlock()
				if hold {
					<-ctx.Done()
				}
				return ctx.Err()
			}); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
	life := func(places, die int, act func(ctx context.Context)) *crashstore.Store {
		m := crashstore.New(data.Handle())
		if die > 0 {
			m.DieAt(die, after)
		}
		eng, err := durable.Open(t.Context(), m, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler), MaxRuns: places})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)
		if _, err = durable.Recover(ctx); !m.IsDead() {
			require.NoError(t, err)
		}
		act(ctx)
		synctest.Wait()
		if die == 0 && held {
			m.Die()
		}
		_ = eng.Close()
		time.Sleep(2 * durable.DefaultLease)
		return m
	}
	life(10, 0, func(ctx context.Context) {
		for i := range 4 {
			_, err := wf.Start(ctx, fmt.Sprint("r", i), i)
			require.NoError(t, err)
		}
	})
	held = false
	rest := func(context.Context) { time.Sleep(time.Minute) }
	died = life(1, at, rest).IsDead()
	life(1, 0, rest)
	counts, err := data.Count(t.Context(), store.Filter{}, store.ByStatus)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{string(store.Completed): 4}, counts, "write %d, after it: %v", at, after)
	for i := range 4 {
		for _, name := range []string{"a", "b"} {
			key := fmt.Sprint("r", i, "/", name)
			most := 2 // it runs again where its outcome was lost
			if name == "a" {
				most = 3
			}
			require.LessOrEqual(t, bodies[key], most, key)
		}
	}
	checkVerified(t, data)
	require.NoError(t, data.Close())
	return died
}

// What a run has held back (that its sleep has ended, here) is a change of its own before one that must be
// alone: the interruption by Close, a pause, a wait that times out. A process that dies between the two
// leaves a run that the next one continues, and in which nothing contradicts anything.
func TestARunIsWholeBetweenWhatItHeldBackAndAWriteOfItsOwnChange(t *testing.T) {
	for ev, happens := range map[store.Type]func(executes, other *durable.Engine) error{
		store.WorkflowInterrupted: func(executes, _ *durable.Engine) error { return executes.Close() },
		store.WorkflowPaused: func(_, other *durable.Engine) error {
			return other.Pause(context.Background(), "r", "")
		},
		store.WaitTimedOut: func(_, _ *durable.Engine) error { return nil },
	} {
		t.Run(string(ev), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
					waits := durable.Go(ctx, "waits", func(ctx context.Context) (int, error) {
						if ev != store.WaitTimedOut {
							return 0, nil
						}
						return durable.Await[int](ctx, "never", durable.Timeout(20*time.Second))
					})
					if err := durable.Sleep(ctx, 10*time.Second); err != nil {
						return 0, err
					}
					time.Sleep(20 * time.Second) // no call, so nothing is written
					_, _ = waits.Wait(ctx)
					return 7, nil
				})
				o := with(wf)
				o.Grace = time.Minute
				w.boot(t, o)
				start(t, w, wf, "r", 0)
				pass(15 * time.Second)
				executes := w.eng
				w.disk.cutBefore(ev)
				require.NoError(t, happens(executes, w.open(t, durable.Options{})))
				pass(20 * time.Second)
				require.Equal(t, store.TimerFired, w.row("r").Last.Type)
				found, err := operate.On(w.eng).Verify(w.ctx(), "r")
				require.NoError(t, err)
				require.Empty(t, found.Findings)
				w.left.Go(func() { _ = executes.Close() })
				w.expire()
				report := w.boot(t, o)
				if ev == store.WorkflowPaused {
					require.NoError(t, w.eng.Unpause(w.ctx(), "r"))
				}
				stuck := slices.DeleteFunc(report.Stuck, func(s durable.Stuck) bool { // it may have carried out the pause by then
					return ev == store.WorkflowPaused && s.Code == "paused"
				})
				require.Empty(t, stuck)
				require.Empty(t, report.Repaired)
				got, err := wait(t, w, wf, "r")
				require.NoError(t, err)
				require.Equal(t, 7, got)
				require.NotContains(t, w.story("r"), string(store.WorkflowRecovered))
			})
		})
	}
}
