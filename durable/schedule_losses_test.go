package durable_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestAFireFindsTheRunBeforeHoweverManyRunsWereTriggeredSince(t *testing.T) {
	for name, c := range map[string]struct {
		long   string // the run that the fire is to find, by the beginning of its id
		others time.Duration
	}{
		"the run of a fire": {"s@2000", 0}, "the run of a fire, while many are under way": {"s@2000", 40 * time.Minute}, "a triggered run": {"s@now-first", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				flow := durable.Define("tick", func(ctx context.Context, _ time.Duration) (string, error) {
					if strings.HasPrefix(durable.RunID(ctx), c.long) {
						return "", durable.Sleep(ctx, 90*time.Minute)
					}
					return "", durable.Sleep(ctx, c.others)
				})
				w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
				pass(time.Hour + time.Second)
				op := operate.On(w.eng)
				_, err := op.TriggerSchedule(context.Background(), "s", "first")
				require.NoError(t, err)
				for i := range 150 {
					_, err := op.TriggerSchedule(context.Background(), "s", fmt.Sprint(i))
					require.NoError(t, err)
					pass(time.Millisecond) // it ends
				}
				pass(time.Hour)
				require.NotContains(t, w.scheduled("s"), "2000-01-01T02:00:00Z")
				require.Equal(t, int64(1), w.schedule("s").Skipped)
				pass(time.Hour)
				require.Contains(t, w.scheduled("s"), "2000-01-01T03:00:00Z")
			})
		})
	}
}

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

// A fire that had come before the pause, and is late by its jitter, is made if the pause ends before its moment.
func TestAFireIsNotLostBecauseItsScheduleWasPausedForAMoment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour).Jitter(59*time.Minute), 0)))
		op, ctx := operate.On(w.eng), context.Background()
		for hour := 1; hour < 20; hour++ {
			pass(time.Until(time.Date(2000, 1, 1, hour, 0, 1, 0, time.UTC)))
			require.NoError(t, op.PauseSchedule(ctx, "s", ""))
			pass(time.Second)
			require.NoError(t, op.ResumeSchedule(ctx, "s"))
		}
		pass(59 * time.Minute)
		require.Len(t, w.scheduled("s"), 19, "one of each hour")
		require.NoError(t, op.PauseSchedule(ctx, "s", ""))
		pass(10 * time.Hour)
		require.NoError(t, op.ResumeSchedule(ctx, "s"))
		pass(time.Second)
		require.Len(t, w.scheduled("s"), 19, "none of the times of a pause")
	})
}
