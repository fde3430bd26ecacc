package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

func open(t testing.TB, dsn string) *postgres.Store { return openOptions(t, dsn, postgres.Options{}) }

func openOptions(t testing.TB, dsn string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.OpenOptions(dsn, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func fresh(t testing.TB) *postgres.Store { return open(t, pgtest.DSN(t)) }

func raw(t testing.TB, dsn string) *sqlx.DB { return rawWith(t, "postgres", dsn) }

func rawWith(t testing.TB, driver, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// execute runs a statement on a connection that has ended when it returns.
func execute(t testing.TB, dsn, text string, args ...any) {
	t.Helper()
	db := raw(t, dsn)
	defer db.Close()
	db.MustExec(text, args...)
}

// log writes a run's events as the engine would.
type runLog struct {
	id    string
	epoch int64
	seq   int64
	sum   uint32
}

func (r *runLog) event(typ store.Type, key string, payload []byte) store.Event {
	e := store.Event{Seq: r.seq + 1, Type: typ, Key: key, At: store.TimeOf(time.Now()), Attempt: 1, Ordinal: 1, Payload: payload}
	e.Sum = store.Seal(r.id, r.sum, &e)
	r.seq, r.sum = e.Seq, e.Sum
	return e
}

// create returns the Change that makes the run, born claimed by owner.
func (r *runLog) create(owner string) store.Change {
	if r.epoch == 0 {
		r.epoch = time.Now().UnixMicro()
	}
	status := store.Pending
	if owner != "" {
		status = store.Running
	}
	return store.Change{
		RunID: r.id, Expect: store.Expect{Absent: true},
		Create: &store.Run{
			ID: r.id, Workflow: "w", Version: "1", InitialVersion: "1", Status: status, Owner: owner, Epoch: r.epoch,
			CreatedAt: store.TimeOf(time.Now()),
		},
		Events: []store.Event{r.event(store.WorkflowCreated, "", []byte("input"))},
	}
}

func (r *runLog) step(payload []byte) store.Change {
	return store.Change{
		RunID: r.id, Expect: store.Expect{Epoch: r.epoch},
		Events: []store.Event{r.event(store.StepCompleted, fmt.Sprintf("step#%d", r.seq), payload)},
	}
}

func (r *runLog) complete() store.Change {
	status, now := store.Completed, store.TimeOf(time.Now())
	c := store.Change{
		RunID: r.id, Expect: store.Expect{Epoch: r.epoch}, Row: &store.RowPatch{Status: &status, EndedAt: &now},
		Events: []store.Event{r.event(store.WorkflowCompleted, "", []byte("output"))}, Yield: true,
	}
	return c
}

func commit(t testing.TB, s store.Store, changes ...store.Change) {
	t.Helper()
	for i, err := range s.Commit(t.Context(), changes) {
		require.NoError(t, err, "change %d of run %s", i, changes[i].RunID)
	}
}

func load(t testing.TB, s store.Store, id string) (*store.History, []store.Event) {
	t.Helper()
	h, err := s.Load(t.Context(), id, store.Cursor{All: true})
	require.NoError(t, err)
	var events []store.Event
	for e, err := range h.Events {
		require.NoError(t, err)
		events = append(events, e)
	}
	return h, events
}
