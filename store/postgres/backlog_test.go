package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// backlog puts n runs into the database, as SQL, since the way they come there
// does not matter.
func backlog(t testing.TB, dsn, status, workflow, queue, owner string, wake, n int) {
	t.Helper()
	execute(t, dsn, `WITH r AS (
		INSERT INTO durable_runs (id, workflow, initial_version, parent, parent_key, forked_from, input_hash, queue, partition, dedup, trace,
			created_at, version, status, code, reason, recoverable, owner, epoch, branch, generation, resumes, strikes, priority, inbox, seen,
			cancel_asked, paused, archived_seq, started_at, updated_at, ended_at, wake_at, deadline_at, attributes)
		SELECT $2::text || $3::text || $4::text || i, $2::text, '1', '', '', '', '\x', $3::text, '', '', '', i, '1', $1::text, '', '', false, $4::text, i, 0, 0, 0, 0, 5, 0, 0,
			false, false, 0, 0, 0, 0, $5::bigint, 0, 0
		FROM generate_series(1, $6::bigint) i RETURNING no, epoch)
	INSERT INTO durable_events (run_no, seq, epoch, branch, type, key, attempt, ordinal, at, took, active, steps, sum)
	SELECT no, 1, epoch, 0, 'workflow_created', '', 0, 0, 0, 0, 0, 0, 0 FROM r`, status, workflow, queue, owner, wake, n)
}

// What is not for this executor must not make its claims and beats slow.
func BenchmarkBacklog(b *testing.B) {
	dsn := pgtest.DSN(b)
	s := open(b, dsn)
	beat(b, s, executor("e", time.Hour))
	backlog(b, dsn, "pending", "not served", "", "", 0, 50_000)
	backlog(b, dsn, "pending", "w", "not listed", "", 0, 50_000)
	backlog(b, dsn, "waiting", "w", "", "e", 1<<60, 50_000)
	raw(b, dsn).MustExec("ANALYZE")
	claim := store.Claim{Executor: "e", Serves: serves, Max: 1}
	b.Run("claim", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Claim(b.Context(), claim)
			require.NoError(b, err)
		}
	})
	b.Run("beat", func(b *testing.B) {
		for b.Loop() {
			beat(b, s, executor("e", time.Hour))
		}
	})
}

// The same, as a property: a beat and a claim read no more of the runs than without it.
func TestWhatCannotBeClaimedCostsAClaimAndABeatNothing(t *testing.T) {
	t.Parallel()
	const tomorrow, many = 1 << 60, 10_000
	for name, fill := range map[string]func(t testing.TB, dsn string){
		"delayed":             func(t testing.TB, dsn string) { backlog(t, dsn, "pending", "w", "", "", tomorrow, many) },
		"asleep, not served":  func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "other", "", "", tomorrow, many) },
		"due, not served":     func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "other", "", "", 1, many) },
		"due, not listed":     func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "w", "elsewhere", "", 1, many) },
		"asleep with another": func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "w", "", "b", tomorrow, many) },
		"paused": func(t testing.TB, dsn string) {
			backlog(t, dsn, "pending", "w", "", "", 0, many)
			execute(t, dsn, "UPDATE durable_runs SET paused = true")
			execute(t, dsn, "VACUUM durable_runs") // what they were is read until then
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			require.NoError(t, open(t, dsn).Close())
			use := func(s *storeOf) {
				beat(s.t, s.Store, executor("b", time.Hour))
				for range 10 {
					beat(s.t, s.Store, executor("e", time.Hour))
					got, err := s.Claim(s.t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 1})
					require.NoError(s.t, err)
					require.Empty(s.t, got)
				}
			}
			without := rowsRead(t, dsn, use)
			fill(t, dsn)
			with := rowsRead(t, dsn, use)
			t.Logf("%d rows were read, then %d", without, with)
			require.LessOrEqual(t, with, without+100)
		})
	}
}
