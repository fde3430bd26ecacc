//go:build linux && cgo

package syscalls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/sqlite"
	"github.com/holdfast-dev/holdfast/test/tried"
)

const childEnv = "HOLDFAST_SYSCALLS_CHILD"

// steps of the run that the child executes.
const steps = 6

// TestMain turns the binary into the process whose calls fail.
func TestMain(m *testing.M) {
	if file := os.Getenv(childEnv); file != "" {
		runtime.GOMAXPROCS(1)
		if err := child(file); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// chain says what it was told, if it is to.
func chain(says bool) *durable.Workflow[int, int] {
	return durable.Define("chain", func(ctx context.Context, n int) (int, error) {
		for i := range steps {
			name := fmt.Sprint("step ", i)
			if err := durable.Do(ctx, name, func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			if says {
				fmt.Println("ack", name)
			}
		}
		return n, nil
	})
}

func open(ctx context.Context, file string, says bool) (*sqlite.Store, *durable.Engine, *durable.Workflow[int, int], error) {
	st, err := sqlite.Open(file)
	if err != nil {
		return nil, nil, nil, err
	}
	wf := chain(says)
	eng, err := durable.Open(ctx, st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		_ = st.Close()
	}
	return st, eng, wf, err
}

// child executes a run in a new file. It gives up when the file cannot be opened, as a program
// does; once it is open, a write that fails is made again.
func child(file string) error {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	st, eng, wf, err := open(ctx, file, true)
	if err != nil {
		return err
	}
	run, err := wf.Start(durable.NewContext(ctx, eng), "r", 1)
	if err != nil {
		return err
	}
	fmt.Println("ack start")
	if _, err := run.Wait(ctx); err != nil {
		return err
	}
	fmt.Println("ack end")
	return errors.Join(eng.Close(), st.Close())
}

// What SQLite is made to meet at a call.
var faults = []struct{ call, what string }{
	{"pwrite64", "signal=SIGKILL"}, {"pwrite64", "error=EIO"}, {"pwrite64", "error=ENOSPC"},
	{"fsync", "signal=SIGKILL"}, {"fsync", "error=EIO"},
}

// Whatever the kernel answers to a write or a sync of SQLite, or if the process dies in it: what
// was acknowledged is in the file, and the run goes on from there.
func TestAFaultAtAnyWriteOrSyncOfSQLite(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here, so no system call was made to fail: apt-get install strace")
	}
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here, so no system call was made to fail: %s", out)
	}
	stride := 12
	if os.Getenv("DURABLE_SOAK") != "" {
		stride = 1
	}
	points, survived := map[string]int{}, 0
	for _, f := range faults {
		for at := 1; ; at += stride {
			require.Less(t, at, 2000, "a fault fires at every number")
			fired, whole := try(t, strace, f.call, f.what, at)
			if !fired {
				break
			}
			points[f.call]++
			if whole {
				survived++
			}
		}
	}
	require.NotZero(t, points["pwrite64"])
	require.NotZero(t, points["fsync"])
	tried.Say(t, "syscalls", "writes=%d syncs=%d survived_at_once=%d lost=0", points["pwrite64"], points["fsync"], survived)
}

// try runs the child with one fault, and reports whether it has met it, and has ended well all
// the same.
func try(t *testing.T, strace, call, what string, at int) (fired, whole bool) {
	t.Helper()
	dir := t.TempDir()
	file, trace := filepath.Join(dir, "runs.db"), filepath.Join(dir, "trace")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, strace, "-f", "-qq", "-o", trace, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, what, at), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+file)
	out, err := cmd.Output()
	said, readErr := os.ReadFile(trace)
	require.NoError(t, readErr)
	killed := strings.Contains(what, "SIGKILL")
	fired = bytes.Contains(said, []byte("INJECTED")) || killed && err != nil
	how := fmt.Sprintf("%s:%s at %d: %s", call, what, at, out)
	if !fired {
		require.NoError(t, err, how)
	}
	after(t, file, string(out), how)
	return fired, err == nil
}

// after opens what is left, and lets the run end.
func after(t *testing.T, file, said, how string) {
	t.Helper()
	st, eng, wf, err := open(t.Context(), file, false)
	require.NoError(t, err, how)
	defer func() { require.NoError(t, errors.Join(eng.Close(), st.Close()), how) }()
	ctx := durable.NewContext(t.Context(), eng)
	done := map[string]bool{}
	for e, err := range eng.History(ctx, "r") {
		if errors.Is(err, durable.ErrNotFound) {
			break
		}
		require.NoError(t, err, how)
		if e.Type == store.StepCompleted {
			require.False(t, done[e.Key], how)
			done[e.Key] = true
		}
	}
	for line := range strings.Lines(said) {
		if what, ok := strings.CutPrefix(strings.TrimSpace(line), "ack step "); ok {
			require.True(t, done["step "+what], "step %s was acknowledged and is lost: %s", what, how)
		}
	}
	_, err = durable.Recover(ctx)
	require.NoError(t, err, how)
	run, err := wf.Start(ctx, "r", 1)
	require.NoError(t, err, how)
	_, err = run.Wait(ctx)
	require.NoError(t, err, how)
	v, err := operate.On(eng).Verify(ctx, "r")
	require.NoError(t, err, how)
	require.Empty(t, v.Findings, how)
}
