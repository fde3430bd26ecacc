package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

const day = 24 * time.Hour

func quick(name string) *durable.Workflow[int, int] {
	return durable.Define(name, func(ctx context.Context, in int) (int, error) {
		if in < 0 {
			return 0, durable.Permanent(errors.New("negative"))
		}
		return durable.Step(ctx, "s", func(context.Context) (int, error) { return in, nil })
	})
}

// ids lists all runs, oldest first.
func (w *world) ids() []string {
	w.t.Helper()
	page, err := w.data.List(context.Background(), store.Filter{OldestFirst: true, Limit: 1000})
	require.NoError(w.t, err)
	ids := []string{}
	for _, r := range page.Runs {
		ids = append(ids, r.ID)
	}
	return ids
}

func clean(t *testing.T, w *world, o operate.CleanOptions) operate.Cleaned {
	t.Helper()
	c, err := operate.On(w.eng).Clean(context.Background(), o)
	require.NoError(t, err)
	return c
}

func TestWithoutRetentionNothingIsEverDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := quick("w")
		o := with(wf)
		o.Lease = rareBeats
		w.boot(t, o)
		_, err := run(t, w, wf, "r", 1)
		require.NoError(t, err)
		pass(60 * day)
		require.Equal(t, operate.Cleaned{}, clean(t, w, operate.CleanOptions{}))
		require.Equal(t, []string{"r"}, w.ids())
	})
}

func TestAWeekAfterItsEndARunIsDeletedAsAWhole(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := quick("w")
		slow := durable.Define("slow", func(ctx context.Context, in int) (int, error) {
			return 0, durable.Sleep(ctx, 365*day)
		})
		o := with(wf, slow)
		o.Retention, o.Lease = durable.Retention{KeepFor: 7 * 24 * time.Hour}, rareBeats
		w.boot(t, o)
		start(t, w, slow, "slow", 1)
		_, err := run(t, w, wf, "old", 1)
		require.NoError(t, err)
		_, err = run(t, w, wf, "failed", -1)
		require.Error(t, err)
		pass(3 * day)
		_, err = run(t, w, wf, "young", 1)
		require.NoError(t, err)
		pass(4*day - time.Minute)
		require.Len(t, w.ids(), 4)
		pass(2 * time.Hour)
		require.Equal(t, []string{"slow", "young"}, w.ids())
		_, err = w.data.Load(context.Background(), "old", store.Cursor{})
		require.ErrorIs(t, err, store.ErrNotFound)
		pass(4 * day)
		require.Equal(t, []string{"slow"}, w.ids(), "what has not ended is kept, however old")
		_, err = run(t, w, wf, "old", 2)
		require.NoError(t, err, "the id is free again")
	})
}

func TestRetentionCountsPerWorkflowAndKeepsTheFailed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := quick("a"), quick("b"), quick("c")
		w.boot(t, with(a, b, c))
		for i := range 5 {
			for _, wf := range []*durable.Workflow[int, int]{a, b, c} {
				in := i
				if i == 0 {
					in = -1
				}
				_, _ = run(t, w, wf, fmt.Sprintf("%s%d", wf.Name(), i), in)
				pass(time.Second)
			}
		}
		keep := durable.Retention{KeepCount: 2, KeepFailed: true, PerWorkflow: map[string]durable.Retention{"b": {KeepFor: time.Hour}, "c": {}}}
		dry := clean(t, w, operate.CleanOptions{Retention: &keep, DryRun: true})
		require.ElementsMatch(t, []string{"a1", "a2"}, dry.IDs)
		require.Len(t, w.ids(), 15, "a dry run deletes nothing")
		var told []string
		got := clean(t, w, operate.CleanOptions{Retention: &keep, Progress: func(ids []string) { told = append(told, ids...) }})
		require.Equal(t, operate.Cleaned{Runs: 2, Kept: 13}, got)
		require.ElementsMatch(t, dry.IDs, told)
		pass(2 * time.Hour)
		got = clean(t, w, operate.CleanOptions{Retention: &keep})
		require.Equal(t, 5, got.Runs)
		require.Equal(t, []string{"a0", "c0", "c1", "c2", "a3", "c3", "a4", "c4"}, w.ids())
		got = clean(t, w, operate.CleanOptions{All: true, Statuses: []store.Status{store.Completed}, Workflows: []string{"c"}})
		require.Equal(t, 4, got.Runs)
		require.Equal(t, []string{"a0", "c0", "a3", "a4"}, w.ids())
		got = clean(t, w, operate.CleanOptions{All: true})
		require.Equal(t, 4, got.Runs)
		require.Empty(t, w.ids())
	})
}

