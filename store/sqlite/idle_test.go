//go:build cgo

package sqlite_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// An engine with nothing to do may send 0.2 statements a second.
func TestAnIdleEngineHardlyAsksTheDatabase(t *testing.T) {
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		st := open(t, path, sqlite.Options{Synchronous: sqlite.Off, Watch: -1})
		done := durable.Define("done", func(context.Context, int) (int, error) { return 0, nil })
		sleeps := durable.Define("sleeps", func(ctx context.Context, _ int) (int, error) {
			return 0, durable.Sleep(ctx, 24*time.Hour)
		})
		eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{done, sleeps}})
		require.NoError(t, err)
		defer func() { require.NoError(t, eng.Close()) }()
		ctx := durable.NewContext(t.Context(), eng)
		_, err = durable.Recover(ctx)
		require.NoError(t, err)
		_, err = done.Run(ctx, "done", 0)
		require.NoError(t, err)

		hour := func() int64 {
			time.Sleep(time.Minute) // what was done settles
			synctest.Wait()
			before := st.Counts().Statements
			time.Sleep(time.Hour)
			synctest.Wait()
			return st.Counts().Statements - before
		}
		require.LessOrEqual(t, hour(), int64(3600*0.2))
		_, err = sleeps.Start(ctx, "sleeps", 0)
		require.NoError(t, err)
		require.LessOrEqual(t, hour(), int64(3600*0.25), "with a run that sleeps: every second beat it looks at what it owns")
	})
}

// counted returns what a beat has found, and with how many statements.
func counted(t *testing.T, st *sqlite.Store, e store.Executor) (store.Pulse, int64) {
	t.Helper()
	before := st.Counts().Statements
	p, err := st.Beat(t.Context(), e)
	require.NoError(t, err)
	return p, st.Counts().Statements - before
}

func TestABeatIsOneStatementWhileNobodyWrites(t *testing.T) {
	path := file(t)
	now := time.Now()
	o := sqlite.Options{Clock: func() time.Time { return now }}
	st, other := open(t, path, o), open(t, path, o)
	x := executor("x")
	x.Lease = time.Hour // so that nothing but what is tested makes a beat look
	quiet := func() store.Pulse {
		t.Helper()
		now = now.Add(time.Second)
		p, n := counted(t, st, x)
		require.EqualValues(t, 1, n)
		require.Equal(t, store.TimeOf(now), p.Now)
		return p
	}
	looks := func() store.Pulse {
		t.Helper()
		now = now.Add(time.Second)
		p, n := counted(t, st, x)
		require.Greater(t, n, int64(1))
		return p
	}
	looks()
	quiet()
	require.Zero(t, quiet().Next)

	// Another handle writes.
	_, c := create("later", func(r *store.Run) { r.WakeAt = store.TimeOf(now.Add(time.Minute)) })
	require.NoError(t, other.Commit(t.Context(), []store.Change{c})[0])
	due := c.Create.WakeAt
	require.Equal(t, due, looks().Next)
	require.Equal(t, due, quiet().Next)

	// The time of a run comes.
	now = now.Add(time.Minute)
	require.True(t, looks().Due)
	require.True(t, quiet().Due)

	// This handle writes.
	_, c = create("now", nil)
	require.NoError(t, st.Commit(t.Context(), []store.Change{c})[0])
	looks()
	quiet()

	// Another executor comes, beats, and is silent for its lease. Both its beats are writes.
	y := executor("y")
	for range 2 {
		_, err := other.Beat(t.Context(), y)
		require.NoError(t, err)
		looks()
	}
	runs, err := other.Claim(t.Context(), store.Claim{Executor: "y", Serves: x.Serves, Max: 1})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Empty(t, looks().Gone)
	now = now.Add(y.Lease)
	require.Equal(t, []string{"y"}, looks().Gone)
	require.Equal(t, []string{"y"}, quiet().Gone)

	// What it says of itself changes.
	x.Name = "renamed"
	looks()
	quiet()

	// Its lease has run out.
	now = now.Add(x.Lease)
	p, _ := counted(t, st, x)
	require.True(t, p.Late)
	require.False(t, quiet().Late)
}
