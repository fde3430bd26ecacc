package everystore_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// waiters is how many runs wait when their engine is closed.
const waiters = 2000

// waiter waits in one of several ways, as its input says.
var waiter = durable.Define("waiter", func(ctx context.Context, n int) (string, error) {
	await := func(ctx context.Context) (string, error) { return durable.Await[string](ctx, "letter") }
	switch n % 4 {
	case 0:
		return await(ctx)
	case 1:
		return "slept", durable.Sleep(ctx, 1000*time.Hour)
	case 2: // in two branches
		slow := durable.Go(ctx, "slow", func(ctx context.Context) (string, error) {
			return "slow", durable.Sleep(ctx, 1000*time.Hour)
		})
		_, v, err := durable.First(ctx, "first", slow, durable.Go(ctx, "letter", await))
		return v, err
	}
	return durable.Await[string](ctx, "letter", durable.Prompt("May I?"), durable.Timeout(1000*time.Hour))
})

// engineGoroutines counts goroutines that execute code of the engine.
func engineGoroutines() int { return len(engineStacks()) }

// engineStacks returns what they are doing.
func engineStacks() []string {
	buf := make([]byte, 64<<20)
	stacks := string(buf[:runtime.Stack(buf, true)])
	var of []string
	for g := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(g, "holdfast/durable.") && !strings.Contains(g, "everystore_test.Test") {
			of = append(of, g)
		}
	}
	return of
}

// noEngineGoroutine is for a moment at which no engine is open. A goroutine may
// still be about to end that has said that it has: who leaks stays.
func noEngineGoroutine(t *testing.T) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(moment) {
		left := engineStacks()
		if len(left) == 0 {
			return
		}
		require.Less(t, time.Since(began), 5*time.Second, "of the closed engine:\n%s", strings.Join(left, "\n\n"))
	}
}

// startWaiters starts so many of them, and returns once all of them wait.
func (d *data) startWaiters(t *testing.T, p program, count int) {
	t.Helper()
	began := time.Now()
	var starts sync.WaitGroup
	for i := range 50 {
		starts.Go(func() {
			for n := i; n < count; n += 50 {
				if _, err := waiter.Start(p, fmt.Sprintf("r%04d", n), n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	starts.Wait()
	for {
		counts, err := d.outside.Count(context.Background(), store.Filter{}, store.ByStatus)
		require.NoError(t, err)
		if counts[string(store.Waiting)] == int64(count) {
			break
		}
		require.Less(t, time.Since(began), 2*patience, "%v", counts)
		time.Sleep(5 * moment)
	}
}

func TestCloseLeavesNoGoroutineOfThousandsOfWaitingRuns(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		p := d.program(t, waiter)
		began := time.Now()
		d.startWaiters(t, p, waiters)
		t.Logf("%d runs wait after %s, with %d goroutines", waiters, time.Since(began), engineGoroutines())

		began = time.Now()
		require.NoError(t, p.eng.Close())
		took := time.Since(began)
		t.Logf("closed in %s", took)
		require.Less(t, took, 10*time.Second)
		noEngineGoroutine(t)

		// They wait on without anybody, and go on with another engine.
		counts, err := d.outside.Count(context.Background(), store.Filter{}, store.ByStatus)
		require.NoError(t, err)
		require.Equal(t, map[string]int64{string(store.Waiting): waiters}, counts)
		q := d.program(t, waiter)
		for _, n := range []int{0, 2, 3, waiters - 1} {
			id := fmt.Sprintf("r%04d", n)
			require.NoError(t, durable.Signal(q, id, "letter", "x"))
			h, err := waiter.Handle(q, id)
			require.NoError(t, err)
			out, err := h.Wait(q)
			require.NoError(t, err)
			require.Equal(t, "x", out)
		}
	})
}

// lodgers is how many runs are unloaded when their engine is closed.
const lodgers = 5000

// inUse returns what is in use by heap and stacks, in bytes.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

func TestThousandsOfUnloadedRunsHaveNoGoroutineAndHardlyAnyMemory(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		p := d.unloading(t, waiter)
		idle, before, began := engineGoroutines(), inUse(), time.Now()
		d.startWaiters(t, p, lodgers)
		for engineGoroutines() > idle+10 { // the engine's own loops come and go
			require.Less(t, time.Since(began), 2*patience, "%d goroutines", engineGoroutines())
			time.Sleep(5 * moment)
		}
		each := (inUse() - before) / lodgers
		t.Logf("%d runs are unloaded after %s: %d bytes each, the store's included", lodgers, time.Since(began), each)
		if b.name != "memory" { // which holds their histories as well
			require.Less(t, each, int64(2000))
		}
		began = time.Now()
		require.NoError(t, p.eng.Close())
		took := time.Since(began)
		t.Logf("closed in %s", took)
		require.Less(t, took, 5*time.Second)
		noEngineGoroutine(t)

		counts, err := d.outside.Count(context.Background(), store.Filter{}, store.ByStatus)
		require.NoError(t, err)
		require.Equal(t, map[string]int64{string(store.Waiting): lodgers}, counts)
	})
}
