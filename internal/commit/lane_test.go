package commit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
)

const (
	small = 100
	large = 200 << 10
)

func isLarge(batch []store.Change) bool {
	for i := range batch {
		if batch[i].Size() > large {
			return true
		}
	}
	return false
}

func TestASmallWriteDoesNotWaitForALargeOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		s.answer = func(batch []store.Change) (bool, error) {
			if isLarge(batch) {
				time.Sleep(900 * time.Millisecond) // nobody relieves its leader
			}
			return true, nil
		}
		o := newOffice(s)
		defer o.end()
		ctx := context.Background()
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { require.NoError(t, o.Commit(ctx, o.run(fmt.Sprintf("large-%d", i)), write("a", large))) })
		}
		synctest.Wait()
		began := time.Now()
		for i := range 10 {
			require.NoError(t, o.Commit(ctx, o.run(fmt.Sprintf("small-%d", i)), write("a", small)))
		}
		require.Zero(t, time.Since(began))
		all.Wait()
		for _, runs := range s.batches {
			require.Len(t, runs, 1, "nothing is added to a large change that would hold it up")
		}
	})
}

func TestWhatARunWritesAfterSomethingLargeComesAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(4)
		s.answer = func([]store.Change) (bool, error) { time.Sleep(time.Millisecond); return true, nil }
		o := newOffice(s)
		defer o.end()
		ctx := context.Background()
		run := o.run("r")
		var all sync.WaitGroup
		var want []string
		for i, bytes := range []int{small, large, small, small, large, large, small} {
			key := fmt.Sprint(i)
			want = append(want, key)
			all.Go(func() { require.NoError(t, o.Commit(ctx, run, write(key, bytes))) })
			synctest.Wait() // it has its place
		}
		all.Wait()
		require.NoError(t, s.broken)
		require.Equal(t, want, s.keys("r"))
	})
}

func TestWhatBecomesLargeInTheQueueLeavesIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(1)
		s.answer = func(batch []store.Change) (bool, error) {
			time.Sleep(time.Millisecond)
			if isLarge(batch) {
				time.Sleep(900 * time.Millisecond)
			}
			return true, nil
		}
		o := newOffice(s)
		defer o.end()
		ctx := context.Background()
		began := time.Now()
		var all, few sync.WaitGroup
		few.Go(func() { require.NoError(t, o.Commit(ctx, o.run("first"), write("a", small))) })
		synctest.Wait() // the next ones are queued
		grows := o.run("grows")
		all.Go(func() { require.NoError(t, o.Commit(ctx, grows, write("a", small))) })
		synctest.Wait()
		few.Go(func() { require.NoError(t, o.Commit(ctx, o.run("other"), write("a", small))) })
		synctest.Wait()
		all.Go(func() { require.NoError(t, o.Commit(ctx, grows, write("b", large))) })
		few.Wait()
		require.LessOrEqual(t, time.Since(began), 2*time.Millisecond)
		all.Wait()
		require.Equal(t, []string{"a", "b"}, s.keys("grows"))
	})
}

func TestManyRunsCommitAtATimeWhereThatHelps(t *testing.T) {
	t.Parallel()
	took := map[int]time.Duration{}
	for _, parallel := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			s := newLogs(parallel)
			s.answer = func(batch []store.Change) (bool, error) {
				time.Sleep(time.Millisecond + time.Duration(len(batch))*100*time.Microsecond)
				return true, nil
			}
			o := newOffice(s)
			defer o.end()
			began := time.Now()
			o.tenEach(t, 64)
			require.NoError(t, s.broken)
			took[parallel] = time.Since(began)
			require.Equal(t, parallel, s.most)
			require.Less(t, len(s.batches), 64, "runs share commits")
		})
	}
	require.Less(t, took[4], took[1]/2)
}

func TestFewRunsShareOneCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newLogs(4)
		s.answer = func([]store.Change) (bool, error) { time.Sleep(time.Millisecond); return true, nil }
		o := newOffice(s)
		defer o.end()
		o.tenEach(t, 8)
		require.Equal(t, 1, s.most)
	})
}
