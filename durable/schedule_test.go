package durable_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// The virtual clock begins at 2000-01-01T00:00:00Z.

// ticking is a workflow that takes as long as its input says, and returns for what time it
// was started.
func ticking() *durable.Workflow[time.Duration, string] {
	return durable.Define("tick", func(ctx context.Context, d time.Duration) (string, error) {
		if err := durable.Sleep(ctx, d); err != nil {
			return "", err
		}
		return durable.ScheduledAt(ctx).Format(time.RFC3339), nil
	})
}

// scheduled lists the runs of a schedule by what follows the "@" of their ids, in order of
// creation.
func (w *world) scheduled(name string) []string {
	w.t.Helper()
	var ids []string
	page, err := w.data.List(context.Background(), store.Filter{OldestFirst: true, Limit: 10_000})
	require.NoError(w.t, err)
	for _, r := range page.Runs {
		if rest, ok := strings.CutPrefix(r.ID, name+"@"); ok {
			ids = append(ids, rest)
		}
	}
	return ids
}

func (w *world) schedule(name string) operate.ScheduleState {
	w.t.Helper()
	list, err := operate.On(w.eng).Schedules(context.Background(), name)
	require.NoError(w.t, err)
	require.Len(w.t, list, 1)
	require.Empty(w.t, list[0].Problem)
	return list[0]
}

func declared(flow *durable.Workflow[time.Duration, string], list ...durable.Schedule) durable.Options {
	return durable.Options{Workflows: []durable.Definition{flow}, Schedules: list}
}

func TestAScheduleStartsARunAtEachOfItsTimes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow,
			flow.Schedule("nightly", durable.Cron("0 30 2 * * *").In("Europe/Berlin"), 0, durable.Header("tenant", "acme")),
			flow.Schedule("quarters", durable.Every(15*time.Minute), 0),
		))
		pass(time.Hour)
		require.Equal(t, []string{"2000-01-01T00:15:00Z", "2000-01-01T00:30:00Z", "2000-01-01T00:45:00Z", "2000-01-01T01:00:00Z"}, w.scheduled("quarters"))
		require.Empty(t, w.scheduled("nightly"))
		pass(48 * time.Hour)
		require.Equal(t, []string{"2000-01-01T01:30:00Z", "2000-01-02T01:30:00Z"}, w.scheduled("nightly"))
		out, err := wait(t, w, flow, "nightly@2000-01-02T01:30:00Z")
		require.NoError(t, err)
		require.Equal(t, "2000-01-02T01:30:00Z", out, "the run knows for what time it was started")
		info, err := w.eng.Get(context.Background(), "nightly@2000-01-02T01:30:00Z")
		require.NoError(t, err)
		require.Equal(t, "nightly", info.Schedule)
		require.Equal(t, time.Date(2000, 1, 2, 1, 30, 0, 0, time.UTC), info.ScheduledAt)
		require.Equal(t, map[string]string{"tenant": "acme"}, info.Headers)
		require.WithinDuration(t, info.ScheduledAt, info.CreatedAt.Time(), 10*time.Millisecond, "in time")
		s := w.schedule("nightly")
		require.Equal(t, `cron "0 30 2 * * *" in Europe/Berlin`, s.Timetable)
		require.Len(t, s.Next, 5)
		require.Equal(t, "2000-01-03T01:30:00Z", s.Next[0].Format(time.RFC3339))
		require.Equal(t, operate.ScheduleFire{At: info.ScheduledAt, Outcome: "started", RunID: "nightly@2000-01-02T01:30:00Z", Status: store.Completed}, s.Last[0])
		require.Equal(t, int64(2), s.Started)
	})
}

