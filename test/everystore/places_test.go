package everystore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

// Of the runs that a dead process has left, and of those that were stopped, no more
// are executed at once than there are places, and all come to their end.
func TestRecoverGoesOnWithAsManyRunsAsThereArePlacesOnAnyStore(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		var mu sync.Mutex
		now, most, held := 0, 0, true
		wf := durable.Define("w", func(ctx context.Context, n int) (int, error) {
			return n, durable.Do(ctx, "work", func(ctx context.Context) error {
				mu.Lock()
				hold := held
				now++
				most = max(most, now)
				mu.Unlock()
				defer func() {
					mu.Lock()
					now--
					mu.Unlock()
				}()
				if hold {
					<-ctx.Done()
					return ctx.Err()
				}
				time.Sleep(moment)
				return nil
			})
		})
		begin := func(p program, ids ...string) {
			for _, id := range ids {
				_, err := wf.Start(p, id, 1)
				require.NoError(t, err)
				d.awaits(t, id, store.Running)
			}
		}
		stopped := d.program(t, wf)
		begin(stopped, "s0", "s1", "s2")
		require.NoError(t, stopped.eng.Close())

		st, err := d.open()
		require.NoError(t, err)
		dead := newProcess(st, "k0", nil, func() {})
		lease := durable.MinLease
		if b.tellsAtOnce {
			lease = longLease
		}
		p := openProgram(t, dead, durable.Options{Workflows: []durable.Definition{wf}, Lease: lease})
		begin(p, "k0", "k1", "k2")
		dead.alive(dead.die)
		require.NoError(t, p.eng.Close())
		require.NoError(t, st.Close())
		d.gone(t, b)
		mu.Lock()
		held, most = false, 0
		mu.Unlock()

		again, err := d.open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, again.Close()) })
		q := openProgram(t, again, durable.Options{Workflows: []durable.Definition{wf}, Lease: longLease, MaxRuns: 2})
		rep, err := durable.Recover(q)
		require.NoError(t, err)
		require.Empty(t, rep.Stuck)
		require.Equal(t, []string{"k0", "k1"}, rep.Resumed)
		require.ElementsMatch(t, []string{"k2", "s0", "s1", "s2"}, rep.Deferred)
		for i := range 3 {
			d.awaits(t, fmt.Sprint("k", i), store.Completed)
			d.awaits(t, fmt.Sprint("s", i), store.Completed)
		}
		require.LessOrEqual(t, most, 2)
	})
}
