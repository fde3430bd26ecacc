//go:build cgo

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// inLine creates n runs of the queue mail, in three partitions.
func inLine(t testing.TB, st store.Store, n int) (ids []string) {
	t.Helper()
	for i := range n {
		_, c := create(fmt.Sprint("r", i), func(r *store.Run) { r.Queue, r.Partition = "mail", string(rune('a'+i%3)) })
		commit(t, st, c)
		ids = append(ids, c.RunID)
	}
	return ids
}

func claimMail(ctx context.Context, st store.Store, e store.Executor, most int) ([]store.Run, error) {
	return st.Claim(ctx, store.Claim{Executor: e.ID, Serves: e.Serves, Max: most, Queues: []store.QueueRoom{{Queue: "mail", Max: -1}}})
}

// What a claim writes of a queue, and a put, is there whole or not at all.
func TestAPowerFailureAtAnyWriteOfAQueueLeavesItBeforeOrAfter(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	inLine(t, st, 6)
	e := executor("e")
	beat(t, st, e)
	require.NoError(t, st.PutQueue(t.Context(), store.Queue{Name: "mail", Max: 4, Rate: 2, Per: time.Hour}))
	// The revision, the runs that hold a place, those that have begun, and the turn.
	const state = `SELECT (SELECT revision || '/' || rate FROM durable_queues) || ' ' || (SELECT count(*) FROM durable_runs WHERE status = 'running') || ' ' ||
		(SELECT count(*) FROM durable_events WHERE type = 'workflow_started') || ' ' ||
		coalesce((SELECT sum(n) FROM durable_queue_begun), 0) || ' ' || coalesce((SELECT partition FROM durable_queue_turns), '')`
	for _, c := range []struct {
		act           func() error
		before, after string
	}{
		{func() error { _, err := claimMail(t.Context(), st, e, 5); return err }, "1/2 0 0 0 ", "1/2 2 2 2 b"},
		{func() error {
			return st.PutQueue(t.Context(), store.Queue{Name: "mail", Revision: 1, Max: 4, Rate: 3, Per: time.Hour})
		}, "1/2 2 2 2 b", "2/3 2 2 2 b"},
		{func() error { _, err := claimMail(t.Context(), st, e, 5); return err }, "2/3 2 2 2 b", "2/3 3 3 3 c"},
		{func() error { return st.PutQueue(t.Context(), store.Queue{Name: "mail", Revision: 2}) }, "2/3 3 3 3 c", "3/0 3 3 0 c"},
		{func() error { _, err := claimMail(t.Context(), st, e, 5); return err }, "3/0 3 3 0 c", "3/0 6 6 0 c"},
	} {
		found := map[string]int{}
		n := imagesOf(t, path, st, func() { require.NoError(t, c.act()) }, func(image string) { found[ask[string](t, image, state)]++ })
		t.Logf("%d images: %v", n, found)
		require.Len(t, found, 2)
		require.Positive(t, found[c.before])
		require.Positive(t, found[c.after])
	}
}

