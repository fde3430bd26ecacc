package failover_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/patroni"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/wire"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// Two replicas of the program have the server on their side of the cut; two have not, for
// longer than their leases. What these had sent arrives when the cut is mended.
func TestReplicasOnBothSidesOfACut(t *testing.T) {
	t.Parallel()
	times := 1
	if soaking() {
		times = 10
	}
	c := pgtest.Start(t)
	w := wire.New(t, c.Addr())
	// As the same server at another address.
	far, err := url.Parse(c.DSN())
	require.NoError(t, err)
	far.Host = w.String()
	p := begin(t, shortLease, far.String(), far.String(), c.DSN(), c.DSN())
	st, err := postgres.Open(c.DSN())
	require.NoError(t, err)
	defer st.Close()
	taken := map[string]bool{}
	for range times {
		p.moves(time.Now())
		time.Sleep(300 * time.Millisecond) // of load
		w.Cut()
		time.Sleep(2 * shortLease)
		takenOver(t, st, taken)
		w.Mend()
	}
	p.moves(time.Now())
	found := p.settle(c.DSN())
	require.Zero(t, found.lostRuns+found.lostSteps)
	require.NotEmpty(t, taken, "those that had the server took over from those that had not")
	tried.Say(t, "sides", "mode=one_server cuts=%d %s taken_over=%d", times, found, len(taken))
}

// takenOver adds the runs of the two programs that are cut off which have been taken from their owner.
func takenOver(t *testing.T, st store.Store, all map[string]bool) {
	t.Helper()
	for _, prefix := range []string{"0-", "1-"} {
		page, err := st.List(t.Context(), store.Filter{IDPrefix: prefix, Limit: 1000})
		require.NoError(t, err)
		for i := range page.Runs {
			if r := &page.Runs[i]; r.Resumes > 0 {
				all[r.ID] = true
			}
		}
	}
}

// A data centre with the leader and a replica of the program is cut off from the other two, each
// of which has a server and a replica of the program. The leader must give up before another
// one is promoted, and what it has acknowledged by itself is lost with asynchronous replication.
func TestADataCentreIsCutOff(t *testing.T) {
	if !soaking() {
		t.Skip("a cluster takes longer to start than this may take: make soak cuts its leaders off")
	}
	for _, synchronous := range []bool{true, false} {
		name := map[bool]string{true: "synchronous", false: "asynchronous"}[synchronous]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cutOff(t, name, synchronous)
		})
	}
}

func cutOff(t *testing.T, name string, synchronous bool) {
	c := patroni.Start(t, patroni.Settings{Synchronous: synchronous, Restart: 300, Cuttable: true})
	var dsns []string
	for _, n := range c.Nodes() {
		dsns = append(dsns, n.DSN())
	}
	p := begin(t, 0, dsns...)
	const cuts = 5
	var outages []time.Duration
	for range cuts {
		leader := c.Healthy(t)
		p.moves(time.Now())
		time.Sleep(time.Second) // of load
		p.diary.longest()
		leader.Isolate()
		c.Replaced(t, leader)
		p.moves(time.Now())
		time.Sleep(patroni.TTL * time.Second) // the cut outlasts what anyone waits for
		leader.Rejoin()
		c.Healthy(t)
		outages = append(outages, p.diary.longest())
		t.Logf("cut of %s: %s without an acknowledgement", leader.Name(), outages[len(outages)-1])
	}
	found := p.settle(c.DSN())
	if synchronous {
		require.Zero(t, found.lostRuns+found.lostSteps, "what was cut off could acknowledge nothing")
	}
	tried.Say(t, "sides", "mode=%s cuts=%d %s %s", name, cuts, found, spread("outage", outages))
}
