package proof_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/postgres"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/pgtest"
)

// childEnv carries the orders for a child: this test binary, executed again.
const childEnv = "HOLDFAST_PROOF_CHILD"

// orders are what a child does.
type orders struct {
	Role    string // "worker", "zombie", "waiter", "polite", "host", "looper", "saga", "saga"
	Backend string
	DSN     string
	Dir     string // for the journal and flags
	Life    int
	New     int    // runs to start, or the write to die at
	Write   string // what kind of write that is
	Lease   time.Duration
	Hold    string // key and attempt of the body that a polite one does not leave until it is closed, or killed
}

// TestMain turns the binary into a child when it is told to.
func TestMain(m *testing.M) {
	env := os.Getenv(childEnv)
	if env == "" {
		// Most wait for their children, a lease or a clock; those whose rules have times are not
		// among them.
		pgtest.Parallel(8)
		os.Exit(m.Run())
	}
	var o orders
	if err := json.Unmarshal([]byte(env), &o); err != nil {
		panic(err)
	}
	st, err := openStore(o.Backend, o.DSN)
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	switch o.Role {
	case "worker":
		err = worker(st, o)
	case "polite":
		err = polite(st, o)
	case "waiter":
		err = waiter(st, o)
	case "zombie":
		err = zombie(st, o)
	case "host":
		err = host(st, o)
	case "looper":
		err = looper(st, o)
	default:
		err = operations[o.Role](st, o)
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func openStore(backend, dsn string) (store.Store, error) {
	if backend == "postgres" {
		return postgres.Open(dsn)
	}
	return sqlite.Open(dsn)
}

// boot opens an engine that executes wf, and recovers what earlier lives have left.
func boot(st store.Store, o orders, wf durable.Definition) (context.Context, *durable.Engine, error) {
	ctx := context.Background()
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease})
	if err != nil {
		return nil, nil, err
	}
	ctx = durable.NewContext(ctx, eng)
	_, err = durable.Recover(ctx)
	return ctx, eng, err
}

// backends tests the stores that outlive a process, both at once.
func backends(t *testing.T, test func(t *testing.T, o orders)) {
	inTurn(t, func(t *testing.T, o orders) {
		t.Parallel()
		test(t, o)
	})
}

// inTurn tests them one after the other.
func inTurn(t *testing.T, test func(t *testing.T, o orders)) {
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			o := orders{Backend: name, Dir: t.TempDir()}
			if name == "sqlite" {
				o.DSN = filepath.Join(o.Dir, "runs.db")
			} else {
				o.DSN = pgtest.DSN(t)
			}
			test(t, o)
		})
	}
}

// child is a process under our control.
type child struct {
	*exec.Cmd
	out    *bufio.Scanner
	orders orders
	born   time.Time
}

func start(t *testing.T, o orders) *child {
	t.Helper()
	env, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(env))
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &child{Cmd: cmd, out: bufio.NewScanner(pipe), orders: o, born: time.Now()}
}

// await reads the child's lines until one begins with word, and returns the
// rest of that line.
func (c *child) await(t *testing.T, word string) string {
	t.Helper()
	for c.out.Scan() {
		if rest, ok := strings.CutPrefix(c.out.Text(), word); ok {
			return strings.TrimSpace(rest)
		}
		if strings.HasPrefix(c.out.Text(), "error") {
			t.Fatalf("child, after %s: %s%s", time.Since(c.born), c.out.Text(), c.orders.activity())
		}
	}
	t.Fatalf("the child ended without saying %q", word)
	return ""
}

