package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
	"github.com/holdfast-dev/holdfast/test/tried"
)

// insist commits as the engine does: a Change whose outcome is unknown, or that
// could not be delivered, is sent again as it is. It stops at a verdict.
func insist(ctx context.Context, s store.Store, batch []store.Change) []error {
	errs := make([]error, len(batch))
	open := make([]int, len(batch))
	for i := range open {
		open[i] = i
	}
	for len(open) > 0 {
		todo := make([]store.Change, len(open))
		for k, i := range open {
			todo[k] = batch[i]
		}
		var again []int
		for k, err := range s.Commit(ctx, todo) {
			errs[open[k]] = err
			if err != nil && !verdict(err) {
				again = append(again, open[k])
			}
		}
		open = again
		if ctx.Err() != nil {
			break
		}
	}
	return errs
}

func verdict(err error) bool {
	for _, e := range []error{store.ErrClosed, store.ErrInvalid, store.ErrNotFound, store.ErrExists, store.ErrFenced, store.ErrStatus, store.ErrOwned, store.ErrOccupied} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// crowd is a group of workers that each take runs through their lives and count
// what they were told is done.
type crowd struct {
	t     *testing.T
	store *postgres.Store
	steps int
	total atomic.Int64 // runs completed
	sink  string
}

// work writes runs until stop is closed, in batches of width runs.
func (c *crowd) work(name string, width int, stop <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	must := func(batch []store.Change) {
		for i, err := range insist(ctx, c.store, batch) {
			if err != nil {
				c.t.Errorf("run %s: %v", batch[i].RunID, err)
			}
		}
	}
	for k := 0; ; k++ {
		select {
		case <-stop:
			return
		default:
		}
		runs := make([]*runLog, width)
		var batch []store.Change
		for i := range runs {
			runs[i] = &runLog{id: fmt.Sprintf("%s-%d-%d", name, k, i)}
			batch = append(batch, runs[i].create("me"))
		}
		must(batch)
		for range c.steps {
			batch = batch[:0]
			for _, r := range runs {
				batch = append(batch, r.step([]byte("{}")))
			}
			must(batch)
		}
		batch = batch[:0]
		for _, r := range runs {
			done := r.complete()
			done.Send = []store.Message{{To: c.sink, Kind: store.KindChild, ID: r.id, Name: "done"}}
			batch = append(batch, done)
		}
		must(batch)
		c.total.Add(int64(width))
		if c.t.Failed() {
			return
		}
	}
}

// run starts workers, disturbs them, and checks that everything that was
// acknowledged is there exactly once.
func (c *crowd) run(disturb func()) {
	sink := &runLog{id: c.sink}
	commit(c.t, c.store, sink.create("me"))
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for i, width := range []int{1, 1, 8} {
		workers.Go(func() { c.work(fmt.Sprintf("w%d", i), width, stop) })
	}
	disturb()
	close(stop)
	workers.Wait()
	if c.t.Failed() {
		return
	}
	require.Positive(c.t, c.total.Load())
	h, _ := load(c.t, c.store, c.sink)
	require.Len(c.t, h.Inbox, int(c.total.Load()), "every completion arrived exactly once")
	counts, err := c.store.Count(c.t.Context(), store.Filter{}, store.ByStatus)
	require.NoError(c.t, err)
	require.Equal(c.t, c.total.Load(), counts[string(store.Completed)])
	seen := map[string]bool{}
	for _, m := range h.Inbox {
		require.False(c.t, seen[m.ID])
		seen[m.ID] = true
	}
	// The logs of some: gapless, sealed, every step once.
	for i := 0; i < len(h.Inbox); i += 1 + len(h.Inbox)/20 {
		c.check(h.Inbox[i].ID)
	}
}

func (c *crowd) check(id string) {
	_, events := load(c.t, c.store, id)
	require.Len(c.t, events, c.steps+2, id)
	sum := uint32(0)
	for i := range events {
		e := events[i]
		require.Equal(c.t, int64(i+1), e.Seq, id)
		require.Equal(c.t, store.Seal(id, sum, &e), e.Sum, id)
		sum = e.Sum
	}
}

// times is n, and many times that in the long run of `make soak`.
func times(n int) int {
	if os.Getenv("DURABLE_SOAK") != "" {
		return 8 * n
	}
	return n
}

func TestAnswersThatAreCutLoseAndDoubleNothing(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		p := proxy.New(t, proxy.Target(dsn))
		c := &crowd{t: t, store: d.open(t, p.DSN(dsn)), steps: 5, sink: "sink"}
		cuts := times(60)
		c.run(func() {
			var seen atomic.Int64
			p.SetPolicy(func(r proxy.Request) proxy.Action {
				writes := slices.ContainsFunc(r.SQL, func(s string) bool {
					return strings.EqualFold(s, "COMMIT") || strings.Contains(s, "INSERT INTO")
				})
				if !r.Executes || !writes || seen.Add(1)%20 != 0 {
					return proxy.Pass
				}
				return []proxy.Action{proxy.CutReply, proxy.CutBlind, proxy.CutBefore}[rand.N(3)]
			})
			require.Eventually(t, func() bool { return p.Cuts() >= cuts || t.Failed() }, time.Duration(times(1))*time.Minute, 5*time.Millisecond)
			p.SetPolicy(nil)
		})
		tried.Say(t, "cuts", "cuts=%d runs=%d lost=0 doubled=0", p.Cuts(), c.total.Load())
	})
}

