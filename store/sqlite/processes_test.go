//go:build cgo

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestProcessesThatFightForRunsNeverShareOne(t *testing.T) {
	const processes, runs = 4, 200
	path := file(t)
	st := open(t, path, sqlite.Options{})
	for i := range runs {
		start(t, st, fmt.Sprintf("run-%d", i))
	}
	var children []*child
	for i := range processes {
		c := spawn(t, "claim", path, fmt.Sprintf("e%d", i))
		c.says(t, "ready")
		children = append(children, c)
	}
	for _, c := range children {
		_, err := c.in.Write([]byte("go\n"))
		require.NoError(t, err)
	}
	owner := make(map[string]int)
	for i, c := range children {
		for _, line := range c.rest() {
			id, epoch := fields(t, line)
			other, twice := owner[id]
			require.False(t, twice, "%s was given to e%d and to e%d", id, other, i)
			require.Equal(t, int64(created)+1, epoch, id)
			owner[id] = i
		}
		require.NoError(t, c.cmd.Wait())
	}
	require.Len(t, owner, runs, "none was lost")
	for id := range owner {
		_, events := load(t, st, id)
		require.Len(t, events, 2)
		sound(t, id, events)
	}
}

func TestOneOfManyProcessesCreatesTheSchema(t *testing.T) {
	path := file(t)
	var children []*child
	for range 6 {
		children = append(children, spawn(t, "open", path, ""))
	}
	for _, c := range children {
		require.NoError(t, c.cmd.Wait())
	}
	db := connect(t, path, "")
	require.Equal(t, newest(t), value[int](t, db, "SELECT count(*) FROM durable_schema"))
	start(t, open(t, path, sqlite.Options{}), "r")
}

func lockFiles(t testing.TB, path string) []string {
	t.Helper()
	files, err := filepath.Glob(path + ".executors/*.lock")
	require.NoError(t, err)
	return files
}

func TestARunOfAKilledProcessIsTakenAtOnce(t *testing.T) {
	path := file(t)
	st := open(t, path, sqlite.Options{})
	require.Equal(t, "file lock", st.PresenceKind())
	start(t, st, "r")
	c := spawn(t, "hold", path, "victim")
	c.says(t, "holds 1")
	e := executor("heir")
	require.Empty(t, beat(t, st, e).Gone)
	require.Empty(t, claim(t, st, e, "r"), "its owner lives")
	require.Len(t, lockFiles(t, path), 2)
	c.kill(t)
	begin := time.Now()
	orphans, err := st.List(t.Context(), store.Filter{Orphaned: true})
	require.NoError(t, err)
	require.Len(t, orphans.Runs, 1)
	require.Equal(t, []string{"victim"}, beat(t, st, e).Gone)
	runs := claim(t, st, e, "r")
	require.Len(t, runs, 1)
	require.Equal(t, store.Resuming, runs[0].Status)
	require.Less(t, time.Since(begin), time.Minute, "the lease is an hour")
	require.Len(t, lockFiles(t, path), 1, "the dead one's is removed")
	list, err := st.Executors(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.False(t, list[0].Live)
	require.True(t, list[1].Live)
}

func TestPresence(t *testing.T) {
	t.Run("never makes a lease longer", func(t *testing.T) {
		path := file(t)
		var skew atomic.Int64
		o := sqlite.Options{Clock: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }}
		a, b := open(t, path, o), open(t, path, o)
		beat(t, a, executor("e"))
		skew.Add(int64(2 * time.Minute))
		list, err := b.Executors(t.Context())
		require.NoError(t, err)
		require.False(t, list[0].Live)
		require.True(t, beat(t, a, executor("e")).Late)
	})
	t.Run("ends with the handle", func(t *testing.T) {
		path := file(t)
		a, err := sqlite.Open(path)
		require.NoError(t, err)
		b := open(t, path, sqlite.Options{})
		beat(t, a, executor("e"))
		list, err := b.Executors(t.Context())
		require.NoError(t, err)
		require.True(t, list[0].Live, "another handle of the same process sees it too")
		require.NoError(t, a.Close())
		list, err = b.Executors(t.Context())
		require.NoError(t, err)
		require.False(t, list[0].Live)
		require.Empty(t, lockFiles(t, path))
		require.True(t, beat(t, b, executor("e")).Late, "others may have taken its runs")
		list, err = b.Executors(t.Context())
		require.NoError(t, err)
		require.True(t, list[0].Live)
	})
	t.Run("a missing file says nothing", func(t *testing.T) {
		path := file(t)
		a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
		beat(t, a, executor("e"))
		for _, f := range lockFiles(t, path) {
			require.NoError(t, os.Remove(f))
		}
		list, err := b.Executors(t.Context())
		require.NoError(t, err)
		require.True(t, list[0].Live, "the lease decides")
	})
	t.Run("is not believed after another boot", func(t *testing.T) {
		path := file(t)
		a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
		beat(t, a, executor("e"))
		require.NoError(t, a.Close())
		db := connect(t, path, "")
		_, err := db.Exec(`UPDATE durable_executors SET presence = 'another boot'`)
		require.NoError(t, err)
		list, err := b.Executors(t.Context())
		require.NoError(t, err)
		require.True(t, list[0].Live)
	})
	t.Run("can be done without", func(t *testing.T) {
		for _, st := range []*sqlite.Store{open(t, ":memory:", sqlite.Options{}), open(t, file(t), sqlite.Options{NoPresence: true})} {
			require.Empty(t, st.PresenceKind())
			require.Nil(t, store.CapabilitiesOf(st).Presence)
			beat(t, st, executor("e"))
		}
	})
	t.Run("leaving removes the file", func(t *testing.T) {
		path := file(t)
		st := open(t, path, sqlite.Options{})
		e := executor("../../odd name\x01")
		beat(t, st, e)
		require.Len(t, lockFiles(t, path), 1)
		e.Leaving = true
		beat(t, st, e)
		require.Empty(t, lockFiles(t, path))
	})
}

