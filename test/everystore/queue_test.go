package everystore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// counting sees how many bodies are executed at once, by partition.
type counting struct {
	mu   sync.Mutex
	now  map[string]int
	most map[string]int
}

func (c *counting) enter(keys ...string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		c.now, c.most = map[string]int{}, map[string]int{}
	}
	for _, k := range keys {
		c.now[k]++
		c.most[k] = max(c.most[k], c.now[k])
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range keys {
			c.now[k]--
		}
	}
}

// Three engines, each on a handle of its own, share a queue with limits. The bodies see that they hold,
// and the beginnings that the rate does.
func TestTheLimitsOfAQueueHoldOverEnginesOnEveryStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		const runs, limit, perPartition, here, rate, per = 24, 3, 2, 2, 4, 600 * time.Millisecond
		var all counting
		var programs []program
		var wf *durable.Workflow[int, int]
		for i := range 3 {
			wf = durable.Define("queued", func(ctx context.Context, n int) (int, error) {
				return n, durable.Do(ctx, "body", func(ctx context.Context) error {
					defer all.enter("all", fmt.Sprint("engine ", i), "of "+durable.Headers(ctx)["part"])()
					select {
					case <-time.After(20 * time.Millisecond):
					case <-ctx.Done():
					}
					return ctx.Err()
				})
			})
			st, err := d.open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, st.Close()) })
			programs = append(programs, runProgram(t, st, durable.Options{
				Workflows: []durable.Definition{wf}, Lease: longLease,
				Queues: []durable.Queue{{Name: "q", Max: limit, MaxPerPartition: perPartition, MaxPerProcess: here, Rate: rate, Per: per}},
			}))
		}
		var ids []string
		for i := range runs {
			part := fmt.Sprint(i % 3)
			id := fmt.Sprint("r", i)
			_, err := wf.Enqueue(programs[i%3], id, i, durable.OnQueue("q"), durable.Partition(part), durable.Header("part", part))
			require.NoError(t, err)
			ids = append(ids, id)
		}
		var begins []store.Time
		for _, id := range ids {
			h, err := wf.Handle(programs[0], id)
			require.NoError(t, err)
			_, err = h.Wait(programs[0])
			require.NoError(t, err)
			begins = append(begins, d.awaits(t, id, store.Completed).StartedAt)
		}
		require.LessOrEqual(t, all.most["all"], limit)
		for i := range 3 {
			require.LessOrEqual(t, all.most[fmt.Sprint("engine ", i)], here)
			require.LessOrEqual(t, all.most[fmt.Sprint("of ", i)], perPartition)
		}
		slices.Sort(begins)
		// The event of a claim has the engine's estimate of the store's time, which a busy machine makes
		// some tens of milliseconds wrong. That hides no burst, and not one run more in each span: the
		// suite asks for the exact rule, by the store's clock.
		for i := rate; i < len(begins); i++ {
			require.GreaterOrEqual(t, begins[i].Sub(begins[i-rate]), per/2)
		}
		require.GreaterOrEqual(t, begins[len(begins)-1].Sub(begins[0]), (runs/rate-1)*per-per/2)
		t.Logf("%d runs through a queue of %d, %d in %s: %s", runs, limit, rate, per, begins[len(begins)-1].Sub(begins[0]))
	})
}

// What a start says of its place in line is kept and heeded by every store.
func TestStartsGetInLineOnEveryStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		var mu sync.Mutex
		var inputs []int
		wf := durable.Define("line", func(ctx context.Context, n int) (int, error) {
			return durable.Step(ctx, "body", func(context.Context) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				inputs = append(inputs, n)
				return n, nil
			})
		})
		p := d.program(t, wf)
		delayed, err := wf.Enqueue(p, "delayed", 1, durable.Delay(300*time.Millisecond), durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err)
		_, err = wf.Start(p, "second", 1, durable.OnQueue("q"), durable.Dedup("k"))
		var conflict *durable.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, "delayed", conflict.Holder)
		var last *durable.Run[int]
		for i := range 5 {
			h, err := wf.Start(p, durable.AutoID, 100+i, durable.Debounce("k", 200*time.Millisecond, time.Minute))
			require.NoError(t, err)
			if last != nil {
				require.Equal(t, last.ID(), h.ID())
			}
			last = h
		}
		n, err := last.Wait(p)
		require.NoError(t, err)
		require.Equal(t, 104, n)
		_, err = delayed.Wait(p)
		require.NoError(t, err)
		row := d.awaits(t, "delayed", store.Completed)
		require.GreaterOrEqual(t, row.StartedAt.Sub(row.CreatedAt), 290*time.Millisecond)
		_, err = wf.Run(p, "second", 1, durable.OnQueue("q"), durable.Dedup("k"))
		require.NoError(t, err, "the key is free again")
		require.False(t, errors.Is(err, durable.ErrConflict))
		require.Len(t, inputs, 3)
	})
}
