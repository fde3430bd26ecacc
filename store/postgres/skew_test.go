package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// The clock of a server may be set back, and another server takes over with its
// own.
func TestABeatFromTheFutureIsBelievedForOneLease(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := openOptions(t, dsn, postgres.Options{NoPresence: true})
	beat(t, s, executor("gone", time.Second))
	beat(t, s, executor("me", time.Hour))
	commit(t, s, (&runLog{id: "r"}).create("gone"))
	raw(t, dsn).MustExec("UPDATE durable_executors SET beat_at = beat_at + 7200000000 WHERE id = 'gone'")
	seen := time.Now()
	require.True(t, live(t, s, "gone"))
	require.Eventually(t, func() bool { return !live(t, s, "gone") }, time.Minute, 5*time.Millisecond)
	require.GreaterOrEqual(t, time.Since(seen), 900*time.Millisecond)
	require.Equal(t, []string{"gone"}, beat(t, s, executor("me", time.Hour)).Gone)
}

// One that comes later has not seen the beat stand still. It learns of it all the
// same.
func TestABeatFromTheFutureThatStoodStillIsBelievedByNobodyWhoComesLater(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s := openOptions(t, dsn, postgres.Options{NoPresence: true})
	beat(t, s, executor("gone", time.Second))
	beat(t, s, executor("me", time.Hour))
	raw(t, dsn).MustExec("UPDATE durable_executors SET beat_at = beat_at + 7200000000 WHERE id = 'gone'")
	require.Eventually(t, func() bool { return !live(t, s, "gone") }, time.Minute, 5*time.Millisecond)
	require.True(t, live(t, openOptions(t, dsn, postgres.Options{NoPresence: true}), "gone"), "nobody has beaten")
	beat(t, s, executor("me", time.Hour))
	require.False(t, live(t, openOptions(t, dsn, postgres.Options{NoPresence: true}), "gone"))
	// And it is forgotten as others are: a day later.
	raw(t, dsn).MustExec("UPDATE durable_executors SET beat_at = beat_at - 86400000000 WHERE id = 'gone'")
	beat(t, s, executor("new", time.Hour))
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
}

func TestARestoreWaitsOneLeaseForABeatFromTheFuture(t *testing.T) {
	t.Parallel()
	dsn, _ := filled(t)
	s := openOptions(t, dsn, postgres.Options{NoPresence: true})
	require.NoError(t, s.Backup(t.Context(), "by_hand"))
	ahead := func(id string) {
		beat(t, s, executor(id, time.Second))
		raw(t, dsn).MustExec("UPDATE durable_executors SET beat_at = beat_at + 7200000000 WHERE id = $1", id)
	}
	sc := schemaOf(t, dsn, postgres.Options{})
	raw(t, dsn).MustExec("DELETE FROM durable_executors")
	ahead("lives")
	time.AfterFunc(200*time.Millisecond, func() { _, _ = s.Beat(context.Background(), executor("lives", time.Minute)) })
	_, err := sc.Restore(t.Context(), "by_hand")
	require.ErrorIs(t, err, store.ErrOwned)
	raw(t, dsn).MustExec("DELETE FROM durable_executors")
	ahead("gone")
	_, err = sc.Restore(t.Context(), "by_hand")
	require.NoError(t, err)
}
