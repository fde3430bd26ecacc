//go:build cgo

package proof_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func init() { operations["scheduler"] = scheduler } // store/sqlite is there with cgo alone

// fatal is a store whose process dies by SIGKILL just before or just after a write by which
// schedules are fired: a schedule that is stored, or runs that are created.
type fatal struct {
	*sqlite.Store
	at    int64 // the write, from 1
	after bool
	n     atomic.Int64
}

func (f *fatal) write(do func()) {
	n := f.n.Add(1)
	die := func() {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {}
	}
	if n == f.at && !f.after {
		die()
	}
	if do(); n == f.at {
		die()
	}
}

func (f *fatal) PutSchedule(ctx context.Context, sc store.Schedule) (got store.Schedule, err error) {
	f.write(func() { got, err = f.Store.PutSchedule(ctx, sc) })
	return got, err
}

func (f *fatal) Commit(ctx context.Context, batch []store.Change) (errs []error) {
	if !slices.ContainsFunc(batch, func(c store.Change) bool { return c.Create != nil }) {
		return f.Store.Commit(ctx, batch)
	}
	f.write(func() { errs = f.Store.Commit(ctx, batch) })
	return errs
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
	eng, err := openScheduler(&fatal{Store: st.(*sqlite.Store), at: int64(o.New), after: o.Hold == "after"}, o.Lease)
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
	ctx := context.Background()
	o := orders{Role: "scheduler", Backend: "sqlite", Dir: t.TempDir(), Lease: time.Second}
	o.DSN = filepath.Join(o.Dir, "runs.db")
	for o.New = 1; o.New <= 7; o.New++ { // declared; and of two fires: decided, started, settled
		for _, o.Hold = range []string{"before", "after"} {
			c := start(t, o)
			for c.out.Scan() {
				t.Fatalf("write %d, %s: %s", o.New, o.Hold, c.out.Text())
			}
			require.ErrorContains(t, c.Wait(), "killed", "write %d, %s", o.New, o.Hold)
		}
	}
	st, err := sqlite.Open(o.DSN)
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
	var times []time.Time
	for _, r := range runs {
		at, err := time.Parse(time.RFC3339, strings.TrimPrefix(r.ID, "s@"))
		require.NoError(t, err)
		require.False(t, r.CreatedAt.Time().Before(at), "%s was fired early", r.ID)
		times = append(times, at)
	}
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		require.Equal(t, times[i-1].Add(time.Second), times[i], "no second is lost")
	}
	list, err := operate.On(eng).Schedules(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, int64(len(runs)), list[0].Started, "each was decided once")
	require.Greater(t, len(runs), 7)
}
