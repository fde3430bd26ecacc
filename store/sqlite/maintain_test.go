//go:build cgo

package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// ended creates runs that have ended, with a payload of some size.
func ended(t testing.TB, st store.Store, prefix string, n, size int) (ids []string) {
	t.Helper()
	var batch []store.Change
	for i := range n {
		id := fmt.Sprint(prefix, i)
		batch = append(batch, endedRun(id, size))
		ids = append(ids, id)
	}
	for _, err := range st.Commit(t.Context(), batch) {
		require.NoError(t, err)
	}
	return ids
}

func endedRun(id string, size int) store.Change {
	l, c := create(id, func(r *store.Run) { r.Status, r.EndedAt = store.Completed, created+1 })
	for range 3 {
		c.Events = append(c.Events, l.next(store.Event{Type: store.StepCompleted, Key: "k", Payload: make([]byte, size)}))
	}
	c.Create.Attributes = map[string]string{"a": id}
	c.Create.Inbox, c.Create.Seen = 0, 0
	return c
}

func TestMaintenanceGivesTheSpaceOfDeletedRunsBack(t *testing.T) {
	for name, giveBack := range map[string]bool{"given back": true, "used again": false} {
		t.Run(name, func(t *testing.T) {
			path := file(t)
			st := open(t, path, sqlite.Options{Synchronous: sqlite.Off, GiveBack: giveBack})
			size := func() int64 {
				require.NoError(t, st.Maintain(t.Context()))
				info, err := os.Stat(path)
				require.NoError(t, err)
				wal, err := os.Stat(path + "-wal")
				require.NoError(t, err)
				require.Zero(t, wal.Size(), "the WAL is folded in")
				return info.Size()
			}
			empty := size()
			var sizes []int64
			for round := range 4 {
				ids := ended(t, st, fmt.Sprint("r", round, "-"), 100, 20_000)
				full := size()
				require.Greater(t, full, empty+5_000_000)
				n, err := st.Delete(t.Context(), store.Deletion{RunIDs: ids})
				require.NoError(t, err)
				require.Equal(t, 100, n)
				sizes = append(sizes, size())
			}
			if giveBack {
				require.Less(t, sizes[3], empty+200_000)
			} else {
				require.Greater(t, sizes[0], empty+5_000_000, "the file keeps the space")
				require.Less(t, sizes[3], sizes[0]+500_000, "and fills it again")
			}
		})
	}
}

// Statistics may lead SQLite to other plans; with ours none gets worse.
func TestMaintenanceDoesNotChangeHowStatementsAreCarriedOut(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{Synchronous: sqlite.Off})
	for i := range 3 {
		ended(t, st, fmt.Sprint("ended-", i, "-"), 300, 10)
	}
	for i := range 300 {
		_, c := create(fmt.Sprint("open-", i), func(r *store.Run) {
			r.Queue, r.WakeAt, r.Dedup = fmt.Sprint("q", i%3), store.Time(i%5), fmt.Sprint("d", i)
			r.Status = []store.Status{store.Pending, store.Waiting, store.Interrupted}[i%3]
		})
		commit(t, st, c)
	}
	before := plans(t, path, st.Statements())
	require.NoError(t, st.Maintain(t.Context()))
	require.Positive(t, value[int](t, connect(t, path, ""), "SELECT count(*) FROM sqlite_stat1"), "the tables were analyzed")
	after := plans(t, path, st.Statements())
	for name := range before {
		if before[name] != after[name] {
			require.NotContains(t, after[name], "SCAN durable_", "%s was\n%s", name, before[name])
		}
	}
	commit(t, st, start(t, st, "more").plain(2))
}

func plans(t *testing.T, path string, statements map[string]string) map[string]string {
	db := connect(t, path, "")
	all := map[string]string{}
	for name, text := range statements {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))[:parameters(text)]...)
		require.NoError(t, err, name)
		var lines []string
		for rows.Next() {
			var id, parent, unused sql.RawBytes
			var detail string
			require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			lines = append(lines, detail)
		}
		require.NoError(t, rows.Err())
		all[name] = strings.Join(lines, "\n")
	}
	return all
}

// parameters returns the highest number behind a question mark.
func parameters(text string) (n int) {
	for i, c := range text {
		if c == '?' {
			var k int
			if _, err := fmt.Sscanf(text[i:], "?%d", &k); err == nil {
				n = max(n, k)
			}
		}
	}
	return n
}

// childSweeps deletes what has ended, batch by batch, and says which are gone.
func childSweeps(st *sqlite.Store, _ string) error {
	ctx := context.Background()
	out := bufio.NewWriter(os.Stdout)
	for {
		page, err := st.List(ctx, store.Filter{Statuses: []store.Status{store.Completed}, OldestFirst: true, Limit: 10})
		if err != nil || len(page.Runs) == 0 {
			return err
		}
		var ids []string
		for _, r := range page.Runs {
			ids = append(ids, r.ID)
		}
		if _, err := st.Delete(ctx, store.Deletion{RunIDs: ids}); err != nil {
			return err
		}
		for _, id := range ids {
			fmt.Fprintln(out, id)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

// A process that deletes old runs in batches is killed, again and again:
// nothing of a run is left without its row, and an id that is used again begins
// with nothing.
func TestAKillWhileOldRunsAreDeletedLeavesNoOrphans(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{Synchronous: sqlite.Off})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	db := connect(t, path, "_busy_timeout=5000")
	cut := 0
	for life := range 10 {
		all := map[string]bool{}
		for _, id := range ended(t, st, fmt.Sprint("r", life, "-"), 150, 2000) {
			all[id] = true
		}
		c := spawn(t, "sweep", path, "")
		if c.lines.Scan() {
			require.Contains(t, c.lines.Text(), "r")
		}
		time.AfterFunc(time.Duration(random.IntN(4_000))*time.Microsecond, func() { _ = c.cmd.Process.Kill() })
		for _, id := range c.rest() {
			_, err := st.Load(t.Context(), id, store.Cursor{})
			require.ErrorIs(t, err, store.ErrNotFound, "it was said to be gone")
		}
		_ = c.cmd.Wait() // tells of the kill
		for _, table := range []string{"branches", "attributes", "holds"} {
			require.Zero(t, value[int](t, db, "SELECT count(*) FROM durable_"+table+" WHERE run_no NOT IN (SELECT no FROM durable_runs)"), table)
		}
		for _, table := range []string{"events", "inbox"} {
			require.Zero(t, value[int](t, db, "SELECT count(*) FROM durable_"+table+" WHERE place >> 28 NOT IN (SELECT no FROM durable_runs)"), table)
		}
		left := everything(t, st)
		for id := range all {
			if w, ok := left[id]; ok {
				require.Len(t, w.Events, 4, "whole")
				require.Equal(t, map[string]string{"a": id}, w.Run.Attributes)
				continue
			}
			start(t, st, id)
			_, events := load(t, st, id)
			require.Len(t, events, 1)
		}
		if n := len(left); 0 < n && n < len(all) {
			cut++
		}
		var ids []string
		for id := range all {
			ids = append(ids, id)
		}
		_, err := st.Delete(t.Context(), store.Deletion{RunIDs: ids, Force: true})
		require.NoError(t, err)
	}
	t.Logf("%d of 10 were killed in the middle", cut)
	require.Positive(t, cut)
}