func TestTheScheduledTimeIsTheSameOnReplayAndInLaterGenerations(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := durable.Define("tick", func(ctx context.Context, n time.Duration) (string, error) {
			if err := durable.Sleep(ctx, time.Hour); err != nil { // unloaded, and replayed
				return "", err
			}
			if n == 0 {
				return "", durable.Continue(ctx, time.Duration(1))
			}
			at, err := durable.Step(ctx, "in a body", func(ctx context.Context) (string, error) {
				return durable.ScheduledAt(ctx).Format(time.RFC3339), nil
			})
			return at + " " + durable.ScheduledAt(ctx).Format(time.RFC3339), err
		})
		o := declared(flow, flow.Schedule("s", durable.Cron("@daily"), 0))
		w.boot(t, o)
		pass(24*time.Hour + 90*time.Minute)
		w.reboot(t, o)
		pass(2 * time.Hour)
		out, err := wait(t, w, flow, "s@2000-01-02T00:00:00Z")
		require.NoError(t, err)
		require.Equal(t, "2000-01-02T00:00:00Z 2000-01-02T00:00:00Z", out)
		out, err = run(t, w, flow, "by hand", 1)
		require.NoError(t, err)
		require.Equal(t, "0001-01-01T00:00:00Z 0001-01-01T00:00:00Z", out, "no schedule has started it")
	})
}

func TestJitterDelaysAFireByWhatFollowsFromItsTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		o := declared(flow, flow.Schedule("s", durable.Every(time.Hour).Jitter(30*time.Minute), 0))
		w.boot(t, o)
		pass(10 * time.Hour)
		late := map[time.Duration]bool{}
		for _, id := range w.scheduled("s") {
			row := w.row("s@" + id)
			at, err := time.Parse(time.RFC3339, id)
			require.NoError(t, err)
			d := row.CreatedAt.Time().Sub(at)
			require.True(t, 0 <= d && d < 30*time.Minute+10*time.Millisecond, "%s late", d)
			late[d] = true
		}
		require.Greater(t, len(late), 7, "each time has its own: %v", late)
	})
}

func TestOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		policy durable.OverlapPolicy
		// After 64 minutes of a fire every 10, each run taking 25.
		want []string
		ends map[string]store.Status
	}{
		"skip":  {durable.OverlapSkip, []string{"00:10", "00:40"}, nil},
		"allow": {durable.OverlapAllow, []string{"00:10", "00:20", "00:30", "00:40", "00:50", "01:00"}, nil},
		"queue": {durable.OverlapQueue, []string{"00:10", "00:20", "00:30"}, nil},
		"cancel": {
			durable.OverlapCancel, []string{"00:10", "00:20", "00:30", "00:40", "00:50", "01:00"},
			map[string]store.Status{"00:10": store.Cancelled, "00:50": store.Cancelled, "01:00": store.Waiting},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				flow := ticking()
				w.boot(t, declared(flow, flow.Schedule("s", durable.Every(10*time.Minute), 25*time.Minute).Overlap(c.policy)))
				pass(64 * time.Minute)
				var got []string
				live := 0
				for _, id := range w.scheduled("s") {
					got = append(got, id[len("2000-01-01T"):len("2000-01-01T00:00")])
					row := w.row("s@" + id)
					if !row.Status.Terminal() {
						live++
					}
					if want := c.ends[got[len(got)-1]]; want != "" {
						require.Equal(t, want, row.Status, id)
					}
				}
				require.Equal(t, c.want, got)
				if c.policy != durable.OverlapAllow {
					require.Equal(t, 1, live, "never two at once")
				}
				s := w.schedule("s")
				switch c.policy {
				case durable.OverlapSkip:
					require.Equal(t, int64(4), s.Skipped)
					require.Contains(t, s.Last[0].Reason, "s@2000-01-01T00:40:00Z has not ended")
				case durable.OverlapQueue:
					require.Len(t, s.Held, 3, "01:00 waits for 00:50, that for 00:40, that for 00:30")
				}
			})
		})
	}
}

