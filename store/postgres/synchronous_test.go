package postgres_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A session that is ended while its commit waits for the synchronous replica leaves a commit that
// the server shows and the replica lacks. Sent again, the Change is found there, and is not
// acknowledged before the replica has it: the replica may be promoted.
func TestAChangeThatIsFoundIsAcknowledgedOnlyWhenTheReplicaHasIt(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	replica := primary.StartReplica(t, nil)
	require.NoError(t, primary.Synchronous(true))
	require.Eventually(t, func() bool {
		_, waited, err := primary.Follows()
		return err == nil && waited == 1
	}, time.Minute, 20*time.Millisecond)
	s, admin := open(t, primary.DSN()), raw(t, primary.DSN())
	admin.SetMaxOpenConns(1)
	r, parent := &runLog{id: "r"}, &runLog{id: "parent"}
	commit(t, s, r.create("me"), parent.create("me"))
	signal := store.Change{Send: []store.Message{{To: "r", Kind: store.KindSignal, ID: "s", Name: "s", At: 1}}}
	whole := r.step(nil)
	whole.Send = []store.Message{{To: "parent", Kind: store.KindSignal, ID: "t", Name: "t", At: 1}}
	for name, change := range map[string]store.Change{
		"a step": parent.step(nil), "a step of a transaction": whole, "a message": signal, "a creation": (&runLog{id: "new"}).create("me"),
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, replica.Stop(pgtest.Fast))
			waits := func(other int) (pid int) {
				require.NoError(t, admin.Get(&pid, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> $1`, other))
				return pid
			}
			told := make(chan error, 1)
			go func() { told <- s.Commit(t.Context(), []store.Change{change})[0] }()
			var ended int
			require.Eventually(t, func() bool { ended = waits(0); return ended != 0 }, time.Minute, time.Millisecond)
			admin.MustExec(`SELECT pg_terminate_backend($1)`, ended)
			require.Eventually(t, func() bool { return waits(ended) != 0 || len(told) == 1 }, time.Minute, time.Millisecond)
			require.Empty(t, told, "the replica lacks it")
			require.NoError(t, replica.Restart())
			require.NoError(t, <-told)
		})
	}
}
