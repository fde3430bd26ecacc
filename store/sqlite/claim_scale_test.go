//go:build cgo

package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// backlog makes runs that no claim of executor("e") may take now: waiting with
// a far timer, of another workflow, in a queue that is full.
func backlog(t testing.TB, st store.Store, n int) {
	t.Helper()
	for done := 0; done < n; {
		var batch []store.Change
		for range 500 {
			done++
			_, c := create(fmt.Sprintf("backlog-%06d", done), func(r *store.Run) {
				switch done % 3 {
				case 0:
					r.Status, r.WakeAt = store.Waiting, created.Add(100*365*24*time.Hour)
				case 1:
					r.Workflow = "another"
				case 2:
					r.Queue = "full"
				}
			})
			batch = append(batch, c)
		}
		for _, err := range st.Commit(t.Context(), batch) {
			require.NoError(t, err)
		}
	}
}

// A claim and a beat cost the same however many runs there are that it cannot
// take.
func BenchmarkClaimBehindABacklog(b *testing.B) {
	for _, n := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := open(b, file(b), sqlite.Options{Synchronous: sqlite.Off})
			backlog(b, st, n)
			e := executor("e")
			beat(b, st, e)
			_, c := create("busy", func(r *store.Run) { r.Queue, r.Status, r.Owner = "full", store.Running, "e" })
			commit(b, st, c)
			require.NoError(b, st.PutQueue(b.Context(), store.Queue{Name: "full", Max: 1}))
			b.Run("claim", func(b *testing.B) {
				for b.Loop() {
					runs, err := st.Claim(b.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: 10, Queues: []store.QueueRoom{{Queue: "full", Max: -1}}})
					require.NoError(b, err)
					require.Empty(b, runs)
				}
			})
			b.Run("beat", func(b *testing.B) {
				for b.Loop() {
					beat(b, st, e)
				}
			})
			b.Run("count", func(b *testing.B) {
				for b.Loop() {
					_, err := st.Count(b.Context(), store.Filter{}, store.ByStatus)
					require.NoError(b, err)
				}
			})
			b.Run("list", func(b *testing.B) {
				for b.Loop() {
					_, err := st.List(b.Context(), store.Filter{Statuses: []store.Status{store.Waiting}, WithLast: true})
					require.NoError(b, err)
				}
			})
		})
	}
}

// crowd puts runs into queues, spread over partitions, behind the store's back: half of them due,
// half of them delayed for long. It writes what Commit would; only the sums of the events are
// those of another run.
func crowd(t testing.TB, path string, st *sqlite.Store, queue string, runs, partitions int, delayed bool) {
	t.Helper()
	id := fmt.Sprint("first of ", queue, delayed)
	_, c := create(id, func(r *store.Run) { r.Queue, r.Partition = queue, "p0" })
	if delayed {
		c.Create.WakeAt = created.Add(100 * 365 * 24 * time.Hour)
	}
	commit(t, st, c)
	db := connect(t, path, "_txlock=immediate&_busy_timeout=5000&_synchronous=OFF")
	tx, err := db.Begin()
	require.NoError(t, err)
	for _, text := range []string{
		`INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace,
			created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen,
			cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
		SELECT id || n, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, 'p' || (n % ?3), dedup, trace,
			created_at + n, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, n % 3, inbox, seen,
			cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at + n, deadline_at, attributes
		FROM (WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < ?2) SELECT n FROM c), durable_runs
		WHERE id = ?1`,
		`INSERT INTO durable_events (place, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, data, payload, sum)
		SELECT r.no << 28 | 1, e.epoch, e.branch, e.type, e.key, e.attempt, e.ordinal, e.at, e.took, e.active, e.steps, e.data, e.payload, e.sum
		FROM durable_runs AS f JOIN durable_events AS e ON e.place = f.no << 28 | 1 JOIN durable_runs AS r ON r.no > f.no
		WHERE f.id = ?1 AND ?2 + ?3 > 0`,
	} {
		if !delayed {
			text = strings.ReplaceAll(text, "wake_at + n", "0")
		}
		_, err := tx.Exec(text, id, runs, partitions)
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit())
}

// What a claim and a beat cost does not depend on how many runs are in line, or are delayed, in
// how many partitions.
func BenchmarkClaimFromALongLine(b *testing.B) {
	for _, n := range []struct{ runs, partitions int }{{1000, 1}, {1000, 1000}, {1_000_000, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", n.runs, n.partitions), func(b *testing.B) {
			path := file(b)
			st := open(b, path, sqlite.Options{Synchronous: sqlite.Off})
			crowd(b, path, st, "open", n.runs, n.partitions, false)
			crowd(b, path, st, "open", n.runs, n.partitions, true)
			crowd(b, path, st, "later", 1000, n.partitions, true)
			crowd(b, path, st, "limited", 2*n.partitions+100, n.partitions, false)
			e := executor("e")
			beat(b, st, e)
			claims := func(queue string, most, want int) func(b *testing.B) {
				return func(b *testing.B) {
					for b.Loop() {
						runs, err := st.Claim(b.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: most, Queues: []store.QueueRoom{{Queue: queue, Max: -1}}})
						require.NoError(b, err)
						require.Len(b, runs, want)
					}
				}
			}
			queue := store.Queue{}
			put := func(q store.Queue) {
				q.Revision = queue.Revision
				require.NoError(b, st.PutQueue(b.Context(), q))
				queue.Revision++
			}
			b.Run("claim of one", claims("open", 1, 1))
			b.Run("claim of ten", claims("open", 10, 10))
			b.Run("claim of delayed", claims("later", 10, 0))
			put(store.Queue{Name: "limited", Paused: true})
			b.Run("claim of a paused queue", claims("limited", 10, 0))
			put(store.Queue{Name: "limited", Rate: 1, Per: time.Hour})
			_, err := st.Claim(b.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: 1, Queues: []store.QueueRoom{{Queue: "limited", Max: -1}}})
			require.NoError(b, err)
			b.Run("claim beyond a rate", claims("limited", 10, 0))
			put(store.Queue{Name: "limited", MaxPerPartition: 1})
			_, err = st.Claim(b.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: n.partitions, Queues: []store.QueueRoom{{Queue: "limited", Max: -1}}})
			require.NoError(b, err)
			b.Run("claim from full partitions", claims("limited", 10, 0))
			b.Run("beat", func(b *testing.B) {
				for b.Loop() {
					beat(b, st, e)
				}
			})
			b.Run("state", func(b *testing.B) {
				for b.Loop() {
					_, err := st.Queues(b.Context(), "open")
					require.NoError(b, err)
				}
			})
		})
	}
}