func TestMissedFires(t *testing.T) {
	for name, c := range map[string]struct {
		policy durable.MissedPolicy
		want   []string // started for the times of the 5 hours in which nobody was there
	}{
		"once":  {durable.MissedOnce, []string{"05:00"}},
		"skip":  {durable.MissedSkip, nil},
		"all":   {durable.MissedAll, []string{"01:00", "02:00", "03:00", "04:00", "05:00"}},
		"three": {3, []string{"03:00", "04:00", "05:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				flow := ticking()
				o := declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0).Overlap(durable.OverlapAllow).Missed(c.policy))
				w.boot(t, o)
				pass(time.Minute)
				w.crash()
				pass(5*time.Hour + 10*time.Minute)
				w.boot(t, o)
				pass(time.Minute)
				var got []string
				for _, id := range w.scheduled("s") {
					got = append(got, id[len("2000-01-01T"):len("2000-01-01T00:00")])
				}
				slices.Sort(got)
				require.Equal(t, c.want, got)
				require.Equal(t, int64(5-len(c.want)), w.schedule("s").MissedFires)
				require.Equal(t, len(c.want) < 5, len(w.log.find("were missed")) == 1, "%s", w.log)
				pass(time.Hour)
				require.Len(t, w.scheduled("s"), len(c.want)+1, "and on it goes")
			})
		})
	}
}

func TestAFireThatIsALittleLateIsNotMissed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		o := declared(flow, flow.Schedule("s", durable.Every(10*time.Second), 0).Overlap(durable.OverlapAllow).Missed(durable.MissedSkip))
		w.boot(t, o)
		w.crash()
		pass(55 * time.Second)
		w.boot(t, o)
		pass(time.Second)
		require.Len(t, w.scheduled("s"), 5, "an engine that comes back within a minute fires them all")
	})
}

func TestADeclarationThatChangesReplacesTheStoredOneWithAWarning(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		hourly := flow.Schedule("s", durable.Every(time.Hour), 0)
		w.boot(t, declared(flow, hourly))
		pass(90 * time.Minute)
		w.reboot(t, declared(flow, hourly))
		require.Empty(t, w.log.find("declared differently"), "the same declaration says nothing")
		before := w.schedule("s").UpdatedAt
		w.reboot(t, declared(flow, flow.Schedule("s", durable.Every(2*time.Hour), time.Second).Overlap(durable.OverlapQueue)))
		lines := w.log.find("declared differently")
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "schedule=s")
		require.Contains(t, lines[0], "the timetable was every 1h0m0s and is every 2h0m0s")
		require.Contains(t, lines[0], "the policy for overlap was skip and is queue")
		require.Contains(t, lines[0], "the input is another one")
		require.Greater(t, w.schedule("s").UpdatedAt, before)
		pass(3 * time.Hour)
		require.Equal(t, []string{"2000-01-01T01:00:00Z", "2000-01-01T02:00:00Z", "2000-01-01T04:00:00Z"}, w.scheduled("s"))
		w.reboot(t, declared(flow))
		pass(2 * time.Hour)
		require.Contains(t, w.scheduled("s"), "2000-01-01T06:00:00Z", "a schedule that nobody declares goes on")
	})
}

func TestTwoProgramsWithDifferentDeclarationsDoNotTakeTurns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(2*time.Hour), 0)))
		pass(6*time.Hour + time.Minute)
		require.Equal(t, []string{"2000-01-01T02:00:00Z", "2000-01-01T04:00:00Z", "2000-01-01T06:00:00Z"}, w.scheduled("s"), "the last that opened has its way")
		require.Len(t, w.log.find("declared differently"), 1)
	})
}

func TestAPauseSurvivesANewDeclaration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		flow := ticking()
		hourly := flow.Schedule("s", durable.Every(time.Hour), 0)
		w.boot(t, declared(flow, hourly, flow.Schedule("later", durable.Every(time.Hour), 0).Paused()))
		require.NoError(t, operate.On(w.eng).PauseSchedule(ctx, "s", "month end"))
		require.NoError(t, operate.On(w.eng).PauseSchedule(ctx, "s", "again"), "twice is no error")
		pass(3 * time.Hour)
		w.reboot(t, declared(flow, hourly, flow.Schedule("later", durable.Every(time.Hour), 0)))
		w.reboot(t, declared(flow, flow.Schedule("s", durable.Every(30*time.Minute), 0)))
		pass(time.Hour)
		s := w.schedule("s")
		require.True(t, s.Paused)
		require.Equal(t, "month end", s.PausedReason)
		require.NotEmpty(t, s.Next, "what would be next is shown")
		require.Empty(t, w.scheduled("s"))
		require.Empty(t, w.scheduled("later"))
		require.True(t, w.schedule("later").Paused)
		require.NoError(t, operate.On(w.eng).ResumeSchedule(ctx, "s"))
		require.NoError(t, operate.On(w.eng).ResumeSchedule(ctx, "s"), "twice is no error")
		pass(31 * time.Minute)
		require.Len(t, w.scheduled("s"), 1, "what has passed meanwhile does not fire")
		require.Zero(t, w.schedule("s").MissedFires)
	})
}

func TestTwoEnginesFireEachTimeOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var began atomic.Int64
		flow := durable.Define("tick", func(ctx context.Context, d time.Duration) (string, error) {
			return "", durable.Do(ctx, "a", func(context.Context) error { began.Add(1); return nil })
		})
		o := declared(flow, flow.Schedule("s", durable.Cron("* * * * * *"), 0).Overlap(durable.OverlapAllow))
		w.boot(t, o)
		w.boot(t, o)
		w.boot(t, o)
		pass(60 * time.Second)
		require.Len(t, w.scheduled("s"), 60)
		pass(time.Second / 2)
		require.Equal(t, int64(60), began.Load())
		require.Equal(t, int64(60), w.schedule("s").Started)
		require.Len(t, w.log.find("a schedule has started its run"), 60)
	})
}

// jumpy is a clock that can be set.
type jumpy struct{ by atomic.Int64 }

func (j *jumpy) now() time.Time { return time.Now().Add(time.Duration(j.by.Load())) }

func TestAClockThatJumpsFiresNothingEarlyAndNothingTwice(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, 365 * 24 * time.Hour, -time.Hour, -365 * 24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				var clock jumpy
				clock.by.Store(int64(400 * 24 * time.Hour)) // away from the beginning of time
				w.data = memory.OpenAt(clock.now)
				flow := ticking()
				w.boot(t, declared(flow, flow.Schedule("s", durable.Every(10*time.Minute), 0)))
				ran := map[string]int{}
				check := func() {
					t.Helper()
					for _, id := range w.scheduled("s") {
						at, err := time.Parse(time.RFC3339, id)
						require.NoError(t, err)
						row := w.row("s@" + id)
						if ran[id]++; ran[id] == 1 {
							require.False(t, clock.now().Before(at), "%s has not come", id)
						}
						require.Equal(t, store.Completed, row.Status)
						steps := w.events("s@" + id)
						require.Equal(t, 1, len(slices.DeleteFunc(steps, func(e store.Event) bool { return e.Type != store.WorkflowCompleted })))
					}
				}
				pass(35 * time.Minute)
				require.Len(t, w.scheduled("s"), 3)
				check()
				clock.by.Add(int64(jump))
				pass(time.Minute)
				check()
				fired := len(w.scheduled("s"))
				if jump > 0 {
					require.Equal(t, 4, fired, "of the missed ones the latest")
				} else {
					require.Equal(t, 3, fired, "what has fired does not fire again")
				}
				pass(29 * time.Minute)
				check()
				switch {
				case jump == -time.Hour:
					require.Len(t, w.scheduled("s"), 3, "the times until then have fired")
					pass(36 * time.Minute)
					check()
					require.Len(t, w.scheduled("s"), 4)
				case jump < 0:
					require.Len(t, w.scheduled("s"), fired+3, "the clock was a year ahead, or is a year behind: it is believed")
					require.Len(t, w.log.find("is set back"), 1)
				default:
					require.Len(t, w.scheduled("s"), fired+3)
				}
				clock.by.Add(-int64(jump)) // and right again
				pass(31 * time.Minute)
				check()
				require.Greater(t, len(w.scheduled("s")), fired)
			})
		})
	}
}

