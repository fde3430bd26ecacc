package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// fillEnded puts n completed runs into the database, with an attribute that has one of three
// values, and a few runs of other kinds among them.
func fillEnded(t *testing.T, dsn string, n int) {
	t.Helper()
	db := raw(t, dsn)
	defer db.Close()
	db.MustExec(`WITH r AS (
		INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace,
			created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen,
			cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
		SELECT 'r' || i, 'w', '1', '', '', '', '\x', '', '', '', '', 1000 + i, '1', 'completed', '', '', false, '',
			1000 + i, 0, 0, 0, 0, 0, 0, 0, false, false, 0, 1000 + i, 1000 + i, 2000 + i, 0, 0, 1
		FROM generate_series(1, $1::bigint) i RETURNING no, epoch)
	INSERT INTO durable_attributes (run_no, name, value) SELECT no, 'region', 'r' || epoch % 3 FROM r`, n)
	for i, set := range []string{
		"status = 'running', owner = 'gone', ended_at = 0", "status = 'waiting', paused = true, ended_at = 0",
		"status = 'failed', code = 'quarantined'", "status = 'interrupted', code = 'quarantined', ended_at = 0",
		"status = 'waiting', owner = 'gone', inbox = 1, ended_at = 0", "parent = 'p'", "owner = 'kept'",
	} {
		db.MustExec("UPDATE durable_runs SET "+set+" WHERE id = $1", fmt.Sprintf("r%d", 7+i))
	}
	db.MustExec("UPDATE durable_attributes SET value = 'rare' WHERE run_no % 5000 = 0")
	db.MustExec("VACUUM ANALYZE durable_runs, durable_attributes")
}

// A page is read from the index of its filter: it reads a few rows of each that it has, and
// not the other runs.
func TestAPageReadsNoMoreThanItHas(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	require.NoError(t, open(t, dsn).Close())
	fillEnded(t, dsn, 30_000)
	for name, f := range map[string]store.Filter{
		"all":                   {},
		"paused":                {Paused: true, Statuses: []store.Status{store.Pending, store.Waiting, store.Interrupted}},
		"a code":                {Codes: []string{"quarantined"}},
		"a code and a status":   {Codes: []string{"quarantined"}, Statuses: []store.Status{store.Failed}},
		"orphaned":              {Orphaned: true},
		"an owner":              {Owners: []string{"kept"}},
		"an owner, none":        {Owners: []string{"nobody"}},
		"mail":                  {Mail: true},
		"a status":              {Statuses: []store.Status{store.Completed}},
		"two statuses":          {Statuses: []store.Status{store.Failed, store.Waiting}},
		"the children of a run": {Parents: []string{"p"}},
		"an attribute, rare":    {Attributes: map[string]string{"region": "rare"}},
		"an attribute, none":    {Attributes: map[string]string{"region": "nowhere"}},
		"ids":                   {IDs: []string{"r1", "r20000", "none"}},
		"a prefix":              {IDPrefix: "r2999"},
		"a prefix, none":        {IDPrefix: "x"},
		"ended before all":      {EndedTo: 1},
		"ended in a time":       {EndedFrom: 2100, EndedTo: 2200},
		"created in a time":     {CreatedFrom: 1100, CreatedTo: 1200},
		"a common workflow":     {Workflows: []string{"w"}},
	} {
		f.Limit = 10
		read := rowsRead(t, dsn, func(s *storeOf) {
			_, err := s.List(t.Context(), f)
			require.NoError(t, err)
		})
		require.LessOrEqual(t, read, 1000, "a page of %s", name)
	}
}

// Where the planner thinks that many match, because of each filter alone or because runs that have not
// ended have a time of 0, a page of few reads few all the same.
func TestAPageOfFewReadsFew(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	require.NoError(t, open(t, dsn).Close())
	fillEnded(t, dsn, 30_000)
	db := raw(t, dsn)
	db.MustExec("UPDATE durable_runs SET status = 'waiting', workflow = 'x', version = '2', ended_at = 0 WHERE no % 3 = 0 AND no > 100")
	db.MustExec("UPDATE durable_runs SET workflow = 'x' WHERE no % 3 = 1 AND no BETWEEN 1000 AND 1100")
	db.MustExec("VACUUM (FULL, ANALYZE) durable_runs")
	db.MustExec("VACUUM durable_runs")
	require.NoError(t, db.Close())
	some := map[int]map[string]store.Filter{
		0: {
			"a status and a workflow, none":              {Statuses: []store.Status{store.Waiting}, Workflows: []string{"w"}, CreatedFrom: 20_000},
			"two statuses and two workflows, none":       {Statuses: []store.Status{store.Pending, store.Failed}, Workflows: []string{"x", "y"}},
			"a status, a workflow and a version, none":   {Statuses: []store.Status{store.Completed}, Workflows: []string{"x"}, Versions: []string{"2"}},
			"ended before all":                           {EndedTo: 1},
			"ended before all, of a status and workflow": {EndedTo: 1, Statuses: []store.Status{store.Completed}, Workflows: []string{"w"}},
		},
		34: {
			"a status and a workflow":        {Statuses: []store.Status{store.Completed}, Workflows: []string{"x"}},
			"two statuses and a workflow":    {Statuses: []store.Status{store.Completed, store.Failed}, Workflows: []string{"x"}},
			"a status, workflow and version": {Statuses: []store.Status{store.Completed}, Workflows: []string{"x"}, Versions: []string{"1"}},
		},
	}
	for n, filters := range some {
		for name, f := range filters {
			f.Limit = 50
			read := rowsRead(t, dsn, func(s *storeOf) {
				page, err := s.List(t.Context(), f)
				require.NoError(t, err)
				require.Len(t, page.Runs, n, "a page of %s", name)
			})
			require.LessOrEqual(t, read, 1000, "a page of %s", name)
		}
	}
}

// A value that many runs have makes it no dearer to start another one: what an index reads and
// writes for an entry does not grow with how many there are like it.
func TestACommonAttributeMakesNoStartDear(t *testing.T) {
	t.Parallel()
	touched := func(n int) (pages int) {
		dsn := pgtest.DSN(t)
		require.NoError(t, open(t, dsn).Close())
		fillEnded(t, dsn, n)
		const blocks = `SELECT coalesce(sum(idx_blks_read + idx_blks_hit), 0) FROM pg_statio_user_tables WHERE relname = 'durable_attributes'`
		return tally(t, dsn, blocks, func(s *storeOf) {
			for i := range 20 {
				r := &runLog{id: fmt.Sprintf("new-%d", i)}
				c := r.create("me")
				c.Create.Attributes = map[string]string{"region": "r1"}
				for _, err := range s.Commit(t.Context(), []store.Change{c}) {
					require.NoError(t, err)
				}
			}
		})
	}
	few, many := touched(1_000), touched(40_000)
	t.Logf("%d pages of indexes with 1,000 runs, %d with 40,000", few, many)
	require.Less(t, many, 2*few+40)
}
