//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

func TestMain(m *testing.M) {
	// A test starts its own program as a process to kill.
	if what, rest, ok := strings.Cut(os.Getenv("SHELL_RUNNER"), ":"); ok {
		file, dir, _ := strings.Cut(rest, ":")
		map[string]func(file, dir string){"one": runUntilKilled, "two": runTwoAtOnce, "leave": leaveGroup}[what](file, dir)
	}
	goleak.VerifyTestMain(m)
}

type process struct {
	*durable.Engine
	ctx context.Context
	log *book
}

type book struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// boot starts a process that serves one workflow.
func boot(t *testing.T, st store.Store, fn func(ctx context.Context) (shell.Result, error)) *process {
	t.Helper()
	p := &process{log: &book{}}
	var err error
	p.Engine, err = durable.Open(t.Context(), st, durable.Options{
		Workflows: []durable.Definition{workflow(fn)}, Grace: -1, Errors: shell.Errors(), Logger: slog.New(slog.NewTextHandler(p.log, nil)),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	p.ctx = durable.NewContext(t.Context(), p.Engine)
	_, err = p.Recover(p.ctx)
	require.NoError(t, err)
	return p
}

func workflow(fn func(ctx context.Context) (shell.Result, error)) *durable.Workflow[int, shell.Result] {
	return durable.Define("w", func(ctx context.Context, _ int) (shell.Result, error) { return fn(ctx) })
}

// start begins the run "r", or finds it.
func (p *process) start(t *testing.T, o ...durable.StartOption) *durable.Run[shell.Result] {
	t.Helper()
	run, err := workflow(nil2).Start(p.ctx, "r", 1, o...)
	require.NoError(t, err)
	return run
}

func nil2(context.Context) (shell.Result, error) { return shell.Result{}, nil }

// run executes a workflow once, on a store of its own.
func run(t *testing.T, fn func(ctx context.Context) (shell.Result, error)) (shell.Result, *process, error) {
	t.Helper()
	p := boot(t, memory.Open(), fn)
	r, err := p.start(t).Wait(p.ctx)
	return r, p, err
}

func (p *process) events(t *testing.T) []store.Event {
	t.Helper()
	var list []store.Event
	for ev, err := range p.History(p.ctx, "r") {
		require.NoError(t, err)
		list = append(list, ev)
	}
	return list
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 20*time.Second, 2*time.Millisecond, what)
}

// pid reads the number that a command has written to a file.
func pid(t *testing.T, file string) int {
	t.Helper()
	n := 0
	eventually(t, "a pid in "+file, func() bool {
		b, err := os.ReadFile(file)
		if err != nil || !bytes.HasSuffix(b, []byte("\n")) {
			return false
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return n
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	eventually(t, fmt.Sprintf("process %d ends", pid), func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || bytes.Contains(b, []byte(") Z "))
	})
}

func TestACommandIsAStepWithItsOutputsAndItsExitCode(t *testing.T) {
	var live book
	ran := filepath.Join(t.TempDir(), "ran")
	st := memory.Open()
	fn := func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{Output: &live}
		return ws.Run(ctx, "greet", "sh", "-c", `echo x >> "$1"; echo to out; echo to err >&2`, "sh", ran)
	}
	p := boot(t, st, fn)
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "to out\n", r.Stdout.Text)
	require.Equal(t, "to err\n", r.Stderr.Text)
	require.Zero(t, r.ExitCode)
	require.Positive(t, r.Took)
	require.Contains(t, live.String(), "to out\n")
	require.Contains(t, live.String(), "to err\n")
	dir, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, dir, r.Place.Dir)
	require.Equal(t, "sh", r.Place.Args[0])

	_, err = operate.On(p.Engine).Resume(p.ctx, "r", operate.ResumeOptions{})
	require.ErrorIs(t, err, durable.ErrNotResumable)
	b, err := os.ReadFile(ran)
	require.NoError(t, err)
	require.Equal(t, "x\n", string(b))
}

func TestAnExitCodeIsATypedErrorLiveAndOnReplay(t *testing.T) {
	var seen []string
	fn := func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{}
		_, err := ws.Run(ctx, "fail", "sh", "-c", "echo one; echo two >&2; exit 7")
		var exit *shell.ExitError
		if !errors.As(err, &exit) {
			return shell.Result{}, fmt.Errorf("no exit error: %w", err)
		}
		seen = append(seen, exit.Error())
		if _, err := durable.Await[int](ctx, "go on"); err != nil {
			return shell.Result{}, err
		}
		return shell.Result{ExitCode: exit.ExitCode}, nil
	}
	st := memory.Open()
	p := boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "it waits", func() bool { return len(p.events(t)) >= 5 })
	require.NoError(t, p.Close())
	p = boot(t, st.Handle(), fn)
	require.NoError(t, durable.Signal(p.ctx, "r", "go on", 1))
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, 7, r.ExitCode)
	require.Len(t, seen, 2)
	require.Equal(t, seen[0], seen[1], "on replay it is the same")
	require.Contains(t, seen[0], "exited with code 7: two")
}

