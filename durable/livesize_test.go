//go:build !race

package durable_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// A hundred thousand runs are to be live in one process. The race detector makes stacks
// larger, hence the build constraint.
func TestALiveRunIsSmall(t *testing.T) {
	const runs, mostHeap, mostStack = 1000, 8500, 5000
	release := make(chan struct{})
	var inside sync.WaitGroup
	inside.Add(runs)
	wf := durable.Define("w", func(ctx context.Context, in int) (int, error) {
		return durable.Step(ctx, "a", func(context.Context) (int, error) {
			inside.Done()
			<-release
			return in, nil
		})
	})
	eng, err := durable.Open(t.Context(), memory.Open(), durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet})
	require.NoError(t, err)
	defer eng.Close()
	ctx := durable.NewContext(t.Context(), eng)
	before := memoryInUse()
	for i := range runs {
		_, err := wf.Start(ctx, fmt.Sprintf("r%d", i), i)
		require.NoError(t, err)
	}
	inside.Wait()
	heap, stack := memoryInUse().since(before)
	close(release)
	t.Logf("a live run takes %d bytes of heap and %d of stack", heap/runs, stack/runs)
	require.LessOrEqual(t, heap/runs, mostHeap)
	require.LessOrEqual(t, stack/runs, mostStack)
}

type inUse struct{ heap, stack int }

// memoryInUse returns what is reachable, and what goroutines have as stacks once the
// collector has shrunk them.
func memoryInUse() inUse {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return inUse{int(m.HeapAlloc), int(m.StackInuse)}
}

func (u inUse) since(b inUse) (heap, stack int) { return u.heap - b.heap, u.stack - b.stack }
