package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// A session that is ended while its commit waits for the synchronous replica leaves a commit that
// the server shows and the replica lacks. Done again, the act finds it there, and is not
// acknowledged before the replica has it: the replica may be promoted.
func TestAnActThatIsFoundIsAcknowledgedOnlyWhenTheReplicaHasIt(t *testing.T) {
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
	r, parent, gone := &runLog{id: "r"}, &runLog{id: "parent"}, &runLog{id: "gone"}
	commit(t, s, r.create("me"), parent.create("me"), gone.create("me"))
	_, err := s.PutSchedule(t.Context(), store.Schedule{Name: "deleted"})
	require.NoError(t, err)
	changed, err := s.PutSchedule(t.Context(), store.Schedule{Name: "changed"})
	require.NoError(t, err)
	changed.Due = 7
	signal := store.Change{Send: []store.Message{{To: "r", Kind: store.KindSignal, ID: "s", Name: "s", At: 1}}}
	whole := r.step(nil)
	whole.Send = []store.Message{{To: "parent", Kind: store.KindSignal, ID: "t", Name: "t", At: 1}}
	change := func(c store.Change) func() error {
		return func() error { return s.Commit(t.Context(), []store.Change{c})[0] }
	}
	put := func(sc store.Schedule) func() error {
		return func() error { _, err := s.PutSchedule(t.Context(), sc); return err }
	}
	anew := (&runLog{id: "anew"}).create("me")
	for name, c := range map[string]struct {
		act    func() error
		second func() error // of another, who finds what act did
		is     error        // what second returns
	}{
		"a step":                  {act: change(parent.step(nil))},
		"a step of a transaction": {act: change(whole)},
		"a message":               {act: change(signal)},
		"a creation":              {act: change((&runLog{id: "new"}).create("me"))},
		"a start":                 {act: change(store.Change{Start: []store.Change{(&runLog{id: "child"}).create("me")}})},
		"a second creation":       {act: change(anew), second: change((&runLog{id: "anew"}).create("you")), is: store.ErrExists},
		"a new schedule":          {act: put(store.Schedule{Name: "new", Due: 7}), second: put(store.Schedule{Name: "new", Due: 7})},
		"a schedule":              {act: put(changed)},
		"the deletion of a schedule": {act: func() error {
			_, err := s.DeleteSchedule(t.Context(), "deleted")
			return err
		}},
		"a queue": {act: func() error { return s.PutQueue(t.Context(), store.Queue{Name: "q", Max: 5}) }},
		"a deletion": {act: func() error {
			_, err := s.Delete(t.Context(), store.Deletion{RunIDs: []string{"gone"}, Force: true})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, replica.Stop(pgtest.Fast))
			waiting := func(other int) (pids []int) {
				require.NoError(t, admin.Select(&pids, `SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> $1`, other))
				return pids
			}
			told := make(chan error, 2)
			go func() { told <- c.act() }()
			var ended int
			require.Eventually(t, func() bool {
				for _, ended = range waiting(0) {
				}
				return ended != 0
			}, time.Minute, time.Millisecond)
			admin.MustExec(`SELECT pg_terminate_backend($1)`, ended)
			wait := func(n int) {
				require.Eventually(t, func() bool { return len(waiting(ended)) == n || len(told) > 0 }, time.Minute, time.Millisecond)
				require.Empty(t, told, "the replica lacks it")
			}
			wait(1)
			second := make(chan error, 1)
			if c.second != nil {
				go func() {
					err := c.second()
					second <- err
					told <- err
				}()
				wait(2)
			}
			require.NoError(t, replica.Restart())
			if c.second != nil {
				require.ErrorIs(t, <-second, c.is)
				require.ErrorIs(t, errors.Join(<-told, <-told), c.is)
				return
			}
			require.NoError(t, <-told)
		})
	}
}

// The end of a context makes the server give up its wait for the replica, and answer that it has committed.
func TestWhatTheReplicaLacksWhenTheContextEndsIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	s, admin := open(t, primary.DSN()), raw(t, primary.DSN())
	sc, err := s.PutSchedule(t.Context(), store.Schedule{Name: "daily"})
	require.NoError(t, err)
	require.NoError(t, primary.Synchronous(true)) // and there is no replica
	// Each process of the server takes the setting in its own time.
	probe := raw(t, primary.DSN())
	require.Eventually(t, func() (waits bool) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = probe.Exec(`SELECT pg_logical_emit_message(true, 'probe', '')`)
		}()
		for ended := false; !ended && !waits; {
			select {
			case <-done:
				ended = true
			default:
				require.NoError(t, admin.Get(&waits, `SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`))
			}
		}
		<-done
		return waits
	}, time.Minute, time.Millisecond)
	sc.Due = 7
	for _, act := range []func(ctx context.Context) error{
		func(ctx context.Context) error { _, err := s.PutSchedule(ctx, sc); return err }, // writes it
		func(ctx context.Context) error { _, err := s.PutSchedule(ctx, sc); return err }, // finds it
		func(ctx context.Context) error { _, err := s.DeleteSchedule(ctx, "daily"); return err },
		func(ctx context.Context) error { _, err := s.DeleteSchedule(ctx, "daily"); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan error, 1)
		go func() { told <- act(ctx) }()
		require.Eventually(t, func() (waits bool) {
			require.NoError(t, admin.Get(&waits, `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'`))
			return waits || len(told) > 0
		}, time.Minute, time.Millisecond)
		require.Empty(t, told)
		cancel()
		require.ErrorIs(t, <-told, context.Canceled)
	}
	require.NoError(t, primary.Synchronous(false))
}

const takesNoWrites = "the server takes no writes, because it is a standby or is set read-only: name the one that takes them"

func TestAStandbyIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	replica := primary.StartReplica(t, nil)
	open(t, primary.DSN())
	_, err := postgres.Open(replica.DSN())
	require.ErrorContains(t, err, takesNoWrites)
}

func TestAServerThatIsReadOnlyIsNamedAsSuch(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.With(pgtest.DSN(t), "default_transaction_read_only", "on"))
	_, err := s.Beat(t.Context(), store.Executor{ID: "e", Lease: time.Minute}) // it is tried for eight seconds
	require.ErrorContains(t, err, takesNoWrites)
}