// childQueues takes runs of a queue, holds each for a moment, and ends it. While it holds one there is a
// file in name. It writes down when a run began, and how many files there were.
func childQueues(st *sqlite.Store, name string) error {
	ctx := context.Background()
	notes, err := os.OpenFile(name+".notes", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer notes.Close()
	e := store.Executor{ID: fmt.Sprint("p", os.Getpid()), Lease: time.Minute, Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}}}
	if _, err := st.Beat(ctx, e); err != nil {
		return err
	}
	var all []string
	for i := range 60 {
		all = append(all, fmt.Sprint("r", i))
	}
	for n := 0; ; n++ {
		runs, err := claimMail(ctx, st, e, 2)
		if err == nil && n%5 == 4 { // what a dead process has left
			var more []store.Run
			more, err = st.Claim(ctx, store.Claim{Executor: e.ID, Serves: e.Serves, Max: 1, IDs: all})
			runs = append(runs, more...)
		}
		if err != nil {
			return err
		}
		for _, r := range runs {
			if err := os.WriteFile(filepath.Join(name, r.ID), []byte(r.Partition), 0o600); err != nil {
				return err
			}
			if r.Last.Type == store.WorkflowStarted {
				fmt.Fprintln(notes, "began", int64(r.UpdatedAt))
			}
		}
		placed, err := os.ReadDir(name)
		if err != nil {
			return err
		}
		fmt.Fprintln(notes, "placed", len(placed))
		for _, r := range runs {
			l := &log{run: r.ID, epoch: r.Epoch, last: *r.Last}
			for i := range 3 {
				c := store.Change{RunID: r.ID, Expect: store.Expect{Epoch: l.epoch}, Events: []store.Event{l.step(fmt.Sprint(i))}}
				if err := st.Commit(ctx, []store.Change{c})[0]; err != nil {
					return err
				}
			}
			if err := os.Remove(filepath.Join(name, r.ID)); err != nil {
				return err
			}
			status := store.Completed
			end := store.Change{RunID: r.ID, Expect: store.Expect{Epoch: l.epoch}, Events: []store.Event{l.next(store.Event{Type: store.WorkflowCompleted})},
				Row: &store.RowPatch{Status: &status}, Yield: true}
			if err := st.Commit(ctx, []store.Change{end})[0]; err != nil {
				return err
			}
		}
		left, err := st.Count(ctx, store.Filter{Queues: []string{"mail"}, Statuses: []store.Status{store.Pending, store.Running, store.Resuming}}, "")
		if err != nil {
			return err
		}
		if left[""] == 0 {
			return nil
		}
	}
}

// Processes that take from one queue, one of which is killed, keep its limits together.
func TestProcessesKeepTheLimitsOfAQueueTogether(t *testing.T) {
	path, dir := file(t), filepath.Join(t.TempDir(), "placed")
	require.NoError(t, os.Mkdir(dir, 0o700))
	st := open(t, path, sqlite.Options{})
	inLine(t, st, 60)
	const most, rate, per = 3, 8, 50 * time.Millisecond
	require.NoError(t, st.PutQueue(t.Context(), store.Queue{Name: "mail", Max: most, MaxPerPartition: 2, Rate: rate, Per: per}))
	var children []*child
	for range 4 {
		children = append(children, spawn(t, "queue", path, dir))
	}
	require.Eventually(t, func() bool {
		n, err := st.Count(t.Context(), store.Filter{Statuses: []store.Status{store.Completed}}, "")
		return err == nil && n[""] >= 10
	}, 30*time.Second, time.Millisecond)
	children[0].kill(t)
	for _, c := range children[1:] {
		require.NoError(t, c.cmd.Wait())
	}
	notes, err := os.ReadFile(dir + ".notes")
	require.NoError(t, err)
	var at []int64
	for line := range strings.Lines(string(notes)) {
		what, n := fields(t, line)
		if what == "began" {
			at = append(at, n)
		} else {
			require.LessOrEqual(t, n, int64(most), "places")
		}
	}
	slices.Sort(at)
	require.GreaterOrEqual(t, len(at), 58, "all have noted when they began, but for two that the killed process may have just taken")
	for i := range at[:len(at)-rate] {
		require.GreaterOrEqual(t, at[i+rate]-at[i], per.Microseconds(), "%d in less than %v", rate+1, per)
	}
	n, err := st.Count(t.Context(), store.Filter{}, store.ByStatus)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"completed": 60}, n)
}