// An engine whose beats are answered late takes the store's clock for slower than it is,
// and the store says what is due.
func TestARunIsNotOlderThanTheFireThatStartsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var o offClock
		o.slow(0, 4*time.Second)
		flow := ticking()
		eng := openOff(t, w, &o, declared(flow, flow.Schedule("s", durable.Every(time.Minute), 0)))
		_, err := eng.Recover(context.Background())
		require.NoError(t, err)
		pass(3*time.Minute + 30*time.Second)
		ids := w.scheduled("s")
		require.Len(t, ids, 3)
		for _, id := range ids {
			at, err := time.Parse(time.RFC3339, id)
			require.NoError(t, err)
			require.False(t, w.row("s@"+id).CreatedAt.Time().Before(at), id)
		}
	})
}

func TestWhatCannotBeDeclaredIsRefusedAndStoresNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		every := durable.Every(time.Hour)
		for says, s := range map[string]durable.Schedule{
			"must not be empty":           flow.Schedule("", every, 0),
			"not made by Workflow":        {},
			"expected 5 to 6 fields":      flow.Schedule("s", durable.Cron("* *"), 0),
			"Every needs at least":        flow.Schedule("s", durable.Every(0), 0),
			"at least 1s":                 flow.Schedule("s", durable.Every(time.Millisecond), 0),
			"unknown time zone":           flow.Schedule("s", durable.Cron("@daily").In("Mars/Olympus"), 0),
			"In is for Cron":              flow.Schedule("s", every.In("Europe/Berlin"), 0),
			"From is for Every":           flow.Schedule("s", durable.Cron("@daily").From(time.Now()), 0),
			"is not shorter":              flow.Schedule("s", every.Jitter(time.Hour), 0),
			"whole microseconds":          flow.Schedule("s", durable.Every(time.Second+1), 0),
			"microseconds":                flow.Schedule("s", every.Jitter(-1), 0),
			"years 1 to 9999":             flow.Schedule("s", every.From(time.Date(400_000, 1, 1, 0, 0, 0, 0, time.UTC)), 0),
			"two zones":                   flow.Schedule("s", durable.Cron("TZ=UTC TZ=UTC"), 0),
			"is negative":                 flow.Schedule("s", every.Jitter(-time.Second), 0),
			"at most 1h0m0s":              flow.Schedule("s", durable.Cron("@daily").Jitter(2*time.Hour), 0),
			"Overlap is no policy":        flow.Schedule("s", every, 0).Overlap(9),
			"missed fires: 2000":          flow.Schedule("s", every, 0).Missed(2000),
			"WithSignal is for one start": flow.Schedule("s", every, 0, durable.WithSignal("go", 1)),
			"StartAt is for one start":    flow.Schedule("s", every, 0, durable.StartAt(time.Now())),
			"Debounce is for starts":      flow.Schedule("s", every, 0, durable.Debounce("k", time.Second, time.Minute)),
			"Abandon is for a child":      flow.Schedule("s", every, 0, durable.Abandon()),
			"Deadline: -1s":               flow.Schedule("s", every, 0, durable.Deadline(-time.Second)),
		} {
			_, err := durable.Open(context.Background(), w.data.Handle(), declared(flow, s))
			require.ErrorIs(t, err, durable.ErrInvalid, says)
			require.ErrorContains(t, err, says)
		}
		_, err := durable.Open(context.Background(), w.data.Handle(), declared(flow, flow.Schedule("s", every, 0), flow.Schedule("s", every, 0)))
		require.ErrorContains(t, err, `"s" is declared twice`)
		_, err = durable.Open(context.Background(), struct{ store.Store }{w.data.Handle()}, declared(flow, flow.Schedule("s", every, 0)))
		require.ErrorIs(t, err, durable.ErrInvalid)
		require.ErrorContains(t, err, "keeps no schedules")
		list, err := w.data.Schedules(context.Background())
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

