//go:build linux

package shell_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// leaveGroup is a command that moves to the process group of its parent, where no
// signal to its own group finds it.
func leaveGroup(file, how string) {
	if how == "deaf" {
		signal.Ignore(syscall.SIGTERM)
	}
	group, err := syscall.Getpgid(os.Getppid())
	if err == nil {
		err = syscall.Setpgid(0, group)
	}
	if err == nil {
		err = os.WriteFile(file, fmt.Appendln(nil, os.Getpid()), 0o600)
	}
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Minute)
	os.Exit(0)
}

func TestACommandThatLeavesItsGroupIsStoppedAllTheSame(t *testing.T) {
	t.Parallel() // it mostly waits
	for how, deaf := range map[string]bool{"polite": false, "deaf": true} {
		for _, by := range []string{"time limit", "cancel", "close"} {
			t.Run(how+", by "+by, func(t *testing.T) {
				file := t.TempDir() + "/pid"
				limit := time.Minute
				if by == "time limit" {
					limit = 3 * time.Second
				}
				p := boot(t, memory.Open(), func(ctx context.Context) (shell.Result, error) {
					ws := &shell.Workspace{Grace: 100 * time.Millisecond, Set: map[string]string{"SHELL_RUNNER": "leave:" + file + ":" + how}}
					return ws.Retry(ctx, "s", durable.Policy{MaxAttempts: 1, Timeout: limit}, os.Args[0])
				})
				run := p.start(t)
				n := pid(t, file)
				began := time.Now()
				switch by {
				case "cancel":
					require.NoError(t, p.Cancel(p.ctx, "r", "enough"))
				case "close":
					require.NoError(t, p.Close())
				}
				if by != "close" {
					_, err := run.Wait(p.ctx)
					require.Error(t, err)
					if by == "time limit" {
						var stopped *shell.StoppedError
						require.ErrorAs(t, err, &stopped)
						require.Equal(t, deaf, stopped.Killed)
					}
				}
				gone(t, n)
				require.Less(t, time.Since(began), 30*time.Second, "it ran to its end")
			})
		}
	}
}

// What a command has started in another session is stopped with it.
func TestWhatACommandHasStartedElsewhereIsStoppedWithIt(t *testing.T) {
	t.Parallel() // it mostly waits
	file := t.TempDir() + "/pid"
	_, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{Grace: 100 * time.Millisecond}
		return ws.Retry(ctx, "s", durable.Policy{MaxAttempts: 1, Timeout: time.Second}, "sh", "-c", `setsid sh -c 'trap "" TERM; echo $$ > "$1"; sleep 60' sh "$1" & sleep 60`, "sh", file)
	})
	require.ErrorIs(t, err, durable.ErrAttemptTimeout)
	gone(t, pid(t, file))
}
