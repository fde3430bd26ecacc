package postgres_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// fillLine puts n runs of a queue into the database, spread over partitions and five priorities.
// wake is when they are due: 0, or an SQL expression of i.
func fillLine(t testing.TB, dsn, queue string, n, partitions int, wake string) {
	t.Helper()
	db, err := sqlx.Open("postgres", dsn)
	require.NoError(t, err)
	defer db.Close()
	db.MustExec(`WITH r AS (
		INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace,
			created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen,
			cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
		SELECT $1::text || '/' || i || '/' || `+wake+`, 'w', '1', '', '', '', '\x', $1::text, 'p' || i % $3::bigint, '', '', 1000 + i, '1', 'pending', '', '', false, '',
			1000 + i, 0, 0, 0, 0, i % 5, 0, 0, false, false, 0, 0, 0, 0, `+wake+`, 0, 0
		FROM generate_series(1, $2::bigint) i RETURNING no, epoch)
	INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, sum)
	SELECT no, 1, epoch, 0, 'workflow_created', '', 0, 0, 0, 0, 0, 0, 0 FROM r`, queue, n, partitions)
}

const far = "(4000000000000000 + i)"

// rowsRead returns how many entries of indexes, and rows without one, were read of the
// runs while a store was open and f used it.
func rowsRead(t *testing.T, dsn string, f func(s *storeOf)) int {
	t.Helper()
	return tally(t, dsn, `SELECT (SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes WHERE relname = 'durable_runs')
		+ (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables WHERE relname = 'durable_runs')`, f)
}

// tally returns by how much a sum of the server's statistics grew while a store was open
// and f used it. The server knows when the store's connections have ended.
func tally(t *testing.T, dsn, query string, f func(s *storeOf)) int {
	t.Helper()
	db := raw(t, dsn)
	defer db.Close()
	db.SetMaxOpenConns(1)
	sum := func() (n int) {
		require.NoError(t, db.Get(&n, query))
		return n
	}
	ended := func() {
		require.Eventually(t, func() bool {
			var n int
			require.NoError(t, db.Get(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`))
			return n == 0
		}, 30*time.Second, 5*time.Millisecond)
	}
	ended()
	before := sum()
	s := open(t, dsn)
	f(&storeOf{t: t, Store: s})
	require.NoError(t, s.Close())
	ended()
	return sum() - before
}

type storeOf struct {
	store.Store
	t *testing.T
}

func (s *storeOf) put(q store.Queue) {
	require.NoError(s.t, s.Store.(store.Queues).PutQueue(s.t.Context(), q))
}

func (s *storeOf) claim(most int) int {
	beat(s.t, s.Store, executor("e", time.Hour))
	got, err := s.Claim(s.t.Context(), store.Claim{Executor: "e", Serves: serves, Max: most, AnyQueue: true})
	require.NoError(s.t, err)
	return len(got)
}

// What a claim and a beat read does not depend on how many runs are in line, on how many
// wait for their time, nor on whether anything can be let in.
func TestNoStatementOfAClaimOrABeatWalksTheLine(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(s *storeOf){
		"open": func(s *storeOf) {
			for range 3 {
				require.Equal(s.t, 64, s.claim(64))
			}
		},
		"limited": func(s *storeOf) {
			s.put(store.Queue{Name: "q", Max: 100})
			require.Equal(s.t, 64, s.claim(64))
			require.Equal(s.t, 36, s.claim(64))
			require.Zero(s.t, s.claim(64))
		},
		"partitions": func(s *storeOf) {
			s.put(store.Queue{Name: "q", MaxPerPartition: 2})
			require.Equal(s.t, 40, s.claim(64))
			require.Zero(s.t, s.claim(64))
		},
		"rate": func(s *storeOf) {
			s.put(store.Queue{Name: "q", Rate: 50, Per: time.Hour})
			require.Equal(s.t, 50, s.claim(64))
			require.Zero(s.t, s.claim(64))
		},
		"paused": func(s *storeOf) {
			s.put(store.Queue{Name: "q", Paused: true})
			require.Zero(s.t, s.claim(64))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var read []int
			for _, n := range []int{2_000, 10_000} {
				dsn := pgtest.DSN(t)
				require.NoError(t, open(t, dsn).Close())
				fillLine(t, dsn, "q", n, 20, "0")
				fillLine(t, dsn, "q", n, 20, far)
				read = append(read, rowsRead(t, dsn, use))
			}
			t.Logf("%d rows were read with 4,000 runs, %d with 20,000", read[0], read[1])
			require.Less(t, read[1], read[0]+read[0]/4+100)
		})
	}
}

// The partition whose turn it is gets its run, however many runs of another have become
// due at once.
func TestRunsThatBecomeDueTogetherHideNoPartition(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := open(t, dsn)
	fillLine(t, dsn, "q", 2_000, 1, "1")
	fillLine(t, dsn, "q", 300, 3, "1000000")
	require.NoError(t, s.PutQueue(t.Context(), store.Queue{Name: "q", MaxPerPartition: 2}))
	beat(t, s, executor("e", time.Hour))
	got, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 64, AnyQueue: true})
	require.NoError(t, err)
	parts := map[string]int{}
	for _, r := range got {
		parts[r.Partition]++
	}
	require.Equal(t, map[string]int{"p0": 2, "p1": 2, "p2": 2}, parts)
}

// BenchmarkDepth measures a claim of 64 and a beat with 1,000 runs in line and 1,000
// delayed, in 10 partitions, and with a million of each in 1,000 (DEPTH says how many).
func BenchmarkDepth(b *testing.B) {
	deep, _ := strconv.Atoi(cmp.Or(os.Getenv("DEPTH"), "1000000"))
	for _, n := range []int{1_000, deep} {
		for _, limit := range []int{0, 1 << 20} {
			dsn := pgtest.DSN(b)
			s := open(b, dsn)
			partitions := max(10, n/1_000)
			fillLine(b, dsn, "q", n, partitions, "0")
			fillLine(b, dsn, "q", n, partitions, far)
			raw(b, dsn).MustExec("VACUUM ANALYZE durable_runs")
			require.NoError(b, s.PutQueue(b.Context(), store.Queue{Name: "q", Max: limit}))
			beat(b, s, executor("e", time.Hour))
			b.Run(fmt.Sprintf("runs=%d/max=%d/claim", n, limit), func(b *testing.B) {
				left := n
				for b.Loop() {
					if left < 64 {
						b.StopTimer()
						raw(b, dsn).MustExec("DELETE FROM durable_runs WHERE status = 'running'")
						fillLine(b, dsn, "q", n-left, partitions, "0")
						left = n
						b.StartTimer()
					}
					got, err := s.Claim(context.Background(), store.Claim{
						Executor: "e", Serves: serves, Max: 64, Queues: []store.QueueRoom{{Queue: "q", Max: -1}},
					})
					if err != nil || len(got) != 64 {
						b.Fatalf("%d runs, %v", len(got), err)
					}
					left -= 64
				}
			})
			b.Run(fmt.Sprintf("runs=%d/max=%d/beat", n, limit), func(b *testing.B) {
				for b.Loop() {
					beat(b, s, executor("e", time.Hour))
				}
			})
		}
	}
}
