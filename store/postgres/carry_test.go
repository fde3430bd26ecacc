package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// running creates runs that "e" executes.
func running(t *testing.T, s *postgres.Store, n int) []*runLog {
	t.Helper()
	var runs []*runLog
	for i := range n {
		runs = append(runs, &runLog{id: fmt.Sprintf("r%02d", i)})
		commit(t, s, runs[i].create("e"))
	}
	return runs
}

// The end of a run is one round trip, and so are the steps and ends of many.
func TestStepsAndEndsOfManyRunsAreOneStatement(t *testing.T) {
	s := fresh(t)
	runs := running(t, s, 20)
	var batch []store.Change
	for i, r := range runs {
		if i%2 == 1 {
			batch = append(batch, r.step([]byte("x")))
			continue
		}
		c := r.complete()
		c.Release, c.Expect.NoCancel = true, true
		batch = append(batch, c)
	}
	before := s.Counts()
	commit(t, s, batch...)
	after := s.Counts()
	require.LessOrEqual(t, after.Statements-before.Statements, int64(2), "with a notice, which is sent beside it")
	require.EqualValues(t, 1, after.Commits-before.Commits)
	for i, r := range runs {
		h, events := load(t, s, r.id)
		require.Len(t, events, 2)
		if i%2 == 0 {
			require.Equal(t, store.Completed, h.Run.Status)
			require.Empty(t, h.Run.Owner)
			require.Equal(t, r.epoch+1, h.Run.Epoch)
			require.Equal(t, *batch[i].Row.EndedAt, h.Run.EndedAt)
			require.GreaterOrEqual(t, h.Run.UpdatedAt, h.Run.CreatedAt)
		} else {
			require.Equal(t, store.Running, h.Run.Status)
			require.Equal(t, "e", h.Run.Owner)
		}
	}
	commit(t, s, batch...) // again: nothing changes (S6)
	for _, r := range runs {
		_, events := load(t, s, r.id)
		require.Len(t, events, 2)
	}
}

// Those that are refused hold up none of the others, and say why.
func TestAmongStepsAndEndsEachIsRefusedAlone(t *testing.T) {
	s := fresh(t)
	runs := running(t, s, 8)
	commit(t, s, store.Change{Send: []store.Message{{To: runs[1].id, Kind: store.KindCancel, ID: "1", At: 1}}})
	ended := *runs[2]
	commit(t, s, ended.complete())
	step := *runs[3]
	commit(t, s, step.step(nil))
	end := func(i int) store.Change {
		c := runs[i].complete()
		c.Expect.NoCancel = true
		return c
	}
	inbox := int64(7)
	batch := []store.Change{end(0), end(1), end(2), end(3), end(4), end(5), {}, runs[6].step(nil), runs[7].step(nil)}
	batch[4].Expect.Inbox = &inbox
	batch[5].Expect.Epoch++
	batch[6] = (&runLog{id: "nobody", epoch: 1, seq: 1}).complete()
	batch[8].Expect.Epoch++
	errs := s.Commit(t.Context(), batch)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], store.ErrCancelAsked)
	require.ErrorIs(t, errs[2], store.ErrFenced)
	require.ErrorIs(t, errs[3], store.ErrFenced)
	require.ErrorIs(t, errs[4], store.ErrFenced)
	require.ErrorIs(t, errs[5], store.ErrFenced)
	require.ErrorIs(t, errs[6], store.ErrNotFound)
	require.NoError(t, errs[7])
	require.ErrorIs(t, errs[8], store.ErrFenced)
}

// What the row says is checked once it is locked, and not as it was when the statement
// began: a message, a claim or an end comes in while it waits.
func TestAnEndThatWaitsForItsRowSeesWhatCameMeanwhile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		meanwhile func(r runLog) store.Change
		want      error
	}{
		"a message": {func(r runLog) store.Change {
			return store.Change{Send: []store.Message{{To: r.id, Kind: store.KindSignal, Name: "n", ID: "1", At: 1}}}
		}, store.ErrFenced},
		"a cancel": {func(r runLog) store.Change {
			return store.Change{Send: []store.Message{{To: r.id, Kind: store.KindCancel, ID: "1", At: 1}}}
		}, store.ErrFenced},
		"a take-over": {func(r runLog) store.Change {
			c := r.complete()
			interrupted := store.Interrupted
			c.Expect.TakeEpoch, c.Yield, c.Row = true, false, &store.RowPatch{Status: &interrupted}
			return c
		}, store.ErrFenced},
		"an event": {func(r runLog) store.Change {
			c := r.step([]byte("other"))
			c.Row = &store.RowPatch{Seen: new(int64)}
			return c
		}, store.ErrFenced},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s := open(t, dsn)
			r := running(t, s, 1)[0]
			tx, err := raw(t, dsn).BeginTxx(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, s.CommitIn(t.Context(), tx, tt.meanwhile(*r)))
			end := r.complete()
			end.Expect.NoCancel, end.Expect.Inbox = true, new(int64)
			got := make(chan error)
			go func() { got <- s.Commit(t.Context(), []store.Change{end})[0] }()
			db := raw(t, dsn)
			require.Eventually(t, func() bool {
				var n int
				require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))
				return n > 0
			}, 20*time.Second, time.Millisecond)
			require.NoError(t, tx.Commit())
			require.ErrorIs(t, <-got, tt.want)
		})
	}
}

// A change that only takes a key leaves no mark in the log. An end that waits for it frees
// that key as well (S25).
func TestAnEndThatWaitsForItsRowFreesAKeyThatWasTakenMeanwhile(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	runs := running(t, s, 2)
	db := raw(t, dsn)
	tx := db.MustBegin()
	defer tx.Rollback()
	hold := func(r *runLog) store.Change {
		return store.Change{RunID: r.id, Expect: store.Expect{Epoch: r.epoch}, Hold: []string{"desk"}}
	}
	require.NoError(t, s.CommitIn(t.Context(), tx, hold(runs[0])))
	end := runs[0].complete()
	end.Release = true
	got := make(chan error)
	go func() { got <- s.Commit(context.Background(), []store.Change{end})[0] }()
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))
		return n > 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-got)
	commit(t, s, hold(runs[1]))
}
