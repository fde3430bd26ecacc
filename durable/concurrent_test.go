package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A shaky store fails some commits, before or after doing them, and takes its
// time, so that other runs queue up behind the commit under way.
type shaky struct {
	store.Store
	mu      sync.Mutex
	rnd     *rand.Rand
	batches []int
}

func (s *shaky) Commit(ctx context.Context, batch []store.Change) []error {
	s.mu.Lock()
	dice := s.rnd.IntN(10)
	s.batches = append(s.batches, len(batch))
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	errs := make([]error, len(batch))
	switch dice {
	case 0: // nothing happened, and the caller is told so
		for i := range errs {
			errs[i] = errors.New("disk on fire")
		}
		return errs
	case 1: // it happened, and the reply was lost
		s.Store.Commit(ctx, batch)
		for i := range errs {
			errs[i] = fmt.Errorf("reply lost: %w", store.ErrUnknown)
		}
		return errs
	case 2: // half of the members did not make it
		half := len(batch) / 2
		copy(errs, s.Store.Commit(ctx, batch[:half]))
		for i := half; i < len(batch); i++ {
			errs[i] = errors.New("disk on fire")
		}
		return errs
	}
	return s.Store.Commit(ctx, batch)
}

func TestManyRunsOnAShakyStoreShareCommitsAndLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs, steps = 60, 8
		data := memory.Open()
		sh := &shaky{Store: data, rnd: rand.New(rand.NewPCG(1, 2))}
		wf := durable.Define("count", func(ctx context.Context, in int) (int, error) {
			sum := 0
			for range steps {
				n, err := durable.Step(ctx, "add", func(ctx context.Context) (int, error) { return in, nil })
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		})
		eng, err := durable.Open(t.Context(), sh, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)
		var wg sync.WaitGroup
		failures := make(chan error, runs)
		for i := range runs {
			wg.Go(func() {
				// A start that the store refuses is simply made again: it is
				// idempotent.
				for {
					out, err := wf.Run(ctx, fmt.Sprint("r", i), i)
					if errors.Is(err, durable.ErrUnavailable) {
						continue
					}
					if err != nil || out != i*steps {
						failures <- fmt.Errorf("run %d: %d, %w", i, out, err)
					}
					return
				}
			})
		}
		wg.Wait()
		close(failures)
		for err := range failures {
			t.Error(err)
		}
		for i := range runs {
			n := 0
			for ev, err := range eng.History(ctx, fmt.Sprint("r", i)) {
				require.NoError(t, err)
				n++
				require.EqualValues(t, n, ev.Seq)
			}
			require.Equal(t, steps+3, n)
		}
		largest := 0
		for _, b := range sh.batches {
			largest = max(largest, b)
		}
		require.Greater(t, largest, runs/4, "commits were not shared")
		require.Less(t, len(sh.batches), runs*(steps+3)/3, "commits were not shared")
		require.NoError(t, eng.Close())
	})
}

func TestAStartWhoseCallerLeavesIsExecutedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowStore{Store: memory.Open()}
		wf := durable.Define("w", func(ctx context.Context, in int) (int, error) { return in * 2, nil })
		eng, err := durable.Open(t.Context(), slow, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx := durable.NewContext(t.Context(), eng)
		var wg sync.WaitGroup
		left := 0
		for i := range 10 {
			wg.Go(func() {
				// The first one begins a commit, the others queue behind it: all
				// of them can leave.
				short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
				defer stop()
				time.Sleep(time.Duration(i) * time.Microsecond)
				if _, err := wf.Start(short, fmt.Sprint("r", i), i); errors.Is(err, context.DeadlineExceeded) {
					slow.mu.Lock()
					left++
					slow.mu.Unlock()
				}
			})
		}
		wg.Wait()
		require.Equal(t, 10, left)
		for i := range 10 {
			h, err := wf.Handle(ctx, fmt.Sprint("r", i))
			require.NoError(t, err)
			var out int
			require.Eventually(t, func() bool { out, err = h.Wait(ctx); return !errors.Is(err, durable.ErrNotFound) }, time.Minute, time.Millisecond)
			require.NoError(t, err)
			require.Equal(t, 2*i, out)
		}
		require.NoError(t, eng.Close())
	})
}

type slowStore struct {
	store.Store
	mu sync.Mutex
}

func (s *slowStore) Commit(ctx context.Context, batch []store.Change) []error {
	time.Sleep(time.Second)
	return s.Store.Commit(ctx, batch)
}
