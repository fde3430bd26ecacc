package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/store/postgres"
)

// The clock of a server may be set back, and another server takes over with its
// own.
func TestABeatFromTheFutureIsBelievedForOneLease(t *testing.T) {
	dsn := pgtest.DSN(t)
	s := openOptions(t, dsn, postgres.Options{NoPresence: true})
	beat(t, s, executor("gone", time.Second))
	beat(t, s, executor("me", time.Hour))
	commit(t, s, (&runLog{id: "r"}).create("gone"))
	raw(t, dsn).MustExec("UPDATE durable_executors SET beat_at = beat_at + 7200000000 WHERE id = 'gone'")
	require.True(t, live(t, s, "gone"))
	seen := time.Now()
	require.Eventually(t, func() bool { return !live(t, s, "gone") }, 10*time.Second, 5*time.Millisecond)
	require.GreaterOrEqual(t, time.Since(seen), 900*time.Millisecond)
	require.Equal(t, []string{"gone"}, beat(t, s, executor("me", time.Hour)).Gone)
}