func TestTerminatedBackendsLoseAndDoubleNothing(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		admin := raw(t, dsn)
		admin.SetMaxOpenConns(1)
		c := &crowd{t: t, store: d.open(t, dsn), steps: 5, sink: "sink"}
		killed, want := 0, times(60)
		c.run(func() {
			for deadline := time.Now().Add(time.Duration(times(1)) * time.Minute); killed < want && time.Now().Before(deadline) && !t.Failed(); {
				before := c.total.Load()
				var n int
				require.NoError(t, admin.Get(&n, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`))
				killed += n
				// Let something be done in between.
				require.Eventually(t, func() bool { return c.total.Load() > before || t.Failed() }, time.Minute, time.Millisecond)
			}
		})
		tried.Say(t, "terminated", "sessions=%d runs=%d lost=0 doubled=0", killed, c.total.Load())
		require.GreaterOrEqual(t, killed, want)
	})
}

func TestAServerThatIsRestartedUnderLoadLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	c := &crowd{t: t, store: open(t, cluster.DSN()), steps: 5, sink: "sink"}
	stops := []func() error{
		func() error { return cluster.Stop(pgtest.Fast) },
		func() error { return cluster.Stop(pgtest.Immediate) },
		cluster.Kill9,
		func() error { return cluster.Stop(pgtest.Fast) },
		cluster.Kill9,
	}
	c.run(func() {
		for i := range times(len(stops)) {
			stop := stops[i%len(stops)]
			before := c.total.Load()
			require.Eventually(t, func() bool { return c.total.Load() > before+10 || t.Failed() }, time.Minute, time.Millisecond)
			require.NoError(t, stop())
			require.NoError(t, cluster.Restart())
		}
		before := c.total.Load()
		require.Eventually(t, func() bool { return c.total.Load() > before || t.Failed() }, time.Minute, time.Millisecond)
	})
	tried.Say(t, "restarts", "restarts=%d runs=%d lost=0 doubled=0", times(len(stops)), c.total.Load())
}

func TestAStricterIsolationOfTheServerIsNoObstacle(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		for _, level := range []string{"serializable", "repeatable read"} {
			t.Run(level, func(t *testing.T) {
				dsn := pgtest.With(pgtest.DSN(t), "default_transaction_isolation", level)
				// Pooled leaves the sessions as the server makes them.
				for _, pooled := range []bool{false, true} {
					s := d.openOptions(t, dsn, postgres.Options{Pooled: pooled})
					c := &crowd{t: t, store: s, steps: 3, sink: fmt.Sprintf("sink-%v", pooled)}
					if pooled {
						_, err := s.Delete(t.Context(), store.Deletion{RunIDs: ids(t, s), Force: true})
						require.NoError(t, err)
					}
					c.run(func() {
						require.Eventually(t, func() bool { return c.total.Load() >= 50 || t.Failed() }, time.Minute, time.Millisecond)
					})
				}
			})
		}
	})
}

func ids(t *testing.T, s store.Store) (all []string) {
	f := store.Filter{Limit: 1000}
	for {
		page, err := s.List(t.Context(), f)
		require.NoError(t, err)
		for i := range page.Runs {
			all = append(all, page.Runs[i].ID)
		}
		if f.After = page.Next; f.After == "" {
			return all
		}
	}
}

func TestAnUnknownOutcomeIsSaidAndSettledByTheSameChange(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		p := proxy.New(t, proxy.Target(dsn))
		s, direct := d.open(t, p.DSN(dsn)), d.open(t, dsn)
		r := &runLog{id: "r"}
		commit(t, s, r.create("me"))
		commit(t, s, r.step(nil))
		step := r.step(nil)
		var cut atomic.Bool
		p.SetPolicy(func(q proxy.Request) proxy.Action {
			if cut.Load() {
				return proxy.CutBefore // the server stays out of reach
			}
			if q.Executes && slices.ContainsFunc(q.SQL, func(s string) bool { return strings.Contains(s, "INSERT INTO") }) {
				cut.Store(true)
				return proxy.CutReply
			}
			return proxy.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := s.Commit(ctx, []store.Change{step})[0]
		require.ErrorIs(t, err, store.ErrUnknown)
		require.Less(t, time.Since(start), time.Minute, "the context bounds how long it tries")
		_, events := load(t, direct, "r")
		require.Len(t, events, 3, "and yet it was carried out")

		p.SetPolicy(nil)
		commit(t, s, step)
		_, events = load(t, direct, "r")
		require.Len(t, events, 3)
		commit(t, s, r.complete())
	})
}

func TestAServerOutOfReachIsNoUnknownOutcome(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		p := proxy.New(t, proxy.Target(dsn))
		s := d.openOptions(t, p.DSN(dsn), postgres.Options{NoPresence: true})
		r := &runLog{id: "r"}
		create := r.create("me")
		p.SetPolicy(func(proxy.Request) proxy.Action { return proxy.CutBefore })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		err := s.Commit(ctx, []store.Change{create})[0]
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrUnknown, "a transaction that was not committed did not happen")
		p.SetPolicy(nil)
		commit(t, s, create)
	})
}

// A claim whose answer is lost must not leave a run with a live owner that does
// not know of it.
func TestAClaimWhoseAnswerIsLostIsReturnedAllTheSame(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		p := proxy.New(t, proxy.Target(dsn))
		s := d.openOptions(t, p.DSN(dsn), postgres.Options{NoPresence: true})
		e := store.Executor{ID: "e", Lease: time.Minute, Serves: []store.Served{{Workflow: "w", Versions: []string{"1"}}}}
		_, err := s.Beat(t.Context(), e)
		require.NoError(t, err)
		const n = 80
		for i := range n {
			r := &runLog{id: fmt.Sprintf("r%d", i)}
			commit(t, s, r.create(""))
		}
		var seen atomic.Int64
		p.SetPolicy(func(r proxy.Request) proxy.Action {
			if slices.ContainsFunc(r.SQL, func(s string) bool { return strings.EqualFold(s, "COMMIT") }) && seen.Add(1)%2 == 0 {
				return []proxy.Action{proxy.CutReply, proxy.CutBlind, proxy.CutBefore}[seen.Load()/2%3]
			}
			return proxy.Pass
		})
		got := map[string]int64{}
		require.Eventually(t, func() bool {
			runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: e.Serves, Max: 8})
			if err != nil {
				t.Logf("claim: %v", err)
			}
			for i := range runs {
				require.NotContains(t, got, runs[i].ID, "S19")
				got[runs[i].ID] = runs[i].Epoch
				require.Equal(t, runs[i].Epoch, runs[i].Last.Epoch)
			}
			return len(got) == n
		}, 30*time.Second, time.Millisecond)
		require.Greater(t, p.Cuts(), 3)
		p.SetPolicy(nil)
		for id, epoch := range got {
			h, events := load(t, s, id)
			require.Equal(t, epoch, h.Run.Epoch)
			require.Len(t, events, 2, "claimed once")
		}
	})
}

// A session that went to a server which takes no writes any more, as an old
// primary after a failover, is given up for a new one.
func TestASessionThatTakesNoWritesIsGivenUp(t *testing.T) {
	onEveryDriver(t, func(t *testing.T, d drive) {
		dsn := pgtest.DSN(t)
		s := d.open(t, dsn)
		r := &runLog{id: "r"}
		commit(t, s, r.create("me"))
		admin := raw(t, dsn)
		readOnly := func(v string) {
			admin.MustExec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ` + v + `', current_database()); END $$`)
		}
		readOnly("on")
		admin.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		step := r.step(nil)
		// On a busy machine there may be no time for more than to find the old connection dead.
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			err := s.Commit(ctx, []store.Change{step})[0]
			require.Error(t, err)
			return strings.Contains(err.Error(), "read-only")
		}, 30*time.Second, time.Millisecond)
		admin = raw(t, dsn)
		admin.SetMaxOpenConns(1)
		admin.MustExec("SET default_transaction_read_only = off")
		readOnly("off")
		commit(t, s, step)
		_, events := load(t, s, "r")
		require.Len(t, events, 2)
	})
}

// The end of a context alone does not tell an operator why nothing was done until then.
func TestACallThatItsContextEndsSaysWhatKeptItFromSucceeding(t *testing.T) {
	dsn := pgtest.DSN(t)
	s, admin := open(t, dsn), raw(t, dsn)
	admin.MustExec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	admin.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := s.Beat(ctx, store.Executor{ID: "me", Lease: time.Minute})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return strings.Contains(err.Error(), "read-only")
	}, 30*time.Second, time.Millisecond)
}
