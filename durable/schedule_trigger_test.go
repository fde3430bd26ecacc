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
