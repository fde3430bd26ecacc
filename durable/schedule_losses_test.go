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
	"github.com/holdfast-dev/holdfast/store/memory"
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

// What waits for the run before it is not made for a time that has not come.
func TestAFireThatWaitsIsNotMadeEarlyBecauseTheClockWasAhead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var clock jumpy
		clock.by.Store(int64(400 * 24 * time.Hour)) // away from the beginning of time
		w.data = memory.OpenAt(clock.now)
		flow := durable.Define("tick", func(ctx context.Context, d time.Duration) (string, error) {
			return "", durable.Do(ctx, "body", func(ctx context.Context) error {
				select {
				case <-time.After(d): // by no clock that is set
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(10*time.Minute), 25*time.Minute).Overlap(durable.OverlapQueue)))
		pass(15 * time.Minute)
		const year = 365 * 24 * time.Hour
		clock.by.Add(int64(year))
		pass(10 * time.Minute)
		require.NotEmpty(t, w.schedule("s").Held)
		clock.by.Add(-int64(year))
		for range 12 {
			pass(10 * time.Minute)
			for _, id := range w.scheduled("s") {
				at, err := time.Parse(time.RFC3339, id)
				require.NoError(t, err)
				require.False(t, clock.now().Before(at), "%s has not come", id)
			}
		}
		require.Greater(t, len(w.scheduled("s")), 4)
	})
}
