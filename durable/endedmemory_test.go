package durable_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// slowDisk takes a moment for each batch, so that runs share one.
type slowDisk struct{ store.Store }

func (d slowDisk) Commit(ctx context.Context, batch []store.Change) []error {
	time.Sleep(2 * time.Millisecond)
	return d.Store.Commit(ctx, batch)
}

// A run that has ended is not kept, with its history and all that its code has registered, because
// it once shared a commit with many others.
func TestWhatRunsHeldIsFreedOnceTheyHaveEnded(t *testing.T) {
	const runs = 40
	var freed atomic.Int64
	var together sync.WaitGroup
	together.Add(runs)
	wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
		if n < 0 {
			return n, nil
		}
		held := new([1 << 10]byte)
		runtime.AddCleanup(held, func(int) { freed.Add(1) }, 0)
		if err := durable.Compensate(ctx, "undo", func(context.Context) error { held[0]++; return nil }); err != nil {
			return 0, err
		}
		return durable.Step(ctx, "a", func(context.Context) (int, error) {
			together.Done()
			together.Wait()
			return n, nil
		})
	})
	eng, err := durable.Open(t.Context(), slowDisk{memory.Open()}, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(t, err)
	defer eng.Close()
	ctx := durable.NewContext(t.Context(), eng)
	var all sync.WaitGroup
	for n := range runs {
		all.Go(func() {
			if _, err := wf.Run(ctx, fmt.Sprint("r", n), n); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	_, err = wf.Run(ctx, "later", -1)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		runtime.GC()
		return freed.Load() == runs
	}, time.Minute, 10*time.Millisecond)
}
