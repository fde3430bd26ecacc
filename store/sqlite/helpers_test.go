//go:build cgo

package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func file(t testing.TB) string { return filepath.Join(t.TempDir(), "app.db") }

// open opens a store that is closed, and leaves nothing running, at the end.
func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	st, err := sqlite.OpenOptions(path, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	return st
}

func noLeak(t testing.TB) {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

// log writes a run's events one after the other, sealed.
type log struct {
	run   string
	epoch int64
	last  store.Event
}

const created = store.Time(1_800_000_000_000_000)

// create returns the log of a new run, and the Change that creates it.
func create(run string, change func(*store.Run)) (*log, store.Change) {
	row := &store.Run{
		ID: run, Workflow: "w", InitialVersion: "1", Version: "1", Status: store.Pending, Epoch: int64(created), CreatedAt: created,
	}
	if change != nil {
		change(row)
	}
	l := &log{run: run, epoch: row.Epoch}
	return l, store.Change{
		RunID: run, Expect: store.Expect{Absent: true}, Create: row,
		Events: []store.Event{l.next(store.Event{Type: store.WorkflowCreated, Payload: []byte(`{"a":1}`)})},
	}
}

// next seals e behind the events so far.
func (l *log) next(e store.Event) store.Event {
	e.Seq = l.last.Seq + 1
	if e.At < l.last.At {
		e.At = l.last.At
	}
	if e.At == 0 {
		e.At = created
	}
	e.Sum = store.Seal(l.run, l.last.Sum, &e)
	e.Epoch = l.epoch
	l.last = e
	return e
}

func (l *log) step(key string) store.Event {
	return l.next(store.Event{Type: store.StepCompleted, Key: key, Attempt: 1, Ordinal: 1, Took: time.Millisecond, Payload: []byte(`42`)})
}

// plain is a checkpoint of n events.
func (l *log) plain(n int) store.Change {
	c := store.Change{RunID: l.run, Expect: store.Expect{Epoch: l.epoch}}
	for range n {
		c.Events = append(c.Events, l.step("charge"))
	}
	return c
}

// claimed follows a claim.
func (l *log) claimed(r store.Run) {
	l.epoch, l.last = r.Epoch, *r.Last
}

func commit(t testing.TB, st store.Store, c store.Change) {
	t.Helper()
	require.NoError(t, st.Commit(t.Context(), []store.Change{c})[0])
}

func refuse(t testing.TB, st store.Store, c store.Change, want error) {
	t.Helper()
	require.ErrorIs(t, st.Commit(t.Context(), []store.Change{c})[0], want)
}

// start creates a run and returns its log.
func start(t testing.TB, st store.Store, run string) *log {
	t.Helper()
	l, c := create(run, nil)
	commit(t, st, c)
	return l
}

func load(t testing.TB, st store.Store, run string) (*store.History, []store.Event) {
	t.Helper()
	h, err := st.Load(t.Context(), run, store.Cursor{All: true})
	require.NoError(t, err)
	var events []store.Event
	for e, err := range h.Events {
		require.NoError(t, err)
		events = append(events, e)
	}
	return h, events
}

// sound checks that a log has no gap and an unbroken chain of sums.
func sound(t testing.TB, run string, events []store.Event) {
	t.Helper()
	sum := uint32(0)
	for i := range events {
		require.EqualValues(t, i+1, events[i].Seq, run)
		require.Equal(t, store.Seal(run, sum, &events[i]), events[i].Sum, "%s: event %d", run, i+1)
		sum = events[i].Sum
	}
}

func executor(id string) store.Executor {
	return store.Executor{ID: id, Name: id, Host: "h", Boot: "b", PID: 1, Lease: time.Minute, Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}}}
}

func beat(t testing.TB, st store.Store, e store.Executor) store.Pulse {
	t.Helper()
	p, err := st.Beat(t.Context(), e)
	require.NoError(t, err)
	return p
}

func claim(t testing.TB, st store.Store, e store.Executor, ids ...string) []store.Run {
	t.Helper()
	runs, err := st.Claim(t.Context(), store.Claim{Executor: e.ID, Serves: e.Serves, Max: 1000, IDs: ids, At: created})
	require.NoError(t, err)
	return runs
}
