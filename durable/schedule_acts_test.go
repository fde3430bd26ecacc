package durable_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func TestATriggerStartsARunNowOncePerKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 90*time.Minute)))
		require.NoError(t, operate.On(w.eng).PauseSchedule(ctx, "s", ""))
		pass(10 * time.Minute)
		id, err := operate.On(w.eng).TriggerSchedule(ctx, "s", "ticket-7")
		require.NoError(t, err)
		require.Equal(t, "s@now-ticket-7", id)
		pass(time.Minute)
		again, err := operate.On(w.eng).TriggerSchedule(ctx, "s", "ticket-7")
		require.NoError(t, err)
		require.Equal(t, id, again)
		s := w.schedule("s")
		require.Equal(t, int64(1), s.Started, "the same key is the same run")
		require.Equal(t, operate.ScheduleFire{At: time.Date(2000, 1, 1, 0, 10, 0, 0, time.UTC), Outcome: "started", RunID: id, Status: store.Waiting, Reason: "triggered"}, withoutMicros(s.Last[0]))
		require.True(t, s.Paused, "the pause stays")

		require.NoError(t, operate.On(w.eng).ResumeSchedule(ctx, "s"))
		pass(time.Hour)
		require.Equal(t, []string{"now-ticket-7"}, w.scheduled("s"), "the fire of 01:00 finds it live")
		require.Equal(t, int64(1), w.schedule("s").Skipped)
		out, err := wait(t, w, flow, id)
		require.NoError(t, err)
		require.Equal(t, "2000-01-01T00:10:00Z", out, "its time is that of the trigger")

		first, err := operate.On(w.eng).TriggerSchedule(ctx, "s", "")
		require.NoError(t, err)
		second, err := operate.On(w.eng).TriggerSchedule(ctx, "s", "")
		require.NoError(t, err)
		require.NotEqual(t, first, second, "without a key each is another one")
	})
}

func withoutMicros(f operate.ScheduleFire) operate.ScheduleFire {
	f.At = f.At.Truncate(time.Second)
	return f
}

func TestABackfillStartsWhatIsMissingAndNothingElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
		from := time.Date(1999, 12, 31, 21, 0, 0, 0, time.UTC)
		pass(3*time.Hour + 10*time.Minute)
		require.Len(t, w.scheduled("s"), 3)
		did, err := operate.On(w.eng).BackfillSchedule(ctx, "s", from, from.Add(6*time.Hour))
		require.NoError(t, err)
		require.Equal(t, 4, did.Started, "21:00, 22:00, 23:00 and 00:00")
		require.Equal(t, 2, did.Existing, "01:00 and 02:00")
		require.Equal(t, []string{"s@1999-12-31T21:00:00Z", "s@1999-12-31T22:00:00Z", "s@1999-12-31T23:00:00Z", "s@2000-01-01T00:00:00Z"}, did.RunIDs)
		require.Empty(t, did.Refused)
		pass(time.Minute)
		out, err := wait(t, w, flow, "s@1999-12-31T21:00:00Z")
		require.NoError(t, err)
		require.Equal(t, "1999-12-31T21:00:00Z", out)
		again, err := operate.On(w.eng).BackfillSchedule(ctx, "s", from, from.Add(6*time.Hour))
		require.NoError(t, err)
		require.Equal(t, operate.Backfill{Existing: 6, Refused: map[string]error{}}, again)
		require.Len(t, w.scheduled("s"), 7)
		pass(time.Hour)
		require.Len(t, w.scheduled("s"), 8, "and on it goes")

		for says, span := range map[string][2]time.Time{
			"must not be empty": {from, from},
			"must have passed":  {from, time.Now().Add(time.Hour)},
			"first up to":       {from.AddDate(-2, 0, 0), from},
		} {
			_, err := operate.On(w.eng).BackfillSchedule(ctx, "s", span[0], span[1])
			require.ErrorIs(t, err, durable.ErrInvalid)
			require.ErrorContains(t, err, says)
		}
		require.Len(t, w.scheduled("s"), 8)
	})
}

func TestABackfillUnderAnotherInputLeavesTimesThatHaveFiredAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
		pass(2*time.Hour + time.Minute)
		w.reboot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), time.Second)))
		from := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
		did, err := operate.On(w.eng).BackfillSchedule(context.Background(), "s", from, from.Add(61*time.Minute))
		require.NoError(t, err)
		require.Equal(t, operate.Backfill{Existing: 2, Refused: map[string]error{}}, did)
	})
}

func TestADeletedScheduleFiresNoMoreUntilItIsDeclaredAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		flow := ticking()
		o := declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0))
		w.boot(t, o)
		pass(61 * time.Minute)
		require.NoError(t, operate.On(w.eng).DeleteSchedule(ctx, "s"))
		pass(3 * time.Hour)
		require.Len(t, w.scheduled("s"), 1, "its runs stay")
		list, err := operate.On(w.eng).Schedules(ctx)
		require.NoError(t, err)
		require.Empty(t, list)
		for name, err := range map[string]error{
			"list":   listing(ctx, w.eng, "s"),
			"delete": operate.On(w.eng).DeleteSchedule(ctx, "s"),
			"pause":  operate.On(w.eng).PauseSchedule(ctx, "s", ""),
			"resume": operate.On(w.eng).ResumeSchedule(ctx, "s"),
		} {
			require.ErrorIs(t, err, operate.ErrScheduleNotFound, name)
			require.ErrorContains(t, err, `"s"`)
		}
		_, err = operate.On(w.eng).TriggerSchedule(ctx, "s", "k")
		require.ErrorIs(t, err, operate.ErrScheduleNotFound)
		_, err = operate.On(w.eng).BackfillSchedule(ctx, "s", time.Now().Add(-time.Hour), time.Now())
		require.ErrorIs(t, err, operate.ErrScheduleNotFound)
		w.reboot(t, o)
		pass(time.Hour)
		require.Len(t, w.scheduled("s"), 2, "declared again, it begins then: %v", w.scheduled("s"))
	})
}

func TestASuspendedStoreDelaysFiresAndLosesNone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(10*time.Minute), 0).Overlap(durable.OverlapAllow).Missed(durable.MissedAll)))
		var down atomic.Bool
		down.Store(true)
		w.disk.tamperCalls(func(call string, forward func() error) error {
			if down.Load() && (call == "put schedule" || call == "due schedules") {
				return context.DeadlineExceeded
			}
			return forward()
		})
		pass(35 * time.Minute)
		require.Empty(t, w.scheduled("s"))
		require.Len(t, w.log.find("schedules could not be looked at"), 1, "it is said once: %s", w.log)
		down.Store(false)
		pass(time.Minute)
		require.Len(t, w.scheduled("s"), 3)
	})
}

// listing returns the error of a look at the schedule of this name.
func listing(ctx context.Context, eng *durable.Engine, name string) error {
	_, err := operate.On(eng).Schedules(ctx, name)
	return err
}
