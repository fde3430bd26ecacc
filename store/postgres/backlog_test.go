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
	raw(t, dsn).MustExec(`WITH r AS (
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

// The same, as a property: a beat and a claim cost what they cost without it.
func TestWhatCannotBeClaimedCostsAClaimAndABeatNothing(t *testing.T) {
	best := func(n int, f func()) time.Duration {
		d := time.Hour
		for range n {
			began := time.Now()
			f()
			d = min(d, time.Since(began))
		}
		return d
	}
	const tomorrow = 1 << 60
	for name, fill := range map[string]func(t testing.TB, dsn string){
		"delayed":             func(t testing.TB, dsn string) { backlog(t, dsn, "pending", "w", "", "", tomorrow, 100_000) },
		"asleep, not served":  func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "other", "", "", tomorrow, 50_000) },
		"due, not served":     func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "other", "", "", 1, 50_000) },
		"due, not listed":     func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "w", "elsewhere", "", 1, 50_000) },
		"asleep with another": func(t testing.TB, dsn string) { backlog(t, dsn, "waiting", "w", "", "b", tomorrow, 50_000) },
		"paused": func(t testing.TB, dsn string) {
			backlog(t, dsn, "pending", "w", "", "", 0, 50_000)
			raw(t, dsn).MustExec("UPDATE durable_runs SET paused = true")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			s := open(t, dsn)
			beat(t, s, executor("b", time.Hour))
			claim := func() {
				got, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 1})
				require.NoError(t, err)
				require.Empty(t, got)
			}
			live := func() { beat(t, s, executor("e", time.Hour)) }
			live()
			beats, claims := best(30, live), best(30, claim)
			fill(t, dsn)
			slowBeats, slowClaims := best(30, live), best(30, claim)
			t.Logf("beat %v, then %v; claim %v, then %v", beats, slowBeats, claims, slowClaims)
			require.Less(t, slowBeats, 4*beats+2*time.Millisecond)
			require.Less(t, slowClaims, 4*claims+2*time.Millisecond)
		})
	}
}
