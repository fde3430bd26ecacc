package roundtrips

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/internal/crashstore"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// half is a workflow of ten steps; before is called in the body of each.
func half(before func(ctx context.Context, step int) error) *durable.Workflow[int, int] {
	return durable.Define("half", func(ctx context.Context, n int) (int, error) {
		for i := range 10 {
			if err := durable.Do(ctx, "step", func(ctx context.Context) error { return before(ctx, i) }); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// cutOff leaves runs in the middle, of an executor that is gone.
func cutOff(t *testing.T, st store.Store, runs int) {
	t.Helper()
	dead := crashstore.New(st)
	var there atomic.Int64
	w := half(func(ctx context.Context, step int) error {
		if step == 5 {
			there.Add(1)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	eng, err := durable.Open(t.Context(), dead, durable.Options{Workflows: []durable.Definition{w}, Grace: -1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = w.StartAll(durable.NewContext(t.Context(), eng), func(yield func(string, int) bool) {
		for i := range runs {
			if !yield(fmt.Sprintf("r%03d", i), i) {
				return
			}
		}
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return there.Load() == int64(runs) }, 30*time.Second, time.Millisecond)
	dead.Die()
	_ = eng.Close() // nothing of it reaches the store
	_, err = st.Beat(t.Context(), store.Executor{ID: eng.ID(), Leaving: true})
	require.NoError(t, err)
}

// A hundred runs that were cut off are claimed by one claim and loaded in sets, and who lives is not
// asked for each: from the call of Recover until the last of them goes on.
func TestAHundredRunsAreClaimedAndLoadedInSets(t *testing.T) {
	dsn := pgtest.DSN(t)
	st, err := postgres.Open(dsn)
	require.NoError(t, err)
	defer st.Close()
	const runs = 100
	cutOff(t, st, runs)

	p := proxy.New(t, proxy.Target(dsn))
	var tr trips
	p.SetPolicy(tr.policy)
	led, err := postgres.Open(p.DSN(dsn))
	require.NoError(t, err)
	defer led.Close()
	var there atomic.Int64
	all := make(chan struct{})
	w := half(func(ctx context.Context, step int) error {
		if step < 5 {
			t.Errorf("step %d ran again", step)
		}
		if there.Add(1) == runs {
			close(all)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	eng, err := durable.Open(t.Context(), led, durable.Options{Workflows: []durable.Definition{w}, Grace: -1, Logger: slog.New(slog.DiscardHandler), Lease: time.Minute})
	require.NoError(t, err)
	defer eng.Close()
	asked := tr.during(func() {
		report, err := eng.Recover(t.Context())
		require.NoError(t, err)
		require.Len(t, report.Resumed, runs)
		select {
		case <-all:
		case <-time.After(30 * time.Second):
			t.Fatal("not all runs go on")
		}
	})
	times := func(text string) (n int) {
		for _, sql := range asked {
			if strings.Contains(sql, text) {
				n++
			}
		}
		return n
	}
	loads, claims, executors := times("All there is to load of runs"), times("take_runs for runs that were seen"), times("All executors")
	own := recovers(asked)
	t.Logf("%d loads, %d claims, %d looks at executors; %d round trips for the runs, %d with what goes on beside", loads, claims, executors, len(own), len(asked))
	require.NotZero(t, loads)
	require.LessOrEqual(t, loads, 3, "the runs of a claim share sets")
	require.Equal(t, 1, claims)
	require.LessOrEqual(t, executors, 11, "with those that begin with Open")
	require.LessOrEqual(t, len(own), 12, "to find, claim and load the runs, and for what they record: %.80q", own)
	// Among them are the connections, the look at what waits, schedules and requests, which run beside it.
	require.LessOrEqual(t, len(asked), 50, "everything that was sent, with what the runs record")
}

// recovers returns what was sent for the runs: everything from the first look at executors and rows to
// the claim, then claims, loads and what was recorded. The settings of connections, and what an engine that has
// just been opened asks about schedules, are not for them, and neither is a heartbeat.
func recovers(asked []string) (own []string) {
	claimed := false
	for _, sql := range asked {
		switch {
		case strings.HasPrefix(sql, "SET "), strings.Contains(sql, "durable_schedules"), strings.Contains(sql, "WITH beaten"):
			continue
		case strings.Contains(sql, "take_runs"), strings.Contains(sql, "All there is to load"), strings.Contains(sql, "INSERT INTO"), strings.Contains(sql, "UPDATE "),
			strings.HasPrefix(sql, "BEGIN"), strings.HasPrefix(sql, "COMMIT"), !claimed:
			own = append(own, sql)
		}
		claimed = claimed || strings.Contains(sql, "take_runs")
	}
	return own
}
