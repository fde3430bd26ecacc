package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// Many executors on handles of their own claim from one queue with a limit, and
// end what they got. At no moment are more executed than the limit says.
func TestTheLimitOfAQueueIsExactUnderConcurrency(t *testing.T) {
	dsn := pgtest.DSN(t)
	const runs, limit, claimers = 40, 3, 6
	s := open(t, dsn)
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q", Max: limit}))
	logs := map[string]*runLog{}
	for i := range runs {
		r := &runLog{id: fmt.Sprintf("r%d", i)}
		c := r.create("")
		c.Create.Queue = "q"
		c.Create.Attributes = map[string]string{"n": fmt.Sprint(i)}
		commit(t, s, c)
		logs[r.id] = r
	}
	var mu sync.Mutex
	executing, most, done := 0, 0, 0
	var all sync.WaitGroup
	for i := range claimers {
		h := openOptions(t, dsn, postgres.Options{Writers: 2, NoPresence: true})
		id := fmt.Sprint("e", i)
		beat(t, h, executor(id, time.Minute))
		all.Go(func() {
			for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
				got, err := h.Claim(t.Context(), store.Claim{
					Executor: id, Serves: serves, Max: 2, Queues: []store.QueueRoom{{Queue: "q", Max: -1}},
				})
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				executing += len(got)
				most = max(most, executing)
				left := runs - done
				mu.Unlock()
				if left == 0 {
					return
				}
				for _, run := range got {
					r := logs[run.ID]
					if run.Attributes["n"] != run.ID[1:] {
						t.Errorf("attributes of %s: %v", run.ID, run.Attributes)
					}
					r.epoch, r.seq, r.sum = run.Epoch, run.Last.Seq, run.Last.Sum
					// Counted before it is true, so that the count is never too high.
					mu.Lock()
					executing--
					done++
					mu.Unlock()
					for _, err := range h.Commit(t.Context(), []store.Change{r.complete()}) {
						if err != nil {
							t.Errorf("complete: %v", err)
						}
					}
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, runs, done)
	require.LessOrEqual(t, most, limit)
	counts, err := s.Count(t.Context(), store.Filter{}, store.ByStatus)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"completed": runs}, counts)
}

// Who waits for a run's lock must not judge the owner it finds then by who was
// live before (S20).
func TestAnOwnerThatCameWhileAClaimWaitedIsSeen(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	r := &runLog{id: "r"}
	commit(t, s, r.create(""))
	beat(t, s, executor("waits", time.Minute))
	db := raw(t, dsn)
	tx := db.MustBegin()
	defer tx.Rollback()
	tx.MustExec("SELECT 1 FROM durable_runs WHERE id = 'r' FOR UPDATE")
	claimed := make(chan []store.Run, 1)
	go func() {
		runs, err := s.Claim(context.Background(), store.Claim{Executor: "waits", Serves: serves, Max: 1, IDs: []string{"r"}})
		if err != nil {
			t.Errorf("claim: %v", err)
		}
		claimed <- runs
	}()
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))
		return n == 1
	}, 10*time.Second, time.Millisecond)
	beat(t, s, executor("came", time.Minute))
	tx.MustExec("UPDATE durable_runs SET owner = 'came', status = 'running' WHERE id = 'r'")
	require.NoError(t, tx.Commit())
	require.Empty(t, <-claimed)
}

// So that a claim of many runs is not followed by a load of each.
func TestAClaimHandsOverTheHistoryOfRunsThatNobodyHasBegun(t *testing.T) {
	s := open(t, pgtest.DSN(t))
	for i, payload := range []string{"small", strings.Repeat("x", 1<<15), "small"} {
		r := &runLog{id: fmt.Sprint("r", i)}
		c := r.create("")
		c.Events[0].Payload = []byte(payload)
		c.Events[0].Sum = store.Seal(r.id, 0, &c.Events[0])
		commit(t, s, c)
	}
	beat(t, s, executor("e", time.Minute))
	got := map[string]string{}
	runs, err := s.Claim(t.Context(), store.Claim{
		Executor: "e", Serves: serves, Max: 10, Created: func(id string, e store.Event) { got[id] = string(e.Payload) },
	})
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.Equal(t, map[string]string{"r0": "small", "r2": "small"}, got, "without the large one")
}
