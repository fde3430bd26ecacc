package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// Statements are prepared while the tables of a new database are empty, and the
// server keeps the plan it makes then: it must not be one that reads the whole
// table.
func TestCommitsOfANewDatabaseDoNotReadWholeTables(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	db := raw(t, dsn)
	const batches, size = 40, 50
	for b := range batches {
		var creates, ends []store.Change
		for i := range size {
			r := &runLog{id: fmt.Sprintf("r%d-%d", b, i)}
			creates = append(creates, r.create("me"))
			done := store.Completed
			ends = append(ends, store.Change{
				RunID: r.id, Expect: store.Expect{Epoch: r.epoch}, Yield: true,
				Events: []store.Event{r.event(store.WorkflowCompleted, "", nil)}, Row: &store.RowPatch{Status: &done},
			})
		}
		for _, batch := range [][]store.Change{creates, ends} {
			for _, err := range s.Commit(t.Context(), batch) {
				require.NoError(t, err)
			}
		}
	}
	// The server counts with some delay, and when a session ends at the latest.
	require.NoError(t, s.Close())
	var written, read int
	require.Eventually(t, func() bool {
		require.NoError(t, db.Get(&written, "SELECT coalesce(sum(n_tup_ins), 0) FROM pg_stat_user_tables WHERE relname IN ('durable_runs', 'durable_events')"))
		return written >= 3*batches*size
	}, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, db.Get(&read, "SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname IN ('durable_runs', 'durable_events')"))
	require.Less(t, read, written, "rows were read by scanning whole tables")
}
