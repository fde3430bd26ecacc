package failover_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// Behind a PgBouncer the program has connections that stay while their server goes, and servers
// that stay while its connections go.
func TestPgBouncerAndTheServersBehindItAreKilled(t *testing.T) {
	t.Run("session", func(t *testing.T) {
		killBehind(t, "session", postgres.Options{}, "pool_mode = session", "default_pool_size = 120", loginRetry)
	})
	t.Run("transaction", func(t *testing.T) {
		if !pgtest.PoolerCarriesStatements(t) {
			t.Skip("this PgBouncer is older than 1.21: the store refuses its transaction mode")
		}
		killBehind(t, "transaction", postgres.Options{Pooled: true}, "default_pool_size = 20", "max_prepared_statements = 200", loginRetry)
	})
}

// PgBouncer tries a server that has refused a connection again after 15 seconds, unless it is
// told otherwise.
const loginRetry = "server_login_retry = 1"

func killBehind(t *testing.T, mode string, o postgres.Options, settings ...string) {
	t.Parallel()
	times := 1
	if soaking() {
		times = 10
	}
	primary := pgtest.Start(t)
	pooler := pgtest.StartPgBouncer(t, primary.DSN(), settings...)
	var stores []store.Store
	for range 2 {
		st, err := postgres.OpenOptions(pooler.DSN(), o)
		require.NoError(t, err)
		stores = append(stores, st)
	}
	p := beginOn(t, 5*time.Second, stores...)
	disturb := func(of string, do func()) string {
		var outages []time.Duration
		for range times {
			p.moves(time.Now())
			time.Sleep(300 * time.Millisecond) // of load
			p.diary.longest()
			do()
			p.moves(time.Now())
			outages = append(outages, p.diary.longest())
			t.Logf("%s: %s without an acknowledgement", of, outages[len(outages)-1])
		}
		return spread(of, outages)
	}
	poolers := disturb("pooler", func() {
		require.NoError(t, pooler.Kill9())
		require.NoError(t, pooler.Restart())
	})
	restarts := disturb("restart", func() {
		require.NoError(t, primary.Kill9())
		require.NoError(t, primary.Restart())
	})
	if !soaking() {
		p.settle(primary.DSN())
		return
	}
	replica := primary.StartReplica(t, nil)
	following(t, primary, true)
	failovers := disturb("failover", func() {
		require.NoError(t, primary.Kill9())
		require.NoError(t, replica.Promote())
		require.NoError(t, pooler.Lead(replica.DSN()))
		p.moves(time.Now())
		primary, replica = replica, replica.StartReplica(t, primary)
		following(t, primary, true)
	})
	found := p.settle(primary.DSN())
	require.Zero(t, found.lostRuns+found.lostSteps, "the server and its replica had everything that was acknowledged")
	tried.Say(t, "pooler", "mode=%s poolers_killed=%d servers_killed=%d failovers=%d %s %s %s %s", mode, times, times, times, found, poolers, restarts, failovers)
}
