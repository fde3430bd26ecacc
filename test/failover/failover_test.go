package failover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
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

// diary is what the program was told, with the time of each acknowledgement.
type diary struct {
	mu      sync.Mutex
	started map[string]time.Time
	acked   map[string]time.Time // run and step
	again   map[string]bool      // acked, and lost: the body ran once more
	last    time.Time
}

// begins notes a body that begins. If the program was told its outcome before, that is lost.
func (d *diary) begins(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.acked[what]; ok {
		d.again[what] = true
	}
}

func (d *diary) note(m map[string]time.Time, what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
	m[what] = d.last
}

func (d *diary) latest() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

const steps = 4

func chain(d *diary) *durable.Workflow[int, int] {
	return durable.Define("chain", func(ctx context.Context, n int) (int, error) {
		for i := range steps {
			name := fmt.Sprint("step ", i)
			what := durable.RunID(ctx) + "/" + name
			err := durable.Do(ctx, name, func(context.Context) error {
				d.begins(what)
				time.Sleep(5 * time.Millisecond)
				return nil
			})
			if err != nil {
				return 0, err
			}
			d.note(d.acked, what)
		}
		return n, nil
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// After a failover every run that the new primary knows ends, none is damaged or executed
// twice at once; with synchronous replication nothing is lost that was acknowledged.
func TestAFailoverUnderLoad(t *testing.T) {
	failovers := 1
	if os.Getenv("DURABLE_SOAK") != "" {
		failovers = 10
	}
	for _, synchronous := range []bool{true, false} {
		name := map[bool]string{true: "synchronous", false: "asynchronous"}[synchronous]
		t.Run(name, func(t *testing.T) { failOver(t, name, synchronous, failovers) })
	}
}

func failOver(t *testing.T, name string, synchronous bool, failovers int) {
	primary := pgtest.Start(t)
	replica := primary.StartReplica(t, nil)
	following(t, primary, synchronous)
	dsn := both(t, primary, replica)
	d := &diary{started: map[string]time.Time{}, acked: map[string]time.Time{}, again: map[string]bool{}}
	wf := chain(d)
	var engines []*durable.Engine
	for range 2 {
		st, err := postgres.Open(dsn)
		require.NoError(t, err)
		eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{wf}, Lease: 5 * time.Second, Logger: quiet()})
		require.NoError(t, err)
		defer func() { _ = eng.Close(); _ = st.Close() }()
		engines = append(engines, eng)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	for i, eng := range engines {
		load.Go(func() {
			ectx := durable.NewContext(ctx, eng)
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%d-%d", i, n)
				if _, err := wf.Start(ectx, id, n); err == nil {
					d.note(d.started, id)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	var outages, ours []time.Duration
	for range failovers {
		moves(t, d, time.Now())
		time.Sleep(time.Second) // of load
		killed := time.Now()
		require.NoError(t, primary.Kill9())
		if !synchronous {
			// What the replica has not been sent is lost; with the server killed, nothing more comes.
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, replica.Promote())
		promoted := time.Now()
		outages = append(outages, moves(t, d, promoted).Sub(killed))
		ours = append(ours, d.latest().Sub(promoted))
		primary, replica = replica, replica.StartReplica(t, primary)
		following(t, primary, synchronous)
	}
	stop()
	load.Wait()
	lostRuns, lostSteps, runs := settle(t, primary.DSN(), wf, engines, d)
	if synchronous {
		require.Zero(t, lostRuns+lostSteps, "the replica had everything that was acknowledged")
	}
	slices.Sort(outages)
	slices.Sort(ours)
	tried.Say(t, "failover", "mode=%s failovers=%d runs=%d lost_runs=%d lost_steps=%d damaged=0 double_owned=0 outage_p50=%s outage_max=%s after_promotion_p50=%s after_promotion_max=%s",
		name, failovers, runs, lostRuns, lostSteps, at(outages, 50), at(outages, 100), at(ours, 50), at(ours, 100))
}

func at(d []time.Duration, percent int) time.Duration {
	return d[(len(d)-1)*percent/100].Round(time.Millisecond)
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

// moves waits until something is acknowledged after since, and returns when that was.
func moves(t *testing.T, d *diary, since time.Time) time.Time {
	t.Helper()
	require.Eventually(t, func() bool { return d.latest().After(since) }, 2*time.Minute, time.Millisecond)
	return d.latest()
}

// settle lets every run end that is there, and counts what was acknowledged and is not.
func settle(t *testing.T, dsn string, wf *durable.Workflow[int, int], engines []*durable.Engine, d *diary) (lostRuns, lostSteps, runs int) {
	st, err := postgres.Open(dsn)
	require.NoError(t, err)
	defer st.Close()
	open := store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted, store.Waiting}}
	require.Eventually(t, func() bool {
		n, err := st.Count(t.Context(), open, "")
		return err == nil && n[""] == 0
	}, 2*time.Minute, 50*time.Millisecond, "every run that is there ends")
	looker, err := durable.Open(t.Context(), st, durable.Options{Logger: quiet()})
	require.NoError(t, err)
	defer looker.Close()
	for v, err := range operate.On(looker).VerifyAll(t.Context(), store.Filter{}) {
		require.NoError(t, err)
		require.Empty(t, v.Findings, v.RunID)
	}
	for id := range d.started {
		h, err := st.Load(t.Context(), id, store.Cursor{All: true})
		if errors.Is(err, store.ErrNotFound) {
			lostRuns++
			continue
		}
		require.NoError(t, err)
		runs++
		require.Equal(t, store.Completed, h.Run.Status, "%s: %s", id, h.Run.Reason)
		done := map[string]bool{}
		epoch := int64(0)
		for e, err := range h.Events {
			require.NoError(t, err)
			require.GreaterOrEqual(t, e.Epoch, epoch, "%s: two owners wrote at once", id)
			epoch = e.Epoch
			if e.Type == store.StepCompleted {
				require.False(t, done[e.Key], "%s: %s has two outcomes", id, e.Key)
				done[e.Key] = true
			}
		}
		require.Len(t, done, steps, id)
	}
	return lostRuns, len(d.again), runs
}
