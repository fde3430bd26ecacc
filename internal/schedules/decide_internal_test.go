package schedules

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/store"
)

var began = store.TimeOf(time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC))

// Whatever the policies, and whenever somebody looks: each fire time gets one outcome, in
// order, none before it is due, and no two runs are live at once unless that is allowed.
func TestEachFireTimeGetsOneOutcomeWheneverSomebodyLooks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := Definition{
			Workflow: "w", Cron: rapid.SampledFrom([]string{"* * * * * *", "*/10 * * * *", "0 30 * * * *", "0 30 2 * * *", "0 0 1,2,3 * * *"}).Draw(t, "cron"), Zone: "Europe/Berlin",
			Overlap: rapid.SampledFrom([]Overlap{OverlapSkip, OverlapAllow, OverlapQueue, OverlapCancel}).Draw(t, "overlap"),
			Missed:  rapid.SampledFrom([]Missed{MissedOnce, MissedSkip, MissedAll, 1, 3, 50}).Draw(t, "missed"),
			Jitter:  rapid.SampledFrom([]time.Duration{0, time.Millisecond, 90 * time.Second, time.Hour}).Draw(t, "jitter").Microseconds(),
		}
		require.NoError(t, def.Check())
		c, err := def.Calendar()
		require.NoError(t, err)
		r := &Record{Definition: def, Settled: began}
		now := began
		var started []store.Time
		skipped, missed := 0, int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second, 10 * time.Minute, time.Hour, 5 * time.Hour}).Draw(t, "later"))
			if def.Overlap == OverlapAllow || rapid.Bool().Draw(t, "the live run has ended") {
				r.Live = nil
			}
			for more := true; more; {
				before := r.Settled
				live := len(r.Live)
				d := r.decide("s", c, now)
				require.GreaterOrEqual(t, r.Settled, before, "it never goes back")
				for _, f := range r.Decided {
					require.LessOrEqual(t, def.dueAt("s", c, f.At.Time()), now, "none is early")
					require.Equal(t, RunID("s", f.At), f.RunID)
					started = append(started, f.At)
				}
				if def.Overlap != OverlapAllow {
					require.LessOrEqual(t, live+len(r.Decided), max(live, 1), "one at a time")
				}
				skipped, missed = skipped+len(d.skipped), missed+d.missed
				require.LessOrEqual(t, r.Settled, now)
				if len(r.Decided) > 0 {
					require.Equal(t, now, r.due("s", c, now, time.Second), "what is decided is due")
				}
				r.Decided, more = nil, d.more
			}
			if due := r.due("s", c, now, time.Second); due != 0 {
				require.Greater(t, due, now, "nothing is left to decide")
			}
		}
		require.True(t, slices.IsSorted(started))
		require.Len(t, slices.Compact(slices.Clone(started)), len(started), "none twice")
		if n := c.Count(began.Time(), r.Settled.Time(), 1_000_000); missed < manyMissed {
			require.Equal(t, n, len(started)+skipped+int(missed)+len(r.Held), "each has an outcome")
		}
	})
}

func TestVeryManyMissedFiresAreNotVisited(t *testing.T) {
	def := Definition{Workflow: "w", Cron: "* * * * * *"}
	c, err := def.Calendar()
	require.NoError(t, err)
	r := &Record{Definition: def, Settled: began}
	from := time.Now()
	d := r.decide("s", c, began.Add(10*365*24*time.Hour))
	require.Less(t, time.Since(from), 5*time.Second)
	require.Len(t, r.Decided, 1, "the latest that is in time; skipped are those that overlap")
	require.GreaterOrEqual(t, d.missed, int64(manyMissed))
}

func TestAPausedScheduleDecidesNothing(t *testing.T) {
	def := Definition{Workflow: "w", Every: time.Hour.Microseconds()}
	c, err := def.Calendar()
	require.NoError(t, err)
	r := &Record{Definition: def, Settled: began, Paused: &Pause{}, Held: []store.Time{began}}
	r.decide("s", c, began.Add(5*time.Hour))
	require.Empty(t, r.Decided)
	require.Equal(t, began, r.Settled)
	require.Zero(t, r.due("s", c, began, time.Second), "it is never due")
	r.Decided = []Decided{{At: began}}
	require.NotZero(t, r.due("s", c, began, time.Second), "what was decided before still is")
}

func TestARecordOfANewerProgramIsLeftAlone(t *testing.T) {
	_, _, err := decode(&store.Schedule{Name: "s", Data: []byte(`{"format":2}`)})
	require.ErrorContains(t, err, "use a newer program")
	_, _, err = decode(&store.Schedule{Name: "s", Data: []byte(`{`)})
	require.ErrorIs(t, err, store.ErrCorrupt)
}
