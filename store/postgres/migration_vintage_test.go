package postgres_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// appendV3 is the append of a program of schema version 3, as it was.
const appendV3 = `INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
SELECT $1::bigint, $2::bigint, $3::bigint, $4::integer, $5::text, $6::text, $7::integer, $8::integer, $9::bigint, $10::bigint, $11::bigint,
       $12::integer, $13::text, $14::bytea, $15::bigint
WHERE EXISTS (SELECT 1 FROM durable_events p WHERE p.run_no = $1 AND p.seq = $2 - 1 AND p.epoch = $3)
  AND EXISTS (SELECT 1 FROM durable_runs r WHERE r.no = $1)`

// A store as version 3 has left it is brought up to date while programs of then write to it.
func TestAStoreWithoutQueuesIsMigratedWithWritersAtWork(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := raw(t, dsn)
	golden, err := os.ReadFile("testdata/v3.sql")
	require.NoError(t, err)
	db.MustExec(string(golden))
	logs := map[string]*runLog{}
	for _, id := range []string{"is-running", "is-resuming", "is-waiting"} {
		r := &runLog{id: id}
		require.NoError(t, db.QueryRow(`SELECT r.epoch, e.seq, e.sum FROM durable_runs r JOIN durable_events e ON e.run_no = r.no
			WHERE r.id = $1 ORDER BY e.seq DESC LIMIT 1`, id).Scan(&r.epoch, &r.seq, &r.sum))
		logs[id] = r
	}
	var written atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer end()
	for id, r := range logs {
		var no int64
		require.NoError(t, db.Get(&no, "SELECT no FROM durable_runs WHERE id = $1", id))
		st, err := db.Prepare(appendV3)
		require.NoError(t, err)
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				e := r.event(store.StepCompleted, fmt.Sprint("later#", r.seq), []byte("x"))
				res, err := st.ExecContext(context.Background(), no, e.Seq, r.epoch, e.Branch, string(e.Type), e.Key, e.Attempt, e.Ordinal, int64(e.At), 0, 0, 0, nil, e.Payload, int64(e.Sum))
				if err != nil {
					t.Errorf("a writer beside the migration: %v", err)
					return
				}
				if n, _ := res.RowsAffected(); n != 1 {
					t.Errorf("event %d of %s was refused", e.Seq, id)
					return
				}
				written.Add(1)
			}
		})
	}
	more := func() {
		seen := written.Load()
		require.Eventually(t, func() bool { return written.Load() > seen+20 || t.Failed() }, 30*time.Second, time.Millisecond)
	}
	more()
	m, err := schemaOf(t, dsn, postgres.Options{}).Migrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{3, now}, []int{m.From, m.To})
	fresh := open(t, dsn)
	more()
	end()
	all := allRuns(t, fresh) // each log is whole
	for id, r := range logs {
		events := all[id].Events
		require.Equal(t, r.seq, events[len(events)-1].Seq, "nothing that was acknowledged is lost")
	}
	for _, r := range logs { // and goes on under the new program
		commit(t, fresh, r.step(nil))
	}
}
