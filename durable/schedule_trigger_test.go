package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
)

// A trigger is two writes: the run, and the schedule that watches it. Called again after the
// second has failed, it makes up for it.
func TestATriggerThatIsCutShortAndMadeAgainIsWatchedByItsSchedule(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 90*time.Minute)))
		pass(50 * time.Minute)
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if call == "put schedule" {
				return errors.New("the network is gone")
			}
			return forward()
		})
		_, err := operate.On(w.eng).TriggerSchedule(ctx, "s", "k")
		require.ErrorIs(t, err, durable.ErrUnavailable)
		w.disk.tamperCalls(nil)
		_, err = operate.On(w.eng).TriggerSchedule(ctx, "s", "k")
		require.NoError(t, err)
		_, err = operate.On(w.eng).TriggerSchedule(ctx, "s", "k")
		require.NoError(t, err)
		pass(20 * time.Minute)
		require.Equal(t, []string{"now-k"}, w.scheduled("s"), "the fire of 01:00 finds it live")
		require.Equal(t, int64(1), w.schedule("s").Skipped)
	})
}

// A run in the way of the triggered one is not told as a store that cannot be had, which is
// tried again.
func TestATriggerSaysWhichRunIsInItsWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow, other := ticking(), durable.Define("other", func(context.Context, int) (int, error) { return 1, nil })
		w.boot(t, durable.Options{Workflows: []durable.Definition{flow, other}, Schedules: []durable.Schedule{
			flow.Schedule("s", durable.Every(time.Hour), time.Hour, durable.OnQueue("q"), durable.Dedup("one")),
		}, Queues: []durable.Queue{{Name: "q"}}})
		_, err := flow.Enqueue(w.ctx(), "before", time.Hour, durable.OnQueue("q"), durable.Dedup("one"))
		require.NoError(t, err)
		_, err = operate.On(w.eng).TriggerSchedule(w.ctx(), "s", "k")
		var conflict *durable.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, "before", conflict.Holder)
		require.ErrorIs(t, err, durable.ErrOccupied, "as Start and TriggerSchedule say")
		require.NotErrorIs(t, err, durable.ErrUnavailable)

		_, err = other.Start(w.ctx(), "s@now-k", 1)
		require.NoError(t, err)
		_, err = operate.On(w.eng).TriggerSchedule(w.ctx(), "s", "k")
		require.ErrorAs(t, err, &conflict)
		require.NotErrorIs(t, err, durable.ErrOccupied)
		require.NotErrorIs(t, err, durable.ErrUnavailable)
	})
}
