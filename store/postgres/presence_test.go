package postgres_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

var serves = []store.Served{{Workflow: "w", Versions: []string{"1"}}}

func executor(id string, lease time.Duration) store.Executor {
	return store.Executor{ID: id, Host: "h", PID: os.Getpid(), Lease: lease, Serves: serves}
}

func beat(t testing.TB, s store.Store, e store.Executor) store.Pulse {
	t.Helper()
	p, err := s.Beat(t.Context(), e)
	require.NoError(t, err)
	return p
}

func live(t testing.TB, s store.Store, id string) bool {
	t.Helper()
	all, err := s.Executors(t.Context())
	require.NoError(t, err)
	for _, e := range all {
		if e.ID == id {
			return e.Live
		}
	}
	return false
}

const envChild = "HOLDFAST_POSTGRES_CHILD"

// TestChildOwnsARun is the process that TestAKilledProcess… kills.
func TestChildOwnsARun(t *testing.T) {
	dsn := os.Getenv(envChild)
	if dsn == "" {
		return
	}
	s := open(t, dsn)
	beat(t, s, executor("child", time.Hour))
	r := &runLog{id: "r"}
	commit(t, s, r.create("child"))
	fmt.Println("owned")
	select {}
}

// startChild starts a process whose executor "child" owns run "r".
func startChild(t *testing.T, dsn string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildOwnsARun$")
	cmd.Env = append(os.Environ(), envChild+"="+dsn)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	in := bufio.NewScanner(out)
	for in.Scan() && in.Text() != "owned" {
	}
	return cmd
}

func TestAKilledProcessLosesItsRunsAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	cmd := startChild(t, dsn)
	s := open(t, dsn)
	me := executor("me", time.Minute)
	require.Empty(t, beat(t, s, me).Gone)
	claim := store.Claim{Executor: "me", Serves: serves, Max: 1, IDs: []string{"r"}}
	runs, err := s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Empty(t, runs, "its owner lives")

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	admin := raw(t, dsn)
	require.Eventually(t, func() bool { // the server sees its connection end
		var held int
		require.NoError(t, admin.Get(&held, `SELECT count(*) FROM pg_locks l JOIN durable_executors e ON e.id = 'child' AND e.presence LIKE 'lock=' || l.objid || ' %'
			WHERE l.locktype = 'advisory' AND l.granted`))
		return held == 0
	}, time.Minute, time.Millisecond)
	require.False(t, live(t, s, "child"), "the lease is an hour, and an executor of another machine would be asked for twice")
	require.Equal(t, []string{"child"}, beat(t, s, me).Gone)
	runs, err = s.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Len(t, runs, 1)
}

func TestALostConnectionOfALivingExecutorIsNoDeath(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	a, b := open(t, dsn), open(t, dsn)
	beat(t, a, executor("a", time.Hour))
	require.True(t, live(t, b, "a"))
	admin := raw(t, dsn)
	for range 5 {
		admin.MustExec(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
		require.Eventually(t, func() bool {
			var n int
			require.NoError(t, admin.Get(&n, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`))
			return n == 1
		}, time.Minute, time.Millisecond, "the lock is taken again")
		require.True(t, live(t, b, "a"))
	}
}

// All locks are free after a restart, until their owners have connected again.
func TestARestartOfTheServerIsNoDeathOfItsExecutors(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Start(t)
	p := proxy.New(t, cluster.Addr())
	a, b := open(t, p.DSN(cluster.DSN())), open(t, cluster.DSN())
	beat(t, a, executor("a", time.Hour))
	require.NoError(t, cluster.Stop(pgtest.Fast))
	p.SetPolicy(func(proxy.Request) proxy.Action { return proxy.CutBefore }) // a cannot come back
	require.NoError(t, cluster.Restart())
	quiet := time.Now().Add(2500 * time.Millisecond)
	require.Eventually(t, func() bool {
		require.True(t, live(t, b, "a"))
		return time.Now().After(quiet)
	}, time.Minute, 100*time.Millisecond)
	// Once it is back, its lock counts again.
	p.SetPolicy(nil)
	require.Eventually(t, func() bool {
		var n int
		require.NoError(t, raw(t, cluster.DSN()).Get(&n, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 1146440258`))
		return n == 1
	}, 20*time.Second, 50*time.Millisecond)
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool { return !live(t, b, "a") }, time.Minute, 20*time.Millisecond)
}

func TestPresenceIsLeftOutWhereItCannotBeTrusted(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	for _, o := range []postgres.Options{{Pooled: true}, {NoPresence: true}} {
		s := openOptions(t, dsn, o)
		require.Empty(t, s.PresenceKind())
		require.Nil(t, store.CapabilitiesOf(s).Presence)
		beat(t, s, executor("x", time.Hour))
		require.True(t, live(t, s, "x"))
		beat(t, s, executor("x", 300*time.Millisecond))
		require.Eventually(t, func() bool { return !live(t, s, "x") }, time.Minute, 10*time.Millisecond, "the lease still runs out")
	}
}
