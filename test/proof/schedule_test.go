package proof_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
)

func init() { operations["scheduler"] = scheduler }

// firing reports whether a write is one by which schedules are fired: one of a schedule, or a
// commit that creates runs, or a claim.
func firing(write any) bool {
	batch, ok := write.([]store.Change)
	return !ok || slices.ContainsFunc(batch, func(c store.Change) bool { return c.Create != nil })
}

// openScheduler opens an engine that fires a schedule each second.
func openScheduler(st store.Store, lease time.Duration) (*durable.Engine, error) {
	flow := durable.Define("tick", func(ctx context.Context, _ int) (string, error) {
		return durable.ScheduledAt(ctx).Format(time.RFC3339), nil
	})
	return durable.Open(context.Background(), st, durable.Options{
		Workflows: []durable.Definition{flow}, Logger: quiet(), Lease: lease, Grace: -1,
		Schedules: []durable.Schedule{flow.Schedule("s", durable.Cron("* * * * * *"), 0).Overlap(durable.OverlapAllow).Missed(durable.MissedAll)},
	})
}

// scheduler is a process that fires until it dies.
func scheduler(st store.Store, o orders) error {
	eng, err := openScheduler(&fatal{fullStore: st.(fullStore), at: int64(o.New), after: o.Hold == "after", which: firing}, o.Lease)
	if err != nil {
		return err
	}
	if _, err := eng.Recover(context.Background()); err != nil {
		return err
	}
	time.Sleep(20 * time.Second) // it dies before
	return fmt.Errorf("there were fewer than %d writes", o.New)
}

func TestASIGKILLAtAnyWriteOfAScheduleFiresEachTimeOnce(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, o orders) {
		ctx := context.Background()
		o.Role, o.Lease = "scheduler", time.Second
		for o.New = 1; o.New <= 7; o.New++ { // declared; and of two fires: decided, started, settled
			for _, o.Hold = range []string{"before", "after"} {
				c := start(t, o)
				for c.out.Scan() {
					t.Fatalf("write %d, %s: %s", o.New, o.Hold, c.out.Text())
				}
				require.ErrorContains(t, c.Wait(), "killed", "write %d, %s", o.New, o.Hold)
			}
		}
		st, err := openStore(o.Backend, o.DSN)
		require.NoError(t, err)
		defer func() { require.NoError(t, st.Close()) }()
		eng, err := openScheduler(st, o.Lease)
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		_, err = eng.Recover(ctx)
		require.NoError(t, err)
		var runs []store.Run
		require.Eventually(t, func() bool {
			list, err := operate.On(eng).Schedules(ctx, "s")
			require.NoError(t, err)
			if time.Since(list[0].Last[0].At) > 3*time.Second {
				return false // it makes up for what was missed
			}
			require.NoError(t, operate.On(eng).PauseSchedule(ctx, "s", "look"))
			return true
		}, 30*time.Second, 100*time.Millisecond)
		require.Eventually(t, func() bool {
			page, err := st.List(ctx, store.Filter{OldestFirst: true, Limit: 1000})
			require.NoError(t, err)
			runs = page.Runs
			return !slices.ContainsFunc(runs, func(r store.Run) bool { return r.Status != store.Completed })
		}, 30*time.Second, 100*time.Millisecond)
		requireEachSecond(t, runs)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			list, err := operate.On(eng).Schedules(ctx, "s")
			assert.NoError(c, err)
			assert.Equal(c, int64(len(runs)), list[0].Started, "each was decided once")
		}, 30*time.Second, 100*time.Millisecond, "the last may have been started just before the pause, and is counted after it")
		require.Greater(t, len(runs), 7)
	})
}

// requireEachSecond fails unless there is one run for each second from the first to the last,
// and none was made early.
func requireEachSecond(t *testing.T, runs []store.Run) {
	t.Helper()
	var times []time.Time
	for _, r := range runs {
		_, text, _ := strings.Cut(r.ID, "@")
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		require.False(t, r.CreatedAt.Time().Before(at), "%s was fired early", r.ID)
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		require.Equal(t, times[i-1].Add(time.Second), times[i], "no second is lost")
	}
}
