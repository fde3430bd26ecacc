//go:build unix && cgo

package chaos_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"
	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
	"github.com/holdfast-dev/holdfast/test/pgtest/proxy"
)

const childEnv = "HOLDFAST_CHAOS_CHILD"

// tally is what was done, and what was found.
type tally struct {
	runs, kills, stops, ends, restarts, cuts, stalls, readonly, locks, copies int
	lost, doubled, leaks, quarantined, guilty, overlaps, stuck                int
	overlap                                                                   time.Duration
	takeover                                                                  []time.Duration
}

// world is the processes and their database.
type world struct {
	t       *testing.T
	base    orders
	rnd     *rand.Rand
	cluster *pgtest.Cluster
	slots   []*slot
	ledger  *ledger
	tally   tally
	locked  chan error // says that the lock is given back; nil: nobody holds it
}

// slot is a place for one process after the other.
type slot struct {
	n, life int
	cmd     *exec.Cmd
	name    string
	ready   chan error // says once that it knows what to do with signals, or has ended before
	wakes   time.Time  // when it continues; zero: it is not stopped
	proxy   *proxy.Proxy
	stalled atomic.Int64 // until when requests wait, in µs
	cut     int          // connections, beside those that the policy cuts
}

func newWorld(t *testing.T, backend string, seed uint64, slots int) *world {
	t.Helper()
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 0)), base: orders{Backend: backend, Dir: t.TempDir(), Lease: time.Second}}
	for _, dir := range []string{"ledger", "once"} {
		require.NoError(t, os.Mkdir(filepath.Join(w.base.Dir, dir), 0o700))
	}
	if backend == "postgres" {
		w.cluster = pgtest.Start(t)
		w.base.DSN = w.cluster.DSN()
	} else {
		w.base.DSN = filepath.Join(w.base.Dir, "runs.db")
	}
	st, err := openStore(backend, w.base.DSN)
	require.NoError(t, err)
	require.NoError(t, st.Close())
	w.sql("CREATE TABLE chaos_effects (run text)")
	for i := range slots {
		s := &slot{n: i}
		if w.cluster != nil {
			s.proxy = proxy.New(t, w.cluster.Addr())
			s.proxy.SetPolicy(s.policy)
		}
		w.slots = append(w.slots, s)
	}
	t.Cleanup(func() {
		for _, s := range w.slots {
			if s.cmd != nil {
				_ = s.cmd.Process.Kill()
				_ = s.cmd.Wait()
			}
		}
	})
	return w
}

// policy lets a request wait while the slot is stalled, and cuts the connection at one write in
// two hundred: before it, after it, or in the middle of it.
func (s *slot) policy(r proxy.Request) proxy.Action {
	if until := s.stalled.Load(); until > 0 {
		if d := time.Until(time.UnixMicro(until)); d > 0 {
			time.Sleep(d)
		}
	}
	writes := slices.ContainsFunc(r.SQL, func(q string) bool { return strings.EqualFold(q, "COMMIT") || strings.Contains(q, "INSERT INTO") })
	if !r.Executes || !writes || rand.IntN(200) != 0 {
		return proxy.Pass
	}
	return []proxy.Action{proxy.CutReply, proxy.CutBlind, proxy.CutBefore}[rand.IntN(3)]
}

func (w *world) db() *sql.DB {
	driver, dsn := "sqlite3", w.base.DSN+"?_busy_timeout=10000&_txlock=immediate"
	if w.cluster != nil {
		driver, dsn = "postgres", w.base.DSN
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(w.t, err)
	return db
}

func (w *world) sql(statements ...string) {
	w.t.Helper()
	db := w.db()
	defer db.Close()
	for _, q := range statements {
		_, err := db.Exec(q)
		require.NoError(w.t, err, q)
	}
}

// spawn begins the next life in a slot.
func (w *world) spawn(s *slot, round int, start bool) {
	w.t.Helper()
	s.life++
	s.name = fmt.Sprintf("s%dl%d", s.n, s.life)
	o := w.base
	o.Name, o.Round, o.Start = s.name, round, start
	if s.proxy != nil {
		o.DSN = s.proxy.DSN(o.DSN)
	}
	env, err := json.Marshal(o)
	require.NoError(w.t, err)
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), childEnv+"="+string(env))
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, s.cmd.Start())
	ready := make(chan error, 1)
	s.ready = ready
	go func() {
		_, err := bufio.NewReader(out).ReadString('\n')
		ready <- err
	}()
}

// signal sends a signal once the process knows what to do with it.
func (w *world) signal(s *slot, sig syscall.Signal) {
	w.t.Helper()
	if s.ready != nil {
		require.NoError(w.t, <-s.ready, "%s ended at its beginning", s.name)
		s.ready = nil
	}
	require.NoError(w.t, s.cmd.Process.Signal(sig))
}

