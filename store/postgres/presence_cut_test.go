package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// The lock of a living executor is free for the moment it takes to connect
// again, and its last beat is nearly always older than that.
func TestALivingExecutorWhoseListeningConnectionIsCutKeepsItsRuns(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	beat(t, a, executor("a", time.Hour))
	beat(t, b, executor("b", time.Hour))
	r := &runLog{id: "r"}
	commit(t, a, r.create("a"))
	admin := raw(t, dsn)
	claim := store.Claim{Executor: "b", Serves: serves, Max: 1, IDs: []string{"r"}}
	for range 30 {
		admin.MustExec(`UPDATE durable_executors SET beat_at = beat_at - 10000000, presence = regexp_replace(presence, 'boot=\S*', 'boot=elsewhere')`)
		admin.MustExec(`SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN durable_executors e ON e.id = 'a' AND e.presence LIKE 'lock=' || l.objid || ' %'
			WHERE l.locktype = 'advisory' AND l.granted`)
		for range 5 {
			require.True(t, live(t, b, "a"))
			runs, err := b.Claim(t.Context(), claim)
			require.NoError(t, err)
			require.Empty(t, runs, "its owner lives, and has an hour's lease")
		}
	}
}

// An executor that does not come back is found by looking twice, and the beat
// says when to look again.
func TestAnExecutorThatIsGoneElsewhereIsFoundWithinSeconds(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	child := startChild(t, dsn)
	s := open(t, dsn)
	me := executor("me", time.Hour)
	require.Empty(t, beat(t, s, me).Gone)
	raw(t, dsn).MustExec(`UPDATE durable_executors SET presence = regexp_replace(presence, 'boot=\S*', 'boot=elsewhere') WHERE id = 'child'`)
	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	var p store.Pulse
	require.Eventually(t, func() bool { // the server sees the connection end
		p = beat(t, s, me)
		require.Empty(t, p.Gone, "one look proves nothing")
		return p.Next != 0
	}, time.Minute, 10*time.Millisecond)
	wait := p.Next.Sub(p.Now)
	require.Less(t, wait, 3*time.Second)
	time.Sleep(wait) // as an engine does until its next beat
	require.Equal(t, []string{"child"}, beat(t, s, me).Gone)
}