func TestAttemptsKeepWhatTheyHaveWritten(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "n")
	r, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{}
		return ws.Retry(ctx, "test", durable.Policy{MaxAttempts: 5, Initial: time.Millisecond},
			"sh", "-c", `echo x >> "$1"; n=$(wc -l < "$1"); echo "try $n"; test "$n" -ge 3`, "sh", counter)
	})
	require.NoError(t, err)
	require.Contains(t, r.Stdout.Text, "try 3")
	var notes []string
	for _, ev := range p.events(t) {
		if ev.Type == store.AttemptFailed {
			notes = append(notes, string(ev.Data))
		}
	}
	require.Len(t, notes, 2)
	require.Contains(t, notes[0], "try 1")
	require.Contains(t, notes[1], "try 2")
}

func TestSeekRunsUntilTheResultIsGoodAndShowsEachAttemptTheOnesBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "score")
	require.NoError(t, os.WriteFile(file, []byte("50\n"), 0o600))
	var seen []string
	r, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{}
		return ws.Seek(ctx, "coverage", durable.Policy{MaxAttempts: 4, Initial: time.Millisecond},
			func(ctx context.Context) error {
				if f := durable.Attempt(ctx).Failures; len(f) > 0 {
					var before shell.Result
					if _, err := f[len(f)-1].Output(&before); err != nil {
						return err
					}
					seen = append(seen, strings.TrimSpace(before.Stdout.Text))
					n, _ := strconv.Atoi(strings.TrimSpace(before.Stdout.Text))
					return os.WriteFile(file, []byte(fmt.Sprintln(n+20)), 0o600)
				}
				return nil
			},
			func(r shell.Result) error {
				if n, _ := strconv.Atoi(strings.TrimSpace(r.Stdout.Text)); n < 90 {
					return fmt.Errorf("coverage %d%%, and 90%% are wanted", n)
				}
				return nil
			}, "sh", "-c", `cat "$1"; exit 3`, "sh", file)
	})
	require.NoError(t, err)
	require.Equal(t, "90\n", r.Stdout.Text)
	require.Equal(t, 3, r.ExitCode, "the check decides, not the code")
	require.Equal(t, []string{"50", "70"}, seen)
}

func TestOfALongOutputTheBeginningAndTheEndAreKept(t *testing.T) {
	var live book
	r, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{MaxOutput: 1000, Output: &live}
		return ws.Run(ctx, "long", "sh", "-c", `echo begin; i=0; while [ $i -lt 5000 ]; do echo "ü line $i"; i=$((i+1)); done; printf '\377end'`)
	})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(r.Stdout.Text, "begin\nü line 0\n"))
	require.True(t, strings.HasSuffix(r.Stdout.Text, "line 4999\n\uFFFDend"))
	require.Contains(t, r.Stdout.Text, "bytes left out")
	require.Less(t, len(r.Stdout.Text), 1100)
	require.Equal(t, int64(len(live.String())), r.Stdout.Bytes, "all of it was streamed")
	require.Greater(t, r.Stdout.Omitted, int64(50_000))
}

func TestAWriterThatFailsDoesNotHarmTheCommand(t *testing.T) {
	r, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		pr, pw := io.Pipe()
		_ = pr.Close()
		return (&shell.Workspace{Output: pw}).Run(ctx, "s", "echo", "hello")
	})
	require.NoError(t, err)
	require.Equal(t, "hello\n", r.Stdout.Text)
}

func TestACommandGetsTheVariablesThatWereNamedAndNoSecretIsRecorded(t *testing.T) {
	t.Setenv("STAGE", "green")
	t.Setenv("API_TOKEN", "canary-token")
	t.Setenv("UNNAMED", "canary-unnamed")
	r, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{Env: []string{"STAGE", "API_TOKEN", "NOT_SET"}, Set: map[string]string{"REGION": "eu"}}
		return ws.Run(ctx, "s", "sh", "-c", `test "$API_TOKEN" = canary-token && echo "$STAGE $REGION [$UNNAMED]" && test -n "$PATH"`, "--password=canary-arg")
	})
	require.NoError(t, err)
	require.Equal(t, "green eu []\n", r.Stdout.Text)
	require.Equal(t, map[string]string{"STAGE": "green", "REGION": "eu", "API_TOKEN": durable.Redacted}, r.Place.Env)
	for _, ev := range p.events(t) {
		require.NotContains(t, string(ev.Data)+string(ev.Payload), "canary-arg")
		require.NotContains(t, string(ev.Data)+string(ev.Payload), "canary-unnamed")
	}
}

// family starts a child that starts a child; both write their pids, and neither
// heeds SIGTERM if stubborn.
func family(dir, trap string) []string {
	return []string{"sh", "-c", trap + ` echo $$ > "$1/parent"; sh -c '` + trap + ` echo $$ > "$1/child"; sleep 600' sh "$1"; true`, "sh", dir}
}

