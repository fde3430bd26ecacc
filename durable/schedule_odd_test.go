package durable_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// With a jitter that is longer than the interval, one fire would hold up those after it until they
// count as missed.
func TestNoFireIsMissedBecauseOfTheJitterOfTheOneBefore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Cron("* * * * *").Jitter(30*time.Minute), 0).Overlap(durable.OverlapAllow)))
		pass(3 * time.Hour)
		s := w.schedule("s")
		require.Zero(t, s.MissedFires)
		require.GreaterOrEqual(t, s.Started, int64(179))
	})
}

// slowSchedules takes a while for each write of a schedule.
type slowSchedules struct{ *memory.Store }

func (s slowSchedules) PutSchedule(ctx context.Context, sc store.Schedule) (store.Schedule, error) {
	time.Sleep(100 * time.Millisecond)
	return s.Store.PutSchedule(ctx, sc)
}

func TestAScheduleThatMakesUpForVeryManyFiresDoesNotKeepTheOthersFromTheirs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow,
			flow.Schedule("many", durable.Every(time.Second), 0).Overlap(durable.OverlapSkip).Missed(durable.MissedAll),
			flow.Schedule("other", durable.Every(time.Minute), 0).Overlap(durable.OverlapAllow).Missed(durable.MissedSkip)))
		w.crash()
		pass(48 * time.Hour)
		eng, err := durable.Open(context.Background(), slowSchedules{w.data.Handle()}, durable.Options{Workflows: []durable.Definition{flow}, Logger: slog.New(w.log)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, eng.Close()) })
		_, err = eng.Recover(context.Background())
		require.NoError(t, err)
		w.eng = eng
		pass(2*time.Minute + 30*time.Second)
		require.Less(t, w.schedule("many").Skipped, int64(48*3600-200), "it takes about three minutes")
		pass(3 * time.Minute)
		s := w.schedule("other")
		require.Equal(t, int64(48*60-1), s.MissedFires, "those of the time when nobody was there")
		require.GreaterOrEqual(t, s.Started, int64(5))
	})
}

func TestAScheduleThatCouldNotBeStoredWithItsFiresIsRefusedWhenItIsDeclared(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := durable.Define("tick", func(_ context.Context, s string) (int, error) { return len(s), nil })
		of := func(n int) durable.Options {
			return durable.Options{CompressAbove: -1, Workflows: []durable.Definition{flow}, Schedules: []durable.Schedule{flow.Schedule("s", durable.Every(time.Hour), strings.Repeat("x", n))}}
		}
		for over := 12 << 20; over > 12<<20-2000; over -= 300 { // the largest that fit, as base64, with nothing else
			_, err := durable.Open(context.Background(), w.data.Handle(), of(over))
			require.ErrorIs(t, err, store.ErrTooLarge, over)
		}
		w.boot(t, of(11<<20))
		pass(time.Hour + time.Minute)
		require.Equal(t, int64(1), w.schedule("s").Started)
	})
}

// flakyKeys has a key that cannot be had for a while.
type flakyKeys struct {
	durable.Keys
	lost string
	down atomic.Bool
}

func (k *flakyKeys) Key(id string) ([]byte, error) {
	if id == k.lost && k.down.Load() {
		return nil, errors.New("the key server does not answer")
	}
	return k.Keys.Key(id)
}

func TestAScheduleWhoseKeyCouldNotBeHadFiresOnceItCan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := durable.Define("tick", func(_ context.Context, s string) (string, error) { return s, nil })
		w.boot(t, durable.Options{Workflows: []durable.Definition{flow}, Encrypt: keysOf("k1"), Schedules: []durable.Schedule{flow.Schedule("s", durable.Every(time.Hour), "secret word")}})
		w.crash()
		keys := &flakyKeys{Keys: keysOf("k2", "k1"), lost: "k1"}
		keys.down.Store(true)
		w.boot(t, durable.Options{Workflows: []durable.Definition{flow}, Encrypt: keys})
		pass(2*time.Hour + time.Minute)
		require.Empty(t, w.scheduled("s"))
		require.Len(t, w.log.find("cannot be fired by this program"), 1, "told once: %s", w.log)
		keys.down.Store(false)
		pass(time.Hour)
		require.Equal(t, []string{"2000-01-01T01:00:00Z", "2000-01-01T03:00:00Z"}, w.scheduled("s"), "that of 02:00 overlaps")
	})
}

func TestABackfillThatBeginsBeforeThereWereTimesIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Cron("@yearly"), 0)))
		for _, from := range []time.Time{{}, time.Unix(0, 0), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)} {
			_, err := operate.On(w.eng).BackfillSchedule(context.Background(), "s", from, time.Date(1999, 1, 2, 0, 0, 0, 0, time.UTC))
			require.ErrorIs(t, err, durable.ErrInvalid)
		}
	})
}

// What runs when the policy for overlap becomes another one is part of what the new one is about.
func TestAPolicyForOverlapHoldsForTheRunsThatTheOneBeforeHasStarted(t *testing.T) {
	for name, c := range map[string]struct {
		before, after durable.OverlapPolicy
		// The runs of 00:10, 00:20 and 00:30, as far as they were started, take 45 minutes each. The policy
		// changes at 00:35, and it is looked at 00:54.
		want []string
		ends map[string]store.Status // others go on
	}{
		"from allow to skip":  {durable.OverlapAllow, durable.OverlapSkip, []string{"00:10", "00:20", "00:30"}, nil},
		"from allow to queue": {durable.OverlapAllow, durable.OverlapQueue, []string{"00:10", "00:20", "00:30"}, nil},
		"from allow to cancel": {
			durable.OverlapAllow, durable.OverlapCancel, []string{"00:10", "00:20", "00:30", "00:40", "00:50"},
			map[string]store.Status{"00:10": store.Cancelled, "00:20": store.Cancelled, "00:30": store.Cancelled, "00:40": store.Cancelled},
		},
		"from queue to allow": {durable.OverlapQueue, durable.OverlapAllow, []string{"00:10", "00:20", "00:30", "00:40", "00:50"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				flow := ticking()
				o := func(p durable.OverlapPolicy) durable.Options {
					return declared(flow, flow.Schedule("s", durable.Every(10*time.Minute), 45*time.Minute).Overlap(p))
				}
				w.boot(t, o(c.before))
				pass(35 * time.Minute)
				w.reboot(t, o(c.after))
				pass(19 * time.Minute)
				var got []string
				for _, id := range w.scheduled("s") {
					at := id[len("2000-01-01T"):len("2000-01-01T00:00")]
					got = append(got, at)
					want := c.ends[at]
					require.Equal(t, want != "", w.row("s@"+id).Status.Terminal(), at)
					if want != "" {
						require.Equal(t, want, w.row("s@"+id).Status, at)
					}
				}
				slices.Sort(got)
				require.Equal(t, c.want, got)
			})
		})
	}
}

// A fire that was about to be made is made, also if the jitter by which it is late becomes another one.
func TestAFireIsNotLostBecauseTheJitterChanges(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		o := func(jitter time.Duration) durable.Options {
			return declared(flow, flow.Schedule("s", durable.Every(time.Hour).Jitter(jitter), 0))
		}
		w.boot(t, o(59*time.Minute))
		for hour := 1; hour < 20; hour++ {
			at := time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC)
			pass(time.Until(at.Add(time.Second)))
			w.reboot(t, o(time.Duration(58+hour%2)*time.Minute))
		}
		pass(2 * time.Hour)
		require.Len(t, w.scheduled("s"), 20, "one of each hour")
	})
}
