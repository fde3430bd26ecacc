package everystore_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

// A timetable is programs that share schedules, each on a handle of its own, and what they have
// executed.
type timetable struct {
	*clockwork
	t      *testing.T
	list   func(held, quick *durable.Workflow[int, int]) []durable.Schedule
	now    []program
	mu     sync.Mutex
	bodies map[string]int
}

// boot starts two programs. The runs of held end when they get the signal "end".
func (tt *timetable) boot() {
	body := func(ctx context.Context) error {
		tt.mu.Lock()
		defer tt.mu.Unlock()
		tt.bodies[durable.RunID(ctx)]++
		return nil
	}
	held := durable.Define("held", func(ctx context.Context, n int) (int, error) {
		if err := durable.Do(ctx, "body", body); err != nil {
			return 0, err
		}
		_, err := durable.Await[string](ctx, "end")
		return n, err
	})
	quick := durable.Define("quick", func(ctx context.Context, n int) (int, error) { return n, durable.Do(ctx, "body", body) })
	tt.now = nil
	for range 2 {
		st, err := tt.open()
		require.NoError(tt.t, err)
		tt.t.Cleanup(func() { require.NoError(tt.t, st.Close()) })
		tt.now = append(tt.now, runProgram(tt.t, st, durable.Options{Workflows: []durable.Definition{held, quick}, Schedules: tt.list(held, quick), Lease: tt.lease}))
	}
}

func (tt *timetable) schedule(name string) operate.ScheduleState {
	tt.t.Helper()
	list, err := operate.On(tt.now[0].eng).Schedules(context.Background(), name)
	require.NoError(tt.t, err)
	return list[0]
}

// runs returns the runs of a schedule by their times, each with its status.
func (tt *timetable) runs(name string, since time.Time) (list []string) {
	tt.t.Helper()
	page, err := tt.now[0].eng.List(context.Background(), store.Filter{Limit: 1000})
	require.NoError(tt.t, err)
	for i := range page.Runs {
		at, ok := strings.CutPrefix(page.Runs[i].ID, name+"@")
		if !ok {
			continue
		}
		fire, err := time.Parse(time.RFC3339, at)
		require.NoError(tt.t, err)
		if fire.After(since) {
			list = append(list, at+" "+string(page.Runs[i].Status))
		}
	}
	slices.Sort(list)
	return list
}

// comesTo waits until the schedule has these runs, and fails if it has more.
func (tt *timetable) comesTo(name string, since time.Time, want ...string) {
	tt.t.Helper()
	var got []string
	await(tt.t, name+" has started and ended its runs", func() bool {
		got = tt.runs(name, since)
		return slices.Equal(got, want) || len(got) > len(want)
	})
	require.Equal(tt.t, want, got, name)
}

// end lets a run of held complete.
func (tt *timetable) end(name string, at time.Time) {
	tt.t.Helper()
	require.NoError(tt.t, durable.Signal(context.WithoutCancel(tt.now[1]), name+"@"+at.UTC().Format(time.RFC3339), "end", "now"))
}

// Two programs that declare the same schedules decide together what becomes of a fire while the run
// before has not ended, and of those in whose time nobody was there.
func TestOverlapAndMissedFiresAreDecidedOnceByTwoEnginesOnEveryStore(t *testing.T) {
	onEachClock(t, "two engines", func(t *testing.T, c *clockwork) {
		tt := &timetable{clockwork: c, t: t, bodies: map[string]int{}}
		every := durable.Every(10 * time.Minute)
		tt.list = func(held, quick *durable.Workflow[int, int]) (list []durable.Schedule) {
			for name, p := range map[string]durable.OverlapPolicy{"skip": durable.OverlapSkip, "allow": durable.OverlapAllow, "queue": durable.OverlapQueue, "cancel": durable.OverlapCancel} {
				list = append(list, held.Schedule(name, every, 0).Overlap(p))
			}
			for name, p := range map[string]durable.MissedPolicy{"once": durable.MissedOnce, "none": durable.MissedSkip, "all": durable.MissedAll, "two": 2} {
				list = append(list, quick.Schedule(name, every, 0).Overlap(durable.OverlapAllow).Missed(p))
			}
			return list
		}
		tt.boot()
		first := tt.schedule("skip").Next[0]
		start := first.Add(-time.Minute)
		at := func(n int) time.Time { return first.Add(time.Duration(n) * 10 * time.Minute) }
		is := func(n int, status store.Status) string {
			return at(n).UTC().Format(time.RFC3339) + " " + string(status)
		}
		const waiting, cancelled, completed = store.Waiting, store.Cancelled, store.Completed
		tt.until(at(0).Add(time.Second))
		for _, name := range []string{"skip", "allow", "queue", "cancel"} {
			tt.comesTo(name, start, is(0, waiting))
		}
		for n := 1; n <= 2; n++ {
			tt.until(at(n).Add(time.Second))
			await(t, "the fire is decided by all", func() bool {
				return tt.schedule("skip").Skipped == int64(n) && len(tt.schedule("queue").Held) == n
			})
			tt.looked()
		}
		tt.comesTo("skip", start, is(0, waiting))
		tt.comesTo("allow", start, is(0, waiting), is(1, waiting), is(2, waiting))
		tt.comesTo("queue", start, is(0, waiting))
		tt.comesTo("cancel", start, is(0, cancelled), is(1, cancelled), is(2, waiting))
		tt.end("queue", at(0))
		tt.comesTo("queue", start, is(0, completed), is(1, waiting))
		tt.end("queue", at(1))
		tt.comesTo("queue", start, is(0, completed), is(1, completed), is(2, waiting))
		tt.end("skip", at(0))
		tt.comesTo("skip", start, is(0, completed))
		tt.until(at(3).Add(time.Second))
		tt.comesTo("skip", start, is(0, completed), is(3, waiting))
		for _, name := range []string{"once", "none", "all", "two"} {
			tt.comesTo(name, start, is(0, completed), is(1, completed), is(2, completed), is(3, completed))
		}

		for _, p := range tt.now {
			require.NoError(t, p.eng.Close())
		}
		tt.until(at(8).Add(2 * time.Minute))
		tt.boot()
		for name, want := range map[string][]int{"once": {8}, "none": nil, "all": {4, 5, 6, 7, 8}, "two": {7, 8}} {
			var list []string
			for _, n := range want {
				list = append(list, is(n, completed))
			}
			tt.comesTo(name, at(3), list...)
			await(t, name+" counts what was missed", func() bool { return tt.schedule(name).MissedFires == int64(5-len(want)) })
		}
		tt.looked()
		for _, name := range []string{"skip", "allow", "queue", "cancel", "once", "none", "all", "two"} {
			require.EqualValues(t, len(tt.runs(name, start)), tt.schedule(name).Started, "%s: each run was decided once", name)
		}
		tt.mu.Lock()
		defer tt.mu.Unlock()
		for id, n := range tt.bodies {
			require.Equal(t, 1, n, "%s was executed %d times", id, n)
		}
	})
}