// activity is what the server is busy with, and for what its sessions wait, so that a failure for want of an answer
// says why there was none.
func (o orders) activity() string {
	if o.Backend != "postgres" {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	db, err := sql.Open("postgres", o.DSN)
	if err != nil {
		return "\n" + err.Error()
	}
	defer db.Close()
	var said sql.NullString
	began := time.Now()
	err = db.QueryRowContext(ctx, `SELECT string_agg(concat_ws(' ', pid, datname, backend_type, state, wait_event_type, wait_event, clock_timestamp() - query_start,
		'blocked by', pg_blocking_pids(pid)::text, left(query, 120)), E'\n') FROM pg_stat_activity WHERE state IS DISTINCT FROM 'idle'`).Scan(&said)
	said.String += fmt.Sprintf("\nthe server answered this after %s: %v", time.Since(began), err)
	for _, file := range []string{"/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io", "/proc/meminfo"} {
		text, _ := os.ReadFile(file)
		said.String += "\n" + file + ":\n" + string(text[:min(len(text), 200)])
	}
	return "\n" + said.String
}

// kill ends the child with SIGKILL and returns the lines it had still printed.
func (c *child) kill(t *testing.T) []string {
	t.Helper()
	require.NoError(t, c.Process.Kill())
	var lines []string
	for c.out.Scan() {
		lines = append(lines, c.out.Text())
	}
	_ = c.Wait()
	return lines
}

// isGone waits until a child that was killed, or is stopped, does not count as live any more. A
// server sees that its connection has ended a moment after the process has: until then, it lives.
func (c *child) isGone(t *testing.T, st store.Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := st.Executors(t.Context())
		return err == nil && !slices.ContainsFunc(list, func(x store.Executor) bool { return x.PID == c.Process.Pid && x.Live })
	}, time.Minute, 5*time.Millisecond, "process %d counts as live", c.Process.Pid)
}

// note appends a line to the journal, which the outside world keeps: one write
// call, so that a kill leaves it whole or absent.
func note(o orders, format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(o.Dir, "journal"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, fmt.Sprintf(format, args...)+"\n"); err != nil {
		panic(err)
	}
}

// lines yields the lines of a text, without their ends.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for l := range strings.Lines(text) {
			if !yield(strings.TrimSuffix(l, "\n")) {
				return
			}
		}
	}
}

// command runs a shell command line, as a step of a user's would.
func command(ctx context.Context, dir, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	out, err := cmd.Output()
	return string(out), err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// jobSteps is how many steps a job has; each fails twice before it succeeds.
const jobSteps = 5

// job is the workflow of the kill test. It says on stdout what was acknowledged
// to it, and in the journal which bodies began.
func job(o orders) *durable.Workflow[int, int] {
	return durable.Define("job", func(ctx context.Context, in int) (int, error) {
		sum := 0
		for range jobSteps {
			var id, key string
			n, err := durable.Retry(ctx, "work", durable.Policy{MaxAttempts: 4, Initial: time.Millisecond, Max: time.Millisecond}, func(ctx context.Context) (int, error) {
				a := durable.Attempt(ctx)
				id, key = a.RunID, a.Key
				note(o, "%s %s %d", a.RunID, a.Key, a.Number)
				if len(a.Failures) != a.Number-1 {
					return 0, durable.Permanent(fmt.Errorf("attempt %d knows %d failures", a.Number, len(a.Failures)))
				}
				if a.Number < 3 {
					return 0, errors.New("not yet")
				}
				return in + a.Number, nil
			})
			if err != nil {
				return 0, err
			}
			if key != "" { // not on replay
				fmt.Println("ack", id, key, n)
			}
			sum += n
		}
		return sum, nil
	})
}

// worker recovers what earlier lives left, starts some new runs, and works until
// it is killed, or until everything is done when it starts none.
func worker(st store.Store, o orders) error {
	ctx := context.Background()
	wf := job(o)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: quiet(), Lease: o.Lease, QuarantineAfter: 1 << 20})
	if err != nil {
		return err
	}
	ctx = durable.NewContext(ctx, eng)
	rep, err := durable.Recover(ctx)
	if err != nil {
		return err
	}
	fmt.Println("ready", len(rep.Resumed), len(rep.Suspects))
	for i := range o.New {
		if _, err := wf.Start(ctx, fmt.Sprintf("r%d-%d", o.Life, i), o.Life); err != nil {
			return err
		}
		fmt.Println("started", fmt.Sprintf("r%d-%d", o.Life, i))
	}
	if o.New > 0 {
		select {} // until killed
	}
	for {
		open, err := st.Count(ctx, store.Filter{Statuses: []store.Status{store.Pending, store.Running, store.Resuming, store.Interrupted}}, "")
		if err != nil {
			return err
		}
		if open[""] == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return eng.Close()
}