// kill ends a process, which may only just have begun.
func (w *world) kill(s *slot) {
	require.NoError(w.t, s.cmd.Process.Kill())
	if s.ready != nil {
		<-s.ready
		s.ready = nil
	}
	_ = s.cmd.Wait()
	w.ledger.note("killed", s.name, "", 0, "") // it runs no more from here on
	w.tally.kills++
}

// leave ends a process by SIGTERM. If it does not end by itself, that is a fault.
func (w *world) leave(s *slot, sig syscall.Signal, patience time.Duration) {
	w.t.Helper()
	w.signal(s, sig)
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	late := time.After(patience)
	// Of SQLite's turns a goroutine is left until a stopped process goes on (ADR 0049).
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-done:
			tick.Stop()
			require.NoError(w.t, err, "%s ended in a wrong way", s.name)
			w.ledger.note("ended", s.name, "", 0, "")
			return
		case <-tick.C:
			w.wake(false)
		case <-late:
			w.t.Logf("%s does not end; its goroutines follow; what is open: %v", s.name, w.open())
			w.signal(s, syscall.SIGQUIT)
			<-done
			require.Fail(w.t, "a process does not end", s.name)
		}
	}
}

// disturb does one thing to the world.
func (w *world) disturb(round int) {
	s := w.slots[w.rnd.IntN(len(w.slots))]
	if !s.wakes.IsZero() {
		return
	}
	beyond := w.base.Lease + time.Duration(w.rnd.Int64N(int64(w.base.Lease)))
	switch k := w.rnd.IntN(100); {
	case k < 70:
		w.kill(s)
		w.spawn(s, round, true)
	case k < 78:
		w.signal(s, syscall.SIGSTOP)
		w.ledger.note("stopped", s.name, "", 0, "")
		s.wakes = time.Now().Add(beyond) // the others are disturbed meanwhile
		w.tally.stops++
	case k < 86:
		w.leave(s, syscall.SIGTERM, time.Minute)
		w.tally.ends++
		w.spawn(s, round, true)
	case w.cluster != nil:
		w.disturbServer(s, k, beyond)
	case k < 95:
		w.lock(beyond)
	default:
		w.copy()
	}
}

func (w *world) disturbServer(s *slot, k int, beyond time.Duration) {
	switch {
	case k < 91:
		s.proxy.CutAll()
		s.cut++
	case k < 94:
		s.stalled.Store(time.Now().Add(beyond).UnixMicro())
		w.tally.stalls++
	case k < 97:
		w.sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
		time.Sleep(beyond / 2)
		w.sql("ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		w.tally.readonly++
	default:
		if how := w.rnd.IntN(3); how == 0 {
			require.NoError(w.t, w.cluster.Kill9())
		} else {
			require.NoError(w.t, w.cluster.Stop([]pgtest.Mode{pgtest.Fast, pgtest.Immediate}[how-1]))
		}
		require.NoError(w.t, w.cluster.Restart())
		w.tally.restarts++
	}
}

// lock takes the lock for writing, as another program may, and gives it back after d, while
// processes are disturbed.
func (w *world) lock(d time.Duration) {
	w.unlocked()
	db := w.db()
	tx, err := db.Begin()
	if err != nil {
		require.NoError(w.t, db.Close())
		return // nobody else let it in for ten seconds
	}
	w.locked = make(chan error, 1)
	go func() {
		time.Sleep(d)
		w.locked <- errors.Join(tx.Rollback(), db.Close())
	}()
	w.tally.locks++
}

// unlocked waits until the lock that lock has taken is given back.
func (w *world) unlocked() {
	w.t.Helper()
	if w.locked != nil {
		require.NoError(w.t, <-w.locked)
		w.locked = nil
	}
}

// wake lets stopped processes continue when they are to, or at once.
func (w *world) wake(atOnce bool) {
	w.t.Helper()
	for _, s := range w.slots {
		if !s.wakes.IsZero() && (atOnce || time.Now().After(s.wakes)) {
			w.ledger.note("continued", s.name, "", 0, "")
			w.signal(s, syscall.SIGCONT)
			s.wakes = time.Time{}
		}
	}
}

// copy makes a copy of the file while everybody writes to it, and looks at every run in it.
func (w *world) copy() {
	st, err := sqlite.Open(w.base.DSN)
	require.NoError(w.t, err)
	defer st.Close()
	to := filepath.Join(w.t.TempDir(), "copy.db")
	ctx, stop := context.WithTimeout(w.t.Context(), time.Minute)
	defer stop()
	require.NoError(w.t, st.Backup(ctx, to))
	c, err := sqlite.Open(to)
	require.NoError(w.t, err)
	defer c.Close()
	verifyAll(w.t, c)
	w.tally.copies++
}