func TestAScheduleKeepsTheOptionsOfItsStarts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0, durable.Attributes(map[string]string{"kind": "report"}), durable.Header("tenant", "acme"),
			durable.Exclusive("the house"), durable.Deadline(time.Hour), durable.OnQueue("reports"), durable.Partition("acme"), durable.Priority(3), durable.Dedup("one"), durable.Delay(time.Minute))))
		pass(time.Hour + 10*time.Second)
		row := w.row("s@2000-01-01T01:00:00Z")
		require.Equal(t, []any{"reports", "acme", int32(3), "one", store.Pending}, []any{row.Queue, row.Partition, row.Priority, row.Dedup, row.Status})
		require.WithinDuration(t, time.Date(2000, 1, 1, 1, 1, 0, 0, time.UTC), row.WakeAt.Time(), time.Second)
		require.WithinDuration(t, time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC), row.DeadlineAt.Time(), time.Second)
		info, err := w.eng.Get(context.Background(), row.ID)
		require.NoError(t, err)
		require.Equal(t, []any{map[string]string{"kind": "report"}, map[string]string{"tenant": "acme"}, []string{"the house"}}, []any{info.Attributes, info.Headers, info.Exclusive})
		pass(2 * time.Minute)
		out, err := wait(t, w, flow, row.ID)
		require.NoError(t, err)
		require.Equal(t, "2000-01-01T01:00:00Z", out)
	})
}

func TestAFireWhoseRunCannotStartIsRefusedAndTheNextGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0, durable.Exclusive("the house"))))
		_, err := flow.Start(w.ctx(), "holds it", 90*time.Minute, durable.Exclusive("the house"))
		require.NoError(t, err)
		pass(2*time.Hour + time.Minute)
		require.Equal(t, []string{"2000-01-01T02:00:00Z"}, w.scheduled("s"))
		s := w.schedule("s")
		require.Equal(t, int64(1), s.Refused)
		require.Equal(t, "refused", s.Last[1].Outcome)
		require.Contains(t, s.Last[1].Reason, "holds it")
		require.Len(t, w.log.find("could not start its run"), 1)
	})
}

func TestAnEngineWithoutCodeFiresNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := ticking()
		w.boot(t, declared(flow, flow.Schedule("s", durable.Every(time.Hour), 0)))
		w.crash()
		w.open(t, durable.Options{})
		pass(3 * time.Hour)
		require.Empty(t, w.scheduled("s"))
		require.Len(t, w.schedule("s").Next, 5, "but it can look")
	})
}

func TestAnEncryptedInputIsReadByWhoHasTheKey(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		flow := durable.Define("tick", func(_ context.Context, s string) (string, error) { return s, nil })
		o := durable.Options{Workflows: []durable.Definition{flow}, Encrypt: keysOf("k1"), Schedules: []durable.Schedule{flow.Schedule("s", durable.Every(time.Hour), "secret word")}}
		w.boot(t, o)
		raw, err := w.data.Schedules(context.Background())
		require.NoError(t, err)
		require.NotContains(t, string(raw[0].Data), "secret word")
		pass(61 * time.Minute)
		out, err := wait(t, w, flow, "s@2000-01-01T01:00:00Z")
		require.NoError(t, err)
		require.Equal(t, "secret word", out)
		w.crash()
		w.boot(t, durable.Options{Workflows: []durable.Definition{flow}}) // without keys
		pass(time.Hour)
		require.Len(t, w.scheduled("s"), 1)
		require.Len(t, w.log.find("cannot be fired by this program"), 1, "told once: %s", w.log)
		use, err := operate.On(w.eng).KeysInUse(context.Background(), store.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, use[slices.IndexFunc(use, func(u operate.KeyUse) bool { return u.KeyID == "k1" })].Schedules)
		o.Encrypt = keysOf("k2", "k1")
		w.boot(t, o)
		pass(time.Minute)
		require.Len(t, w.scheduled("s"), 2, "who has the key makes up for it")
		use, err = operate.On(w.eng).KeysInUse(context.Background(), store.Filter{})
		require.NoError(t, err)
		for _, u := range use {
			require.Equal(t, u.KeyID == "k2", u.Schedules == 1, "a declaration under a newer key is stored: %s", u.KeyID)
		}
		require.Empty(t, w.log.find("declared differently"))
	})
}

