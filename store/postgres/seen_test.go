package postgres_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

// orphans are runs of an executor that is gone, which may be claimed by their ids.
type orphans struct {
	store.Store
	dsn  string
	runs []*runLog
	ids  []string
}

func newOrphans(t *testing.T, n int) *orphans {
	dsn := pgtest.DSN(t)
	o := &orphans{Store: openOptions(t, dsn, postgres.Options{NoPresence: true}), dsn: dsn}
	beat(t, o.Store, executor("gone", time.Millisecond))
	beat(t, o.Store, executor("e", time.Minute))
	for i := range n {
		r := &runLog{id: fmt.Sprintf("r%03d", i)}
		commit(t, o.Store, r.create("gone"))
		o.runs, o.ids = append(o.runs, r), append(o.ids, r.id)
	}
	require.Eventually(t, func() bool {
		list, err := o.Executors(t.Context())
		require.NoError(t, err)
		for _, x := range list {
			if x.ID == "gone" && x.Live {
				return false
			}
		}
		return true
	}, time.Minute, time.Millisecond)
	return o
}

// claimedBy claims the runs through a proxy with this policy for the statement that claims what was seen.
func (o *orphans) claimedBy(t *testing.T, policy func() proxy.Action) *postgres.Store {
	p := proxy.New(t, proxy.Target(o.dsn))
	p.SetPolicy(func(r proxy.Request) proxy.Action {
		if r.Executes && strings.Contains(strings.Join(r.SQL, ""), "take_runs for runs that were seen") {
			return policy()
		}
		return proxy.Pass
	})
	return openOptions(t, p.DSN(o.dsn), postgres.Options{NoPresence: true})
}

// An owner that was gone when a claim read it is asked for again when it is written (S20).
func TestAClaimLeavesRunsWhoseOwnerCameBackMeanwhile(t *testing.T) {
	o := newOrphans(t, 3)
	came := 0
	s := o.claimedBy(t, func() proxy.Action {
		came++
		beat(t, o.Store, executor("gone", time.Minute))
		return proxy.Pass
	})
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 10, IDs: o.ids})
	require.NoError(t, err)
	require.Empty(t, runs)
	require.Equal(t, 1, came)
}

// What changed between the look and the claim is part of what the claim returns, and what its
// owner has still written comes before the claim (S3, S19).
func TestAClaimSeesWhatCameAfterItsLook(t *testing.T) {
	o := newOrphans(t, 3)
	s := o.claimedBy(t, func() proxy.Action {
		commit(t, o.Store, store.Change{Send: []store.Message{{To: o.ids[0], Kind: store.KindSignal, Name: "n", ID: "1", At: 1}}})
		commit(t, o.Store, o.runs[1].step(stepPayload))
		return proxy.Pass
	})
	runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 10, IDs: o.ids})
	require.NoError(t, err)
	require.Len(t, runs, 3)
	for _, run := range runs {
		_, events := load(t, o.Store, run.ID)
		require.Len(t, events, int(run.Last.Seq))
		require.Equal(t, run.Last.Sum, store.Seal(run.ID, events[len(events)-2].Sum, &events[len(events)-1]))
		switch run.ID {
		case o.ids[0]:
			require.EqualValues(t, 1, run.Inbox)
		case o.ids[1]:
			require.EqualValues(t, 3, run.Last.Seq)
		}
	}
}

// As TestAClaimWhoseAnswerIsLostIsReturnedAllTheSame, for runs that are claimed by their ids.
func TestANamedClaimWhoseAnswerIsLostIsReturnedAllTheSame(t *testing.T) {
	o := newOrphans(t, 24)
	var n atomic.Int64
	s := o.claimedBy(t, func() proxy.Action {
		return []proxy.Action{proxy.CutReply, proxy.Pass, proxy.CutBlind, proxy.CutBefore}[n.Add(1)%4]
	})
	got := map[string]bool{}
	require.Eventually(t, func() bool {
		var ids []string
		for _, id := range o.ids {
			if !got[id] && len(ids) < 3 {
				ids = append(ids, id)
			}
		}
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 3, IDs: ids})
		if err != nil {
			t.Logf("claim: %v", err)
		}
		for i := range runs {
			require.False(t, got[runs[i].ID], "S19")
			got[runs[i].ID] = true
		}
		return len(got) == len(o.ids)
	}, 30*time.Second, time.Millisecond)
	require.Greater(t, n.Load(), int64(3))
	for _, id := range o.ids {
		_, events := load(t, o.Store, id)
		require.Len(t, events, 2, "claimed once")
	}
}

// The answer is lost, and the server begins with the statement only once the claim has looked
// whether it took effect: it takes nothing that the claim does not return.
func TestANamedClaimThatTheServerBeginsLateTakesNothingThatIsNotReturned(t *testing.T) {
	o := newOrphans(t, 1)
	db := sqlx.MustConnect("postgres", o.dsn)
	defer db.Close()
	var held *sqlx.Tx // keeps the statement from beginning
	p := proxy.New(t, proxy.Target(o.dsn))
	looked := false
	p.SetPolicy(func(r proxy.Request) proxy.Action {
		text := strings.Join(r.SQL, "")
		switch {
		case !r.Executes:
		case held == nil && strings.Contains(text, "take_runs for runs that were seen"):
			held = db.MustBegin()
			held.MustExec("LOCK TABLE durable_events IN EXCLUSIVE MODE")
			return proxy.CutBlind
		case held != nil && strings.Contains(text, "For a claim whose answer was lost"):
			looked = true
		case looked && strings.HasPrefix(text, "BEGIN"): // the claim goes on
			looked = false
			require.NoError(t, held.Rollback())
			require.Eventually(t, func() bool {
				var active int
				err := db.Get(&active, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE '%take_runs for runs that were seen%' AND pid <> pg_backend_pid()")
				return err == nil && active == 0
			}, time.Minute, time.Millisecond)
		}
		return proxy.Pass
	})
	s := openOptions(t, p.DSN(o.dsn), postgres.Options{NoPresence: true})
	got := 0
	for range 3 {
		runs, err := s.Claim(t.Context(), store.Claim{Executor: "e", Serves: serves, Max: 10, IDs: o.ids})
		require.NoError(t, err)
		got += len(runs)
	}
	require.False(t, looked, "the statement was let go")
	require.Equal(t, 1, got)
	_, events := load(t, o.Store, o.ids[0])
	require.Len(t, events, 2, "claimed once")
}
