package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// resting fills a store with runs as they lie about: most are done, every
// twentieth has failed, every hundredth asks somebody, and one is paused.
func resting(t *testing.T, s store.Store, n int) {
	t.Helper()
	var batch []store.Change
	for i := range n {
		r := &runLog{id: fmt.Sprintf("r%05d", i)}
		c := r.create("")
		run := c.Create
		run.Reason = strings.Repeat("carrier: 503 Service Unavailable; ", 15) // rows as wide as they come
		switch {
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

// rested makes a database with 5,000 such runs and no statistics of them, and waits
// until the server has counted what that took: it does so with some delay, and when
// a session ends at the latest.
func rested(t *testing.T, dsn string) *sqlx.DB {
	t.Helper()
	const runs = 5000
	s := open(t, dsn)
	db := raw(t, dsn)
	db.MustExec("ALTER TABLE durable_runs SET (autovacuum_enabled = off)")
	resting(t, s, runs)
	require.NoError(t, s.Close())
	require.Eventually(t, func() bool {
		var inserted, sessions int
		require.NoError(t, db.QueryRow(`SELECT (SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'durable_runs'),
			(SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())`).Scan(&inserted, &sessions))
		return inserted == runs && sessions == 0
	}, 30*time.Second, 50*time.Millisecond)
	return db
}

// Lists and pages ask how many runs there are of each kind, and for the few of a
// rare one. With many runs that must not mean reading all of them each time.
func TestCountsAndRareKindsAreReadFromAnIndex(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	db := rested(t, dsn)
	// What was committed in the company of notices, which do not wait for the disk,
	// cannot be marked as seen by all before these are there, too.
	require.Eventually(t, func() bool {
		db.MustExec("VACUUM (ANALYZE) durable_runs")
		var seen bool
		require.NoError(t, db.Get(&seen, "SELECT relallvisible = relpages FROM pg_class WHERE relname = 'durable_runs'"))
		return seen
	}, 30*time.Second, 50*time.Millisecond)
	scans := func() (n [2]int) {
		require.NoError(t, db.QueryRow(`SELECT (SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'durable_runs'),
			(SELECT sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname IN ('durable_runs_kind_idx', 'durable_runs_status_idx', 'durable_runs_paused_idx'))`).Scan(&n[0], &n[1]))
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