func TestAChildIsKeptAsLongAsItsParent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leaf, h := quick("leaf"), &hold{}
		mid := durable.Define("mid", func(ctx context.Context, in int) (int, error) { return leaf.Run(ctx, durable.AutoID, in) })
		top := durable.Define("top", func(ctx context.Context, in int) (int, error) {
			if _, err := mid.Run(ctx, durable.AutoID, in); err != nil {
				return 0, err
			}
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.boot(t, with(leaf, mid, top))
		start(t, w, top, "p", 1)
		synctest.Wait()
		require.Len(t, w.ids(), 3)
		got := clean(t, w, operate.CleanOptions{All: true})
		require.Equal(t, operate.Cleaned{Kept: 2}, got, "the parent has not ended")
		w.reboot(t, with(leaf, mid, top))
		_, err := finish(t, w, top, "p")
		require.NoError(t, err)
		dry := clean(t, w, operate.CleanOptions{All: true, DryRun: true})
		require.Equal(t, []string{"p", "p/mid", "p/mid/leaf"}, dry.IDs, "parents first")
		got = clean(t, w, operate.CleanOptions{All: true})
		require.Equal(t, operate.Cleaned{Runs: 3}, got)
		require.Empty(t, w.ids())
	})
}

func TestACleanupThatDiesLeavesWholeRunsAndIsGoneOnWith(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := quick("w")
		w.boot(t, with(wf))
		for i := range 250 {
			start(t, w, wf, fmt.Sprint(i), i)
		}
		synctest.Wait()
		batches := 0
		ctx, cancel := context.WithCancel(context.Background())
		_, err := operate.On(w.eng).Clean(ctx, operate.CleanOptions{All: true, Progress: func(ids []string) {
			if batches++; batches == 2 {
				cancel()
			}
		}})
		require.Error(t, err)
		require.Len(t, w.ids(), 50)
		for v, err := range operate.On(w.eng).VerifyAll(context.Background(), store.Filter{}) {
			require.NoError(t, err)
			require.Empty(t, v.Findings)
		}
		w.reboot(t, with(wf))
		require.Equal(t, 50, clean(t, w, operate.CleanOptions{All: true}).Runs)
	})
}

func TestARunThatIsResumedWhileOthersAreDeletedStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &hold{}
		tries := 0
		wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
			if tries++; tries <= 3 {
				return 0, errors.New("not yet")
			}
			return 0, durable.Do(ctx, "hold", h.body)
		})
		w.boot(t, with(wf))
		for i := range 3 {
			_, err := run(t, w, wf, fmt.Sprint(i), i)
			require.Error(t, err)
		}
		resume := true
		w.disk.tamperCalls(func(call string, forward func() error) error {
			err := forward()
			if call == "list" && resume {
				resume = false
				require.NoError(t, second(operate.On(w.eng).Resume(context.Background(), "1", operate.ResumeOptions{Force: true})))
			}
			return err
		})
		got := clean(t, w, operate.CleanOptions{All: true})
		require.Equal(t, operate.Cleaned{Runs: 2, Kept: 1}, got)
		require.Equal(t, []string{"1"}, w.ids())
	})
}

// late is a store on which something happens just before a deletion.
type late struct {
	store.Store
	before func()
}

func (s *late) Delete(ctx context.Context, d store.Deletion) (int, error) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.Store.Delete(ctx, d)
}

func TestANewRunUnderAnOldIDIsNotTakenForTheOldOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		wf := quick("w")
		w.boot(t, with(wf))
		for _, id := range []string{"r", "other"} {
			_, err := run(t, w, wf, id, 1)
			require.NoError(t, err)
		}
		pass(day)
		s := &late{Store: w.data.Handle(), before: func() {
			_, err := w.data.Delete(context.Background(), store.Deletion{RunIDs: []string{"r"}})
			require.NoError(t, err)
			_, err = run(t, w, wf, "r", 2) // and it has ended, too
			require.NoError(t, err)
		}}
		cleaner, err := durable.Open(context.Background(), s, durable.Options{Logger: slog.New(w.log)})
		require.NoError(t, err)
		c, err := operate.On(cleaner).Clean(context.Background(), operate.CleanOptions{Retention: &durable.Retention{KeepFor: time.Hour}})
		require.NoError(t, err)
		require.NoError(t, cleaner.Close())
		require.Equal(t, operate.Cleaned{Runs: 1, Kept: 1}, c)
		require.Equal(t, []string{"r"}, w.ids())
		out, err := wait(t, w, wf, "r")
		require.NoError(t, err)
		require.Equal(t, 2, out)
	})
}

func TestRetentionThatMakesNoSenseIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, r := range []durable.Retention{{KeepFor: -1}, {KeepCount: -1}, {PerWorkflow: map[string]durable.Retention{"w": {KeepFor: -1}}}} {
			_, err := durable.Open(context.Background(), w.data, durable.Options{Retention: r})
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
		w.open(t, durable.Options{})
		_, err := operate.On(w.eng).Clean(context.Background(), operate.CleanOptions{All: true, Statuses: []store.Status{store.Running}})
		require.ErrorIs(t, err, durable.ErrInvalid)
	})
}