// listen collects notices until the test ends.
func listen(t testing.TB, st *sqlite.Store) <-chan store.Notice {
	t.Helper()
	notices := make(chan store.Notice, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = st.Notify(ctx, func(n store.Notice) { notices <- n }) // ends with the context
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return notices
}

func TestNotices(t *testing.T) {
	noLeak(t)
	path := file(t)
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	own, others := listen(t, a), listen(t, b)
	next := func(from <-chan store.Notice, what string) store.Notice {
		t.Helper()
		select {
		case n := <-from:
			return n
		case <-time.After(time.Minute):
			t.Fatal("no notice: " + what)
			return store.Notice{}
		}
	}
	// From its first notice on a listener hears all.
	require.Empty(t, next(own, "the first").RunIDs, "look at everything")
	require.Empty(t, next(others, "the first of the other handle").RunIDs, "look at everything")
	l := start(t, a, "r")
	require.Contains(t, next(own, "own commit").RunIDs, "r")
	foreign := next(others, "another handle's commit")
	require.Equal(t, store.Notice{RunIDs: []string{"r"}, News: store.NewsClaimable}, foreign)
	// Steps are nobody's business, and one's own acts are not told twice.
	before, began := a.Counts(), time.Now()
	for range 50 {
		commit(t, a, l.plain(1))
	}
	after := a.Counts()
	looks := after.Reads - before.Reads // for requests, of which a listener learns from the WAL alone
	require.EqualValues(t, 50, after.Statements-before.Statements-looks, "one statement a step")
	require.EqualValues(t, 50, after.Commits-before.Commits)
	require.LessOrEqual(t, looks, 1+int64(time.Since(began)/(20*time.Millisecond)), "no more than one look in Options.Watch")
	beat(t, a, executor("e"))
	time.Sleep(100 * time.Millisecond) // five looks: what should not come would have
	require.Empty(t, own)
	require.Empty(t, others)
	idle := a.Counts()
	time.Sleep(50 * time.Millisecond)
	require.Equal(t, idle, a.Counts(), "idle: no statements")
}

func TestClosingDoesNotNeedTheDatabase(t *testing.T) {
	noLeak(t)
	path := file(t)
	a, err := sqlite.Open(path)
	require.NoError(t, err)
	beat(t, a, executor("e"))
	tx, err := connect(t, path, "_txlock=immediate").Begin()
	require.NoError(t, err)
	blocked := make(chan error, 1)
	go func() {
		_, err := a.Beat(context.Background(), executor("e"))
		blocked <- err
	}()
	time.Sleep(10 * time.Millisecond) // usually it is waiting by then; it need not
	require.NoError(t, a.Close())
	require.ErrorIs(t, <-blocked, store.ErrClosed)
	require.NoError(t, a.Close())
	require.NoError(t, tx.Rollback())
	// There was no way to mark it, but its lock is free.
	b := open(t, path, sqlite.Options{})
	list, err := b.Executors(t.Context())
	require.NoError(t, err)
	require.False(t, list[0].Live)
	require.Len(t, lockFiles(t, path), 1)
	beat(t, b, executor("f"))
	require.Len(t, lockFiles(t, path), 1, "its own; the other's is removed")
}
