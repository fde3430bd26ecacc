package failover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/test/patroni"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// Under Patroni and etcd nobody is told of a failure: the cluster finds it, and the program
// finds the new leader. With asynchronous replication what the new leader lacked is lost, and
// nothing else is wrong.
func TestTheLeaderOfAClusterUnderPatroniIsKilled(t *testing.T) {
	if !soaking() {
		t.Skip("a cluster takes longer to start than this may take: make soak kills its leaders")
	}
	for _, synchronous := range []bool{true, false} {
		name := map[bool]string{true: "synchronous", false: "asynchronous"}[synchronous]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killLeaders(t, name, synchronous)
		})
	}
}

func killLeaders(t *testing.T, name string, synchronous bool) {
	c := patroni.Start(t, patroni.Settings{Synchronous: synchronous, Restart: 300})
	p := begin(t, 0, c.DSN(), c.DSN())
	const kills, servers, switchovers = 10, 5, 5
	disturb := func(of string, times int, do func(leader *patroni.Node) (mend func() error)) string {
		var outages []time.Duration
		for range times {
			leader := c.Healthy(t)
			p.moves(time.Now())
			time.Sleep(time.Second) // of load
			p.diary.longest()
			require.NoError(t, do(leader)())
			c.Healthy(t) // with what an outage costs until all is as it was
			p.moves(time.Now())
			outages = append(outages, p.diary.longest())
			t.Logf("%s of %s: %s without an acknowledgement", of, leader.Name(), outages[len(outages)-1])
		}
		return spread(of, outages)
	}
	nothing := func() error { return nil }
	said := []any{name, kills, servers, switchovers}
	killed := disturb("kill", kills, func(leader *patroni.Node) func() error {
		require.NoError(t, leader.Kill())
		c.Replaced(t, leader)
		return leader.Start
	})
	server := disturb("server", servers, func(leader *patroni.Node) func() error {
		require.NoError(t, leader.KillServer())
		c.Ended(t, leader)
		return nothing
	})
	switched := disturb("switchover", switchovers, func(leader *patroni.Node) func() error {
		require.NoError(t, leader.Switchover())
		c.Replaced(t, leader)
		return nothing
	})
	c.Healthy(t)
	found := p.settle(c.DSN())
	if synchronous {
		require.Zero(t, found.lostRuns+found.lostSteps, "the replica that was promoted had everything that was acknowledged")
	}
	tried.Say(t, "patroni", "mode=%s kills=%d servers_killed=%d switchovers=%d %s", append(said, fmt.Sprint(found, " ", killed, " ", server, " ", switched))...)
}