// A store of the first schema is brought up to date while programs of then write to it.
func TestAStoreWithoutQueuesIsMigratedWithWritersAtWork(t *testing.T) {
	path := file(t)
	old := open(t, path, sqlite.Options{}.Knows(1))
	used(t, old)
	for i := range 6 {
		_, c := create(fmt.Sprint("queued", i), func(r *store.Run) {
			r.Queue, r.Partition, r.Priority = "mail", string(rune('a'+i%2)), int32(i%3)
			if i == 5 {
				r.Status = store.Running
			}
		})
		commit(t, old, c)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	written := make([]int, 3)
	for i := range written {
		l, c := create(fmt.Sprint("writer", i), func(r *store.Run) { r.Status, r.Owner = store.Running, "writer" })
		commit(t, old, c)
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := old.Commit(context.Background(), []store.Change{l.plain(1)})[0]; err != nil {
					t.Errorf("a writer beside the migration: %v", err)
					return
				}
				written[i]++
			}
		})
	}
	m, err := schemaOf(t, path, sqlite.Options{}).Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{1, newest(t)}, []int{m.From, m.To})
	fresh := open(t, path, sqlite.Options{})
	require.NoError(t, fresh.PutQueue(t.Context(), store.Queue{Name: "mail", Max: 4}))
	e := executor("e")
	beat(t, fresh, e)
	runs, err := claimMail(t.Context(), fresh, e, 100)
	require.NoError(t, err)
	var mail []string
	for _, r := range runs {
		if r.Queue == "mail" {
			mail = append(mail, r.ID)
		}
	}
	require.Equal(t, []string{"queued2", "queued1", "queued4"}, mail, "one place is taken; of a, of b, of a")
	close(stop)
	writers.Wait()
	for i, n := range written {
		_, events := load(t, fresh, fmt.Sprint("writer", i))
		require.GreaterOrEqual(t, len(events), n+1, "nothing that was acknowledged is lost")
	}
	st, err := fresh.Queues(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{4, 2}, []int64{st[0].Placed, st[0].InLine})
	require.Equal(t, everything(t, old), everything(t, fresh))
	require.Equal(t, "ok", ask[string](t, path, "PRAGMA integrity_check"))
}

// So that a claim of many runs is not followed by a load of each.
func TestAClaimHandsOverTheHistoryOfRunsThatNobodyHasBegun(t *testing.T) {
	st := open(t, file(t), sqlite.Options{})
	for i, payload := range []string{"small", strings.Repeat("x", 1<<15), "small"} {
		id := fmt.Sprint("r", i)
		_, c := create(id, nil)
		c.Events[0].Payload = []byte(payload)
		c.Events[0].Sum = store.Seal(id, 0, &c.Events[0])
		commit(t, st, c)
	}
	e := executor("e")
	beat(t, st, e)
	got := map[string]string{}
	runs, err := st.Claim(t.Context(), store.Claim{
		Executor: "e", Serves: e.Serves, Max: 10, Created: func(id string, e store.Event) { got[id] = string(e.Payload) },
	})
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.Equal(t, map[string]string{"r0": "small", "r2": "small"}, got, "without the large one")
}

// A claim that uses the rate up reads no more of the line than what it takes, however many
// partitions there are.
func TestAClaimThatUsesTheRateUpLeavesTheRestOfTheLineAlone(t *testing.T) {
	st := open(t, file(t), sqlite.Options{Synchronous: sqlite.Off})
	e := executor("e")
	beat(t, st, e)
	var batch []store.Change
	for i := range 3000 {
		_, c := create(fmt.Sprintf("r%04d", i), func(r *store.Run) { r.Queue, r.Partition = "q", fmt.Sprintf("p%04d", i) })
		batch = append(batch, c)
	}
	for _, err := range st.Commit(t.Context(), batch) {
		require.NoError(t, err)
	}
	require.NoError(t, st.PutQueue(t.Context(), store.Queue{Name: "q", Rate: 3, Per: time.Hour}))
	before, held := st.Counts().Statements, store.Time(0)
	runs, err := st.Claim(t.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: 4, AnyQueue: true, At: created, Held: func(_ string, until store.Time) { held = until }})
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.NotZero(t, held)
	require.Less(t, st.Counts().Statements-before, int64(40))
}
