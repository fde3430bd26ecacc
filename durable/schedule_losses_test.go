package durable_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAFireIsMadeThoughTheStoreHasSaidOnceThatItIsDamaged(t *testing.T) {
	for name, said := range map[string]error{"damaged": store.ErrCorrupt, "of a newer program": store.ErrSchema} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				flow := ticking()
				w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
				var once atomic.Bool
				w.disk.tamper(func(batch []store.Change, forward func() []error) []error {
					if batch[0].Create != nil && !once.Swap(true) {
						return all(batch, said)
					}
					return forward()
				})
				pass(time.Hour + time.Minute)
				require.True(t, once.Load())
				require.Equal(t, []string{"2000-01-01T01:00:00Z"}, w.scheduled("s"))
				require.Zero(t, w.schedule("s").Refused)
			})
		})
	}
}

func TestStartAllStopsWhereTheStoreSaysThatItIsDamaged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, with(flow))
		w.disk.tamper(func(batch []store.Change, forward func() []error) []error { return all(batch, store.ErrCorrupt) })
		three := func(yield func(string, time.Duration) bool) {
			for i := range 3 {
				if !yield(fmt.Sprint("r", i), 0) {
					return
				}
			}
		}
		bulk, err := flow.StartAll(w.ctx(), three)
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.Empty(t, bulk.Refused, "that says nothing about the items")
		w.disk.tamper(nil)
		bulk, err = flow.StartAll(w.ctx(), three)
		require.NoError(t, err)
		require.Equal(t, 3, bulk.Started)
	})
}
