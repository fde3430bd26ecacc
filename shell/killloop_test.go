//go:build linux

package shell_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// twoAtOnce runs commands that must not meet their own earlier lives: each takes a
// lock of its own, and has a child that holds it, away from its group.
func twoAtOnce(dir string) func(ctx context.Context) (shell.Result, error) {
	script := `exec 9>"$1/lock.$2"; if ! flock -n 9; then echo "$2" >> "$1/met"; exit 0; fi
		setsid sh -c 'sleep 600' & sleep 0.1; kill -9 $!; wait $! 2>/dev/null; true`
	return func(ctx context.Context) (shell.Result, error) {
		return durable.Step(ctx, "both", func(ctx context.Context) (shell.Result, error) {
			first := make(chan error, 1)
			go func() {
				_, err := (&shell.Workspace{NoGit: true}).Exec(ctx, "sh", "-c", script, "sh", dir, "a")
				first <- err
			}()
			for _, name := range []string{"b", "c"} {
				if r, err := (&shell.Workspace{NoGit: true}).Exec(ctx, "sh", "-c", script, "sh", dir, name); err != nil {
					return r, err
				}
			}
			return shell.Result{}, <-first
		})
	}
}

// runTwoAtOnce is the process of the test.
func runTwoAtOnce(file, dir string) {
	st, err := sqlite.Open(file)
	if err != nil {
		panic(err)
	}
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: []durable.Definition{workflow(twoAtOnce(dir))}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx := durable.NewContext(context.Background(), eng)
	if _, err := durable.Recover(ctx); err != nil {
		panic(err)
	}
	run, err := workflow(nil2).Start(ctx, "r", 1)
	if err != nil {
		panic(err)
	}
	if _, err := run.Wait(ctx); err != nil {
		_ = os.WriteFile(dir+"/failed", []byte(err.Error()), 0o600)
	}
	os.Exit(0)
}

// However often its process is killed, and whenever, no command runs beside what an
// earlier life of it has left.
func TestNoCommandMeetsItsEarlierLife(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	for range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SHELL_RUNNER=two:"+dir+"/runs.db:"+dir)
		require.NoError(t, cmd.Start())
		time.Sleep(50*time.Millisecond + rand.N(250*time.Millisecond))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SHELL_RUNNER=two:"+dir+"/runs.db:"+dir)
	require.NoError(t, cmd.Run())
	b, _ := os.ReadFile(dir + "/failed")
	if !strings.Contains(string(b), "its process ended 3 times without a word") {
		require.Empty(t, string(b))
	}
	require.NoFileExists(t, dir+"/met")
}
