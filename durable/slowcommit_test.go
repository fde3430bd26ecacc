package durable_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// A store that is slow for what one branch has recorded holds up that branch, and
// no body of another: neither one that is under way nor one that begins. What the
// others record meanwhile waits in line and shares the next commit.
func TestASlowCommitOfOneBranchDoesNotHoldTheBodiesOfAnother(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		began := time.Now()
		var mu sync.Mutex
		at := map[string]time.Duration{}
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			at[what] = time.Since(began)
		}
		mark := func(name string, took time.Duration) func(context.Context) error {
			return func(context.Context) error {
				note(name + " begins")
				time.Sleep(took)
				note(name + " ends")
				return nil
			}
		}
		wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
			slow := durable.Go(ctx, "slow", func(ctx context.Context) (int, error) {
				err := durable.Do(ctx, "a", mark("a", time.Second))
				note("a is durable")
				return 0, err
			})
			long := durable.Go(ctx, "long", func(ctx context.Context) (int, error) {
				return 0, durable.Do(ctx, "b", mark("b", 5*time.Second))
			})
			late := durable.Go(ctx, "late", func(ctx context.Context) (int, error) {
				time.Sleep(2 * time.Second) // code of its own: the commit of a hangs by now
				return 0, durable.Do(ctx, "c", mark("c", time.Second))
			})
			for _, f := range []*durable.Future[int]{slow, long, late} {
				if _, err := f.Wait(ctx); err != nil {
					return 0, err
				}
			}
			return 1, nil
		})
		w.serve(t, wf)
		commits := 0
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
			for _, c := range batch {
				completes := func(key string) bool {
					return slices.ContainsFunc(c.Events, func(e store.Event) bool { return e.Key == key && e.Type == store.StepCompleted })
				}
				if completes("slow/a") {
					time.Sleep(time.Minute)
				}
				if completes("long/b") || completes("late/c") {
					commits++
				}
			}
			return forward()
		})
		out, err := run(t, w, wf, "r", 0)
		require.NoError(t, err)
		require.Equal(t, 1, out)
		require.Equal(t, map[string]time.Duration{
			"a begins": 0, "a ends": time.Second, "a is durable": 61 * time.Second,
			"b begins": 0, "b ends": 5 * time.Second,
			"c begins": 2 * time.Second, "c ends": 3 * time.Second,
		}, at)
		require.Equal(t, 1, commits, "what was to be recorded meanwhile shares a commit")
		w.events("r")
	})
}