// A process that fires a schedule dies just before or just after each of its writes, and another
// one takes over.
func TestAKillAtAnyWriteFiresNothingTwiceAndLosesNothing(t *testing.T) {
	for name, overlap := range map[string]durable.OverlapPolicy{"skip": durable.OverlapSkip, "queue": durable.OverlapQueue, "cancel": durable.OverlapCancel, "allow": durable.OverlapAllow} {
		t.Run(name, func(t *testing.T) {
			points := dieAtEachWrite(func(at int, after bool) (reached bool) {
				synctest.Test(t, func(t *testing.T) { reached = killedSchedule(t, overlap, at, after) })
				return reached
			})
			require.Greater(t, points, 16, "there were writes to die at")
		})
	}
}

// killedSchedule has a process die at one of its writes, while it fires a schedule every
// ten minutes whose runs take 15, and another one take over. It reports whether the write
// was reached.
func killedSchedule(t *testing.T, overlap durable.OverlapPolicy, at int, after bool) bool {
	ctx := context.Background()
	data := memory.Open()
	var mu sync.Mutex
	bodies := map[string]int{}
	flow := durable.Define("tick", func(ctx context.Context, d time.Duration) (string, error) {
		err := durable.Do(ctx, "a", func(ctx context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			bodies[durable.RunID(ctx)]++
			return nil
		})
		if err != nil {
			return "", err
		}
		return "", durable.Sleep(ctx, d)
	})
	o := declared(flow, flow.Schedule("s", durable.Every(10*time.Minute), 15*time.Minute).Overlap(overlap).Missed(durable.MissedAll))
	o.Logger, o.Grace, o.QuarantineAfter = slog.New(slog.DiscardHandler), -1, 100
	dying := crashstore.New(data.Handle())
	dying.DieAt(at, after)
	eng, err := durable.Open(ctx, dying, o)
	if err == nil {
		_, err = eng.Recover(ctx)
		pass(45 * time.Minute)
		_ = eng.Close()
	}
	if !dying.IsDead() {
		require.NoError(t, err)
		return false
	}
	pass(time.Minute)
	eng, err = durable.Open(ctx, data.Handle(), o)
	require.NoError(t, err)
	_, err = eng.Recover(ctx)
	require.NoError(t, err)
	pass(2 * time.Hour)
	require.NoError(t, operate.On(eng).PauseSchedule(ctx, "s", ""))
	pass(2 * time.Hour)
	list, err := operate.On(eng).Schedules(ctx)
	require.NoError(t, err)
	page, err := data.List(ctx, store.Filter{OldestFirst: true, Limit: 1000})
	require.NoError(t, err)
	s := list[0]
	// A fire that is decided when the process dies is counted by the one that settles it, and
	// each fire has an outcome, once.
	settled := int(s.Started + s.Skipped + s.MissedFires + s.Refused)
	require.Equal(t, len(page.Runs), int(s.Started), "each run was decided once: %+v", s)
	require.Zero(t, s.Refused)
	require.Zero(t, s.MissedFires)
	mu.Lock()
	defer mu.Unlock()
	for _, r := range page.Runs {
		require.LessOrEqual(t, bodies[r.ID], 2, "at most the body that was killed runs twice")
	}
	if overlap == durable.OverlapAllow {
		require.Zero(t, s.Skipped)
		for i, r := range page.Runs {
			require.Equal(t, "s@"+page.Runs[0].CreatedAt.Time().Add(0).Truncate(10*time.Minute).Format(time.DateOnly), r.ID[:len("s@2000-01-01")], "%d", i)
		}
	} else {
		requireApart(t, data, page.Runs)
	}
	require.GreaterOrEqual(t, settled+len(s.Held), 12)
	require.NoError(t, eng.Close())
	return true
}

// requireApart fails if two runs have executed anything at the same time.
func requireApart(t *testing.T, data store.Store, runs []store.Run) {
	t.Helper()
	slices.SortFunc(runs, func(a, b store.Run) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	for i := 1; i < len(runs); i++ {
		require.True(t, runs[i-1].Status.Terminal(), "%s is %s", runs[i-1].ID, runs[i-1].Status)
		require.LessOrEqual(t, runs[i-1].EndedAt, runs[i].CreatedAt, "%s began before %s had ended", runs[i].ID, runs[i-1].ID)
	}
}