func TestACancelEndsTheWholeProcessGroup(t *testing.T) {
	for name, trap := range map[string]string{"at once": "", "that does not heed it": "trap '' TERM;"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := boot(t, memory.Open(), func(ctx context.Context) (shell.Result, error) {
				ws := &shell.Workspace{Grace: 300 * time.Millisecond}
				return ws.Run(ctx, "long", family(dir, strings.ReplaceAll(trap, "'", `"`))...)
			})
			run := p.start(t)
			parent, child := pid(t, dir+"/parent"), pid(t, dir+"/child")
			require.NoError(t, p.Cancel(p.ctx, "r", "enough"))
			_, err := run.Wait(p.ctx)
			require.ErrorContains(t, err, "cancelled: enough")
			gone(t, parent)
			gone(t, child)
		})
	}
}

func TestATimeLimitAndAShutdownEndTheCommandToo(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	// The limit is of the whole attempt: on a busy machine the command may not have
	// come as far as to its child, and then it gets longer.
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		_, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
			return (&shell.Workspace{}).Retry(ctx, "slow", durable.Policy{MaxAttempts: 1, Timeout: limit}, family(dir, "")...)
		})
		require.ErrorIs(t, err, durable.ErrAttemptTimeout)
		if b, err := os.ReadFile(dir + "/child"); limit < 20*time.Second && (err != nil || len(b) == 0) {
			continue
		}
		require.ErrorContains(t, err, "was stopped")
		break
	}
	gone(t, pid(t, dir+"/child"))

	dir = t.TempDir()
	p := boot(t, memory.Open(), func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{Grace: time.Hour}).Run(ctx, "slow", family(dir, `trap "" TERM;`)...)
	})
	p.start(t)
	child := pid(t, dir+"/child")
	began := time.Now()
	require.NoError(t, p.Close(), "the engine did not have to give up on it")
	require.Less(t, time.Since(began), time.Minute, "it has an hour")
	gone(t, child)
}

func TestWhatACommandLeavesRunningEndsWithIt(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	r, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{}).Run(ctx, "daemon", "sh", "-c", `sleep 600 & echo $! > "$1/pid"; echo started`, "sh", dir)
	})
	require.NoError(t, err)
	require.Equal(t, "started\n", r.Stdout.Text)
	require.Less(t, time.Since(began), 5*time.Minute, "it holds our pipe, and is not waited for")
	gone(t, pid(t, dir+"/pid"))
}

func TestACommandThatCannotBeStartedSaysWhy(t *testing.T) {
	_, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{}).Run(ctx, "s", "no-such-program-here")
	})
	require.ErrorContains(t, err, "no-such-program-here")
	_, _, err = run(t, func(ctx context.Context) (shell.Result, error) { return (&shell.Workspace{}).Run(ctx, "s") })
	require.ErrorContains(t, err, "the command is empty")
}

// inFlight runs a command that never ends by itself when it runs first, and has
// started a process that has left its group.
func inFlight(dir string) func(ctx context.Context) (shell.Result, error) {
	return func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{}).Run(ctx, "build", "sh", "-c",
			`echo x >> "$1/starts"; if [ $(wc -l < "$1/starts") = 1 ]; then
				setsid sh -c 'echo $$ > "$1/away"; sleep 600; true' sh "$1" &
				sh -c 'echo $$ > "$1/child"; sleep 600; true' sh "$1" &
				echo $$ > "$1/leader"; wait; sleep 600; fi; echo built`, "sh", dir)
	}
}

// runUntilKilled is the process of a test: it executes a run on a file.
func runUntilKilled(file, dir string) {
	st, err := sqlite.Open(file)
	if err != nil {
		panic(err)
	}
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: []durable.Definition{workflow(inFlight(dir))}})
	if err != nil {
		panic(err)
	}
	ctx := durable.NewContext(context.Background(), eng)
	if _, err := workflow(nil2).Start(ctx, "r", 1); err != nil {
		panic(err)
	}
	select {}
}

func TestACommandInFlightAtAKillIsEndedAndRunAgain(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/runs.db"
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SHELL_RUNNER=one:"+file+":"+dir)
	require.NoError(t, cmd.Start())
	leader, child, away := pid(t, dir+"/leader"), pid(t, dir+"/child"), pid(t, dir+"/away")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	gone(t, leader) // it dies with the process that has started it
	require.NoError(t, syscall.Kill(child, 0), "and what it has started does not")
	require.NoError(t, syscall.Kill(away, 0))

	st, err := sqlite.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	p := boot(t, st, inFlight(dir))
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "built\n", r.Stdout.Text)
	gone(t, child)
	gone(t, away)
	require.Contains(t, p.log.String(), "still ran, and was killed before it is run again")
	b, err := os.ReadFile(dir + "/starts")
	require.NoError(t, err)
	require.Equal(t, "x\nx\n", string(b), "it was run again, not reconnected to")
	require.NoError(t, p.Close())
}

// git runs git as a person would.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}
