package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/store"
)

// resting fills a store with runs as they lie about: most are done, every
// twentieth has failed, every hundredth asks somebody, and one is paused.
func resting(t *testing.T, s store.Store, n int) {
	t.Helper()
	var batch []store.Change
	for i := range n {
		r := &runLog{id: fmt.Sprintf("r%05d", i)}
		c := r.create("")
		switch run := c.Create; {
		case i%20 == 1:
			run.Status, run.Code = store.Failed, "error"
		case i%100 == 2:
			run.Status, run.Code, run.Paused = store.Waiting, "approval", i == 2
		case i%4 == 0:
			run.Status = store.Waiting
		default:
			run.Status = store.Completed
		}
		if batch = append(batch, c); len(batch) == 250 || i == n-1 {
			commit(t, s, batch...)
			batch = batch[:0]
		}
	}
}

// Lists and pages ask how many runs there are of each kind, and for the few of a
// rare one. With many runs that must not mean reading all of them each time.
func TestCountsAndRareKindsAreReadFromAnIndex(t *testing.T) {
	dsn := pgtest.DSN(t)
	filler := open(t, dsn)
	resting(t, filler, 5000)
	require.NoError(t, filler.Close())
	db := raw(t, dsn)
	db.MustExec("VACUUM (ANALYZE) durable_runs")
	// The server counts with some delay, and when a session ends at the latest.
	scans := func() (n [2]int) {
		require.NoError(t, db.QueryRow(`SELECT (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'durable_runs'),
			(SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname IN ('durable_runs_kind_idx', 'durable_runs_paused_idx'))`).Scan(&n[0], &n[1]))
		return n
	}
	before := scans()

	s := open(t, dsn)
	rest := []store.Status{store.Pending, store.Waiting, store.Interrupted}
	asked := 0
	count := func(f store.Filter, by string, want map[string]int64) {
		t.Helper()
		got, err := s.Count(t.Context(), f, by)
		require.NoError(t, err)
		require.Equal(t, want, got)
		asked++
	}
	list := func(f store.Filter, want int) {
		t.Helper()
		page, err := s.List(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, page.Runs, want)
		asked++
	}
	count(store.Filter{}, store.ByStatus, map[string]int64{"completed": 3450, "failed": 250, "waiting": 1300})
	count(store.Filter{}, store.ByWorkflow, map[string]int64{"w": 5000})
	count(store.Filter{Statuses: rest}, store.ByWorkflow, map[string]int64{"w": 1300})
	count(store.Filter{Statuses: rest}, store.ByVersion, map[string]int64{"1": 1300})
	count(store.Filter{Statuses: []store.Status{store.Failed}}, store.ByCode, map[string]int64{"error": 250})
	count(store.Filter{Statuses: []store.Status{store.Waiting}, Codes: []string{"approval"}}, "", map[string]int64{"": 50})
	list(store.Filter{Statuses: []store.Status{store.Failed}, Codes: []string{"quarantined"}}, 0)
	list(store.Filter{Statuses: []store.Status{store.Cancelled}}, 0)
	list(store.Filter{Statuses: rest, Paused: true}, 1)
	list(store.Filter{Statuses: rest, Workflows: []string{"elsewhere"}}, 0)
	require.NoError(t, s.Close())

	require.Eventually(t, func() bool { return scans()[1] >= before[1]+asked }, 30*time.Second, 50*time.Millisecond, "an index is asked each time")
	require.Equal(t, before[0], scans()[0], "the whole table was read")
}
