package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	}, time.Minute, time.Millisecond)
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

// What a claim reads beside a row's lock is older than the row if it had to wait for it. What
// it hands over is the whole history all the same (S41).
func TestAClaimThatWaitedForAMessageHandsOverNoHistory(t *testing.T) {
	t.Parallel()
	for _, kind := range []store.Kind{store.KindSignal, store.KindCancel} {
		t.Run(string(kind), func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s := open(t, dsn)
			r := &runLog{id: "r"}
			commit(t, s, r.create(""))
			beat(t, s, executor("e", time.Minute))
			db := raw(t, dsn)
			tx := db.MustBegin()
			defer tx.Rollback()
			require.NoError(t, s.CommitIn(t.Context(), tx, store.Change{Send: []store.Message{{To: "r", Kind: kind, Name: "n", ID: "1", At: 1}}}))
			type answer struct {
				runs    []store.Run
				created []string
			}
			claimed := make(chan answer, 1)
			go func() {
				var a answer
				var err error
				a.runs, err = s.Claim(context.Background(), store.Claim{
					Executor: "e", Serves: serves, Max: 1, IDs: []string{"r"},
					Created: func(id string, _ store.Event) { a.created = append(a.created, id) },
				})
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				claimed <- a
			}()
			require.Eventually(t, func() bool {
				var n int
				require.NoError(t, db.Get(&n, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"))
				return n == 1
			}, time.Minute, time.Millisecond)
			require.NoError(t, tx.Commit())
			a := <-claimed
			require.Len(t, a.runs, 1)
			require.EqualValues(t, 1, a.runs[0].Inbox)
			require.Empty(t, a.created)
		})
	}
}

// The server puts large values beside the table. A claim that read those of all candidates
// would read a gigabyte for a few hundred runs with inputs of a megabyte.
func TestAClaimReadsNoLargeInputs(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	input := make([]byte, 1<<18)
	_, _ = rand.NewChaCha8([32]byte{}).Read(input) // so that it cannot be compressed
	for i := range 20 {
		r := &runLog{id: fmt.Sprint("r", i)}
		c := r.create("")
		c.Events[0].Payload = input
		c.Events[0].Sum = store.Seal(r.id, 0, &c.Events[0])
		commit(t, s, c)
	}
	require.NoError(t, s.Close())
	read := tally(t, dsn, "SELECT coalesce(sum(toast_blks_read + toast_blks_hit), 0) FROM pg_statio_user_tables WHERE relname = 'durable_events'", func(s *storeOf) {
		require.Equal(t, 10, s.claim(10))
	})
	require.Less(t, read, 20, "blocks of large values")
}
