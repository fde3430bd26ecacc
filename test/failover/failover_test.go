package failover_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// both is one connection string that leads to whichever of two servers takes writes.
func both(t *testing.T, a, b *pgtest.Cluster) string {
	t.Helper()
	_, portA, err := net.SplitHostPort(a.Addr())
	require.NoError(t, err)
	_, portB, err := net.SplitHostPort(b.Addr())
	require.NoError(t, err)
	return fmt.Sprintf("host=127.0.0.1,127.0.0.1 port=%s,%s user=postgres password=%s dbname=postgres sslmode=disable connect_timeout=2 target_session_attrs=read-write", portA, portB, a.Password())
}

// After a failover every run that the new primary knows ends, none is damaged or executed
// twice at once; with synchronous replication nothing is lost that was acknowledged.
func TestAFailoverUnderLoad(t *testing.T) {
	failovers := 1
	if soaking() {
		failovers = 10
	}
	for _, synchronous := range []bool{true, false} {
		name := map[bool]string{true: "synchronous", false: "asynchronous"}[synchronous]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failOver(t, name, synchronous, failovers)
		})
	}
}

func failOver(t *testing.T, name string, synchronous bool, failovers int) {
	primary := pgtest.Start(t)
	replica := primary.StartReplica(t, nil)
	following(t, primary, synchronous)
	dsn := both(t, primary, replica)
	p := begin(t, 5*time.Second, dsn, dsn)
	var outages, ours []time.Duration
	for range failovers {
		p.moves(time.Now())
		time.Sleep(time.Second) // of load
		killed := time.Now()
		require.NoError(t, primary.Kill9())
		if !synchronous {
			// What the replica has not been sent is lost; with the server killed, nothing more comes.
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, replica.Promote())
		promoted := time.Now()
		again := p.moves(promoted)
		outages, ours = append(outages, again.Sub(killed)), append(ours, again.Sub(promoted))
		primary, replica = replica, replica.StartReplica(t, primary)
		following(t, primary, synchronous)
	}
	found := p.settle(primary.DSN())
	if synchronous {
		require.Zero(t, found.lostRuns+found.lostSteps, "the replica had everything that was acknowledged")
	}
	tried.Say(t, "failover", "mode=%s failovers=%d %s %s %s", name, failovers, found, spread("outage", outages), spread("after_promotion", ours))
}

// following waits until the replica follows, and a commit waits for it if it is to.
func following(t *testing.T, primary *pgtest.Cluster, synchronous bool) {
	t.Helper()
	require.NoError(t, primary.Synchronous(synchronous))
	require.Eventually(t, func() bool {
		all, waited, err := primary.Follows()
		return err == nil && all == 1 && (waited == 1) == synchronous
	}, time.Minute, 20*time.Millisecond)
}
