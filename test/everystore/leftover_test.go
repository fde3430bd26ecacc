package everystore_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// busy is a workflow that leaves nothing out that is kept for going on: failed
// attempts, progress, an exclusive key, a timer, a wait, a branch.
func busy() *durable.Workflow[int, int] {
	return durable.Define("busy", func(ctx context.Context, n int) (int, error) {
		v, err := durable.Retry(ctx, "retried", durable.Policy{MaxAttempts: 3, Initial: time.Millisecond}, func(ctx context.Context) (int, error) {
			if err := durable.SaveProgress(ctx, durable.Attempt(ctx).Number); err != nil {
				return 0, err
			}
			durable.Note(ctx, "seen", "yes")
			if durable.Attempt(ctx).Number < 3 {
				return 0, errors.New("not yet")
			}
			return n, nil
		})
		if err != nil {
			return 0, err
		}
		side := durable.Go(ctx, "side", func(ctx context.Context) (int, error) {
			return 1, durable.Sleep(ctx, 10*time.Millisecond)
		})
		more, err := durable.Await[int](ctx, "more", durable.Timeout(time.Hour))
		if err != nil {
			return 0, err
		}
		one, err := side.Wait(ctx)
		return v + more + one, err
	})
}

// Nothing is kept for resuming but the history itself. When a run has completed,
// what made it claimable and kept others out is gone from its row and from the
// store, by the change that recorded the end; its history and result stay, until
// Clean removes the run as a whole.
func TestACompletedRunKeepsItsHistoryAndNothingThatOnlyResumingNeeds(t *testing.T) {
	onEach(t, func(t *testing.T, b backend, d *data) {
		wf := busy()
		p := d.program(t, wf)
		complete(t, p, d, wf, "r")
		row, events := d.log(t, "r")
		require.Equal(t, store.Completed, row.Status)
		require.Equal(t, []any{"", store.Time(0), false, false, "", "", int32(0)},
			[]any{row.Owner, row.WakeAt, row.CancelAsked, row.Paused, row.Code, row.Reason, row.Strikes}, "nobody will look at it again")
		require.NotEmpty(t, events)
		rows, err := d.outside.Claim(context.Background(), store.Claim{Executor: p.eng.ID(), Max: 10, Serves: []store.Served{{Workflow: "busy", Versions: []string{durable.DefaultVersion}}}})
		require.NoError(t, err)
		require.Empty(t, rows, "it is nobody's work any more")
		complete(t, p, d, wf, "next") // the key is free
		_, now := d.log(t, "r")
		require.Equal(t, events, now, "no event was taken away")
		out, err := wf.Handle(p, "r")
		require.NoError(t, err)
		n, err := out.Wait(p)
		require.NoError(t, err)
		require.Equal(t, 10, n)

		c, err := operate.On(p.eng).Clean(p, operate.CleanOptions{All: true, Statuses: []store.Status{store.Completed}})
		require.NoError(t, err)
		require.GreaterOrEqual(t, c.Runs, 2)
		_, err = d.outside.Load(context.Background(), "r", store.Cursor{})
		require.ErrorIs(t, err, store.ErrNotFound, "as a whole")
	})
}

func complete(t *testing.T, p program, d *data, wf *durable.Workflow[int, int], id string) {
	t.Helper()
	run, err := wf.Start(p, id, 7, durable.Exclusive("tree"))
	require.NoError(t, err)
	d.awaits(t, id, store.Waiting)
	require.NoError(t, durable.Signal(p, id, "more", 2))
	n, err := run.Wait(p)
	require.NoError(t, err)
	require.Equal(t, 10, n)
}

// The same, table by table: after completion a SQLite file has the row, the
// events and the message that was taken, which is part of the history; and after
// Clean nothing at all.
func TestTablesHoldTheHistoryOfACompletedRunAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.db")
	d := &data{place: place{open: func() (store.Store, error) { return sqlite.Open(path) }}}
	st, err := d.open()
	require.NoError(t, err)
	d.outside = st
	defer d.close(t)
	wf := busy()
	p := d.program(t, wf)
	db, err := sql.Open("sqlite3", path)
	require.NoError(t, err)
	defer db.Close()
	count := func() map[string]int {
		n := map[string]int{}
		for _, table := range []string{"runs", "events", "branches", "inbox", "attributes", "holds"} {
			var k int
			require.NoError(t, db.QueryRow("SELECT count(*) FROM durable_"+table).Scan(&k))
			if k > 0 {
				n[table] = k
			}
		}
		return n
	}
	complete(t, p, d, wf, "r")
	_, events := d.log(t, "r")
	require.Equal(t, map[string]int{"runs": 1, "events": len(events), "inbox": 1}, count())
	_, err = operate.On(p.eng).Clean(p, operate.CleanOptions{All: true, Statuses: []store.Status{store.Completed}})
	require.NoError(t, err)
	require.Empty(t, count())
}
