//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// What a body does itself is not taken for what a crash has left: neither its other
// commands nor what it does to the work tree.
func TestTheCommandsOfOneBodyLeaveEachOtherAlone(t *testing.T) {
	dir := t.TempDir()
	_, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return durable.Step(ctx, "both", func(ctx context.Context) (shell.Result, error) {
			first := make(chan error, 1)
			go func() {
				_, err := (&shell.Workspace{}).Exec(ctx, "sh", "-c", `echo $$ > "$1/pid"; while ! test -e "$1/go"; do sleep 0.02; done`, "sh", dir)
				first <- err
			}()
			pid(t, dir+"/pid")
			r, err := (&shell.Workspace{}).Exec(ctx, "echo", "second")
			if err != nil {
				return r, err
			}
			if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
				return r, err
			}
			return r, <-first
		})
	})
	require.NoError(t, err)
	require.NotContains(t, p.log.String(), "was killed")
}

func TestABodyMayMoveItsOwnWorkTree(t *testing.T) {
	for name, m := range map[string]shell.Mismatch{"refuse": shell.Refuse, "restore": shell.Restore} {
		t.Run(name, func(t *testing.T) {
			_, dir := tree(t)
			r, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
				ws := &shell.Workspace{Dir: dir, OnMismatch: m}
				return durable.Step(ctx, "release", func(ctx context.Context) (shell.Result, error) {
					for _, args := range [][]string{
						{"git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "own"},
						{"git", "switch", "-q", "-c", "own"},
					} {
						if r, err := ws.Exec(ctx, args...); err != nil {
							return r, err
						}
					}
					return ws.Exec(ctx, "git", "branch", "--show-current")
				})
			})
			require.NoError(t, err)
			require.Equal(t, "own\n", r.Stdout.Text)
			require.NotContains(t, p.log.String(), "is not as it was")
		})
	}
}

// stopAndGoOn executes a run until it does nothing any more and is in the state
// that ready says, ends the process, and goes on in another one.
func stopAndGoOn(t *testing.T, fn func(ctx context.Context) (shell.Result, error), ready func(p *process) bool) (shell.Result, *process, error) {
	t.Helper()
	st := memory.Open()
	p := boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "the moment of the crash", func() bool { return ready(p) })
	require.NoError(t, p.Close())
	p = boot(t, st.Handle(), fn)
	r, err := p.start(t).Wait(p.ctx)
	return r, p, err
}

const commit = `git -c user.name=a -c user.email=a@b commit -q --allow-empty -m own`

// What the run has done to the work tree before it was interrupted is known, whoever
// of it has done it: a command before, in the same body or in another step, an
// attempt that failed, a branch.
func TestWhatTheRunHasDoneToItsWorkTreeIsNoMismatch(t *testing.T) {
	type fn = func(ctx context.Context, ws *shell.Workspace, hang func(ctx context.Context) error) (shell.Result, error)
	cases := map[string]fn{
		"a command before, in the body that was interrupted": func(ctx context.Context, ws *shell.Workspace, hang func(ctx context.Context) error) (shell.Result, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (shell.Result, error) {
				if r, err := ws.Exec(ctx, "sh", "-c", commit); err != nil {
					return r, err
				}
				if err := hang(ctx); err != nil {
					return shell.Result{}, err
				}
				return ws.Exec(ctx, "echo", "done")
			})
		},
		"a command before the one that was interrupted": func(ctx context.Context, ws *shell.Workspace, hang func(ctx context.Context) error) (shell.Result, error) {
			return durable.Step(ctx, "s", func(ctx context.Context) (shell.Result, error) {
				if r, err := ws.Exec(ctx, "sh", "-c", commit+" && git switch -q -c own-$(git rev-list --count HEAD)"); err != nil {
					return r, err
				}
				go func() { _ = hang(ctx) }()
				return ws.Exec(ctx, "sh", "-c", `test -e "$1" || sleep 600; echo done`, "sh", ctx.Value(onceKey{}).(string))
			})
		},
		"a step that calls Exec": func(ctx context.Context, ws *shell.Workspace, hang func(ctx context.Context) error) (shell.Result, error) {
			if _, err := ws.Run(ctx, "first", "true"); err != nil {
				return shell.Result{}, err
			}
			if err := durable.Do(ctx, "own", func(ctx context.Context) error {
				_, err := ws.Exec(ctx, "sh", "-c", commit)
				return err
			}); err != nil {
				return shell.Result{}, err
			}
			if err := durable.Do(ctx, "hang", hang); err != nil {
				return shell.Result{}, err
			}
			return ws.Run(ctx, "last", "echo", "done")
		},
		"an attempt that failed": func(ctx context.Context, ws *shell.Workspace, hang func(ctx context.Context) error) (shell.Result, error) {
			if _, err := ws.Run(ctx, "first", "true"); err != nil {
				return shell.Result{}, err
			}
			if _, err := ws.Run(ctx, "fails", "sh", "-c", commit+"; exit 1"); err == nil {
				return shell.Result{}, errors.New("it must fail")
			}
			if err := durable.Do(ctx, "hang", hang); err != nil {
				return shell.Result{}, err
			}
			return ws.Run(ctx, "last", "echo", "done")
		},
		"another Workspace": func(ctx context.Context, ws *shell.Workspace, hang func(ctx context.Context) error) (shell.Result, error) {
			other := &shell.Workspace{Dir: ws.Dir, OnMismatch: ws.OnMismatch}
			if _, err := ws.Run(ctx, "first", "true"); err != nil {
				return shell.Result{}, err
			}
			if err := durable.Do(ctx, "hang", hang); err != nil {
				return shell.Result{}, err
			}
			if _, err := other.Run(ctx, "own", "sh", "-c", commit); err != nil {
				return shell.Result{}, err
			}
			return ws.Run(ctx, "last", "echo", "done")
		},
	}
	for name, fn := range cases {
		for how, m := range map[string]shell.Mismatch{"refuse": shell.Refuse, "restore": shell.Restore} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				_, dir := tree(t)
				file := filepath.Join(t.TempDir(), "hung")
				hang := func(ctx context.Context) error {
					if _, err := os.Stat(file); err == nil {
						return nil
					}
					if err := os.WriteFile(file, nil, 0o600); err != nil {
						return err
					}
					<-ctx.Done()
					return ctx.Err()
				}
				wf := func(ctx context.Context) (shell.Result, error) {
					return fn(context.WithValue(ctx, onceKey{}, file), &shell.Workspace{Dir: dir, OnMismatch: m}, hang)
				}
				r, p, err := stopAndGoOn(t, wf, func(*process) bool { _, err := os.Stat(file); return err == nil })
				require.NoError(t, err)
				require.Equal(t, "done\n", r.Stdout.Text)
				require.NotContains(t, p.log.String(), "is not as it was")
			})
		}
	}
}

type onceKey struct{}

// And what others have done meanwhile is one, with several commands in the body too.
func TestWhatOthersHaveDoneToTheWorkTreeOfABodyIsAMismatch(t *testing.T) {
	_, dir := tree(t)
	file := filepath.Join(t.TempDir(), "hung")
	fn := func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{Dir: dir, OnMismatch: shell.Refuse}
		return durable.Step(ctx, "s", func(ctx context.Context) (shell.Result, error) {
			if r, err := ws.Exec(ctx, "sh", "-c", commit); err != nil {
				return r, err
			}
			if _, err := os.Stat(file); err != nil {
				_ = os.WriteFile(file, nil, 0o600)
				<-ctx.Done()
				return shell.Result{}, ctx.Err()
			}
			return ws.Exec(ctx, "echo", "done")
		})
	}
	st := memory.Open()
	p := boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "half of it", func() bool { _, err := os.Stat(file); return err == nil })
	require.NoError(t, p.Close())
	git(t, dir, "switch", "-q", "-c", "foreign")
	p = boot(t, st.Handle(), fn)
	_, err := p.start(t).Wait(p.ctx)
	var m *shell.MismatchError
	require.ErrorAs(t, err, &m)
	require.Contains(t, m.Error(), "the branch was work and is foreign")

	// A person who has put it right, or lets it be, is not asked again and again.
	_, err = operate.On(p.Engine).Resume(p.ctx, "r", operate.ResumeOptions{ResetFailures: true})
	require.NoError(t, err)
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "done\n", r.Stdout.Text)
}

// Commands keep nothing in the slot of progress that is the user's.
func TestExecLeavesTheProgressOfItsBodyAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hung")
	type session struct{ ID string }
	fn := func(ctx context.Context) (shell.Result, error) {
		return durable.Step(ctx, "s", func(ctx context.Context) (shell.Result, error) {
			got, ok, err := durable.Progress[session](ctx)
			if err != nil {
				return shell.Result{}, err
			}
			if ok {
				return (&shell.Workspace{}).Exec(ctx, "echo", got.ID)
			}
			if err := durable.SaveProgress(ctx, session{"seven"}); err != nil {
				return shell.Result{}, err
			}
			if r, err := (&shell.Workspace{}).Exec(ctx, "true"); err != nil {
				return r, err
			}
			if got, _, err = durable.Progress[session](ctx); err != nil || got.ID != "seven" {
				return shell.Result{}, errors.New("live it is another one")
			}
			_ = os.WriteFile(file, nil, 0o600)
			<-ctx.Done()
			return shell.Result{}, ctx.Err()
		})
	}
	r, _, err := stopAndGoOn(t, fn, func(*process) bool { _, err := os.Stat(file); return err == nil })
	require.NoError(t, err)
	require.Equal(t, "seven\n", r.Stdout.Text)
}

// A copy of a run that is under way elsewhere is another run: it ends none of the
// original's commands.
func TestACopyOfARunningRunKillsNoneOfItsCommands(t *testing.T) {
	dir := t.TempDir()
	fn := func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{}).Run(ctx, "build", "sh", "-c",
			`if test -e "$1/pid"; then echo copied; else echo $$ > "$1/pid"; while ! test -e "$1/go"; do sleep 0.02; done; echo original; fi`, "sh", dir)
	}
	p := boot(t, memory.Open(), fn)
	original := p.start(t)
	pid(t, dir+"/pid")
	var file bytes.Buffer
	require.NoError(t, operate.On(p.Engine).Export(p.ctx, "r", &file))
	for _, id := range []string{"copy", "r"} { // beside it, and in another store under its id
		q := p
		if id == "r" {
			q = boot(t, memory.Open(), fn)
		}
		_, err := operate.On(q.Engine).Import(q.ctx, bytes.NewReader(file.Bytes()), operate.ImportOptions{NewID: id})
		require.NoError(t, err)
		_, err = operate.On(q.Engine).Resume(q.ctx, id, operate.ResumeOptions{})
		require.NoError(t, err)
		copied, err := workflow(nil2).Handle(q.ctx, id)
		require.NoError(t, err)
		r, err := copied.Wait(q.ctx)
		require.NoError(t, err)
		require.Equal(t, "copied\n", r.Stdout.Text)
	}
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	r, err := original.Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "original\n", r.Stdout.Text)
}

// A daemon that a command starts on purpose outlives it, and a crash, if it does
// not inherit the mark.
func TestADaemonWithoutTheMarkIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	fn := func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{}).Run(ctx, "serve", "sh", "-c",
			`if test -e "$1/daemon"; then echo again; exit; fi
			setsid sh -c 'echo $$ > "$1/child"; exec sleep 600' sh "$1" </dev/null >/dev/null 2>&1 &
			env -u HOLDFAST_COMMAND setsid sh -c 'echo $$ > "$1/daemon"; exec sleep 600' sh "$1" </dev/null >/dev/null 2>&1 &
			sleep 600`, "sh", dir)
	}
	var child, daemon int
	r, _, err := stopAndGoOn(t, fn, func(*process) bool {
		child, daemon = pid(t, dir+"/child"), pid(t, dir+"/daemon")
		return true
	})
	require.NoError(t, err)
	require.Equal(t, "again\n", r.Stdout.Text)
	gone(t, child)
	require.NoError(t, syscall.Kill(daemon, 0))
	require.NoError(t, syscall.Kill(daemon, syscall.SIGKILL))
}

// slow is a writer that takes its time; a nil gate never opens.
type slow struct {
	gate  chan struct{}
	pause time.Duration
	got   bytes.Buffer
}

func (s *slow) Write(p []byte) (int, error) {
	if s.gate != nil {
		<-s.gate
	}
	time.Sleep(s.pause)
	return s.got.Write(p)
}

func TestASlowWriterOfOutputCutsNothing(t *testing.T) {
	t.Parallel()                              // it mostly waits
	w := &slow{pause: 600 * time.Millisecond} // for 32 KiB; what is left in pipes takes it seconds
	r, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{Output: w, MaxOutput: 1 << 20}).Run(ctx, "s", "sh", "-c", `head -c 100000 /dev/zero | tr '\0' x; echo end`)
	})
	require.NoError(t, err)
	require.Equal(t, int64(100004), r.Stdout.Bytes)
	require.Zero(t, r.Stdout.Omitted)
	require.True(t, strings.HasSuffix(r.Stdout.Text, "xend\n"))
	require.Equal(t, r.Stdout.Text, w.got.String(), "and the writer has got all of it")
	require.NotContains(t, p.log.String(), "did not get")
}

func TestAWriterOfOutputThatBlocksHoldsTheStepNoLongerThanItsTimeout(t *testing.T) {
	t.Parallel() // it mostly waits
	gate := make(chan struct{})
	defer close(gate)
	began := time.Now()
	_, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{Output: &slow{gate: gate}}).Retry(ctx, "s", durable.Policy{MaxAttempts: 1, Timeout: 2 * time.Second}, "yes") // which a busy machine has begun by then
	})
	require.ErrorIs(t, err, durable.ErrAttemptTimeout)
	require.Less(t, time.Since(began), time.Minute, "the writer is blocked for ever")
	require.Contains(t, p.log.String(), "did not get")

	// And of one without a limit it does not change the result.
	r, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{Output: &slow{gate: gate}}).Run(ctx, "s", "echo", "kept")
	})
	require.NoError(t, err)
	require.Equal(t, "kept\n", r.Stdout.Text)
}

type panics struct{}

func (panics) Write([]byte) (int, error) { panic("no") }

func TestAWriterOfOutputThatPanicsHarmsNobody(t *testing.T) {
	r, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
		return (&shell.Workspace{Output: panics{}}).Run(ctx, "s", "echo", "kept")
	})
	require.NoError(t, err)
	require.Equal(t, "kept\n", r.Stdout.Text)
	require.Contains(t, p.log.String(), "it panicked: no")
}

func TestAStoppedCommandIsFoundByItsType(t *testing.T) {
	var live, replayed *shell.StoppedError
	fn := func(ctx context.Context) (shell.Result, error) {
		_, err := (&shell.Workspace{}).Retry(ctx, "s", durable.Policy{MaxAttempts: 1, Timeout: 100 * time.Millisecond}, "sleep", "600")
		if !errors.Is(err, durable.ErrAttemptTimeout) {
			return shell.Result{}, errors.New("no time-out")
		}
		found := &live
		if live != nil {
			found = &replayed
		}
		if !errors.As(err, found) {
			return shell.Result{}, err
		}
		_, err = durable.Await[int](ctx, "go on")
		return shell.Result{}, err
	}
	st := memory.Open()
	p := boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "it waits", func() bool {
		evs := p.events(t)
		return evs[len(evs)-1].Type == store.WaitRequested
	})
	require.NoError(t, p.Close())
	p = boot(t, st.Handle(), fn)
	require.NoError(t, durable.Signal(p.ctx, "r", "go on", 1))
	_, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "sleep 600", live.Command)
	require.Equal(t, live, replayed)
	require.Equal(t, live.Error(), replayed.Error())
	require.Contains(t, live.Error(), "was stopped: ")
}

// A directory within a work tree that is gone comes back with its work tree, where
// that was; nothing is made within another one.
func TestADirectoryInAWorkTreeThatIsGoneComesBackWithIt(t *testing.T) {
	subtree := func(t *testing.T) (repo, dir string) {
		repo, dir = tree(t)
		require.NoError(t, os.Mkdir(dir+"/sub", 0o700))
		require.NoError(t, os.WriteFile(dir+"/sub/a", []byte("1\n"), 0o600))
		git(t, dir, "add", "sub")
		git(t, dir, "commit", "-q", "-m", "sub")
		return repo, dir
	}
	t.Run("the work tree is gone", func(t *testing.T) {
		_, dir := subtree(t)
		ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir + "/sub", OnMismatch: shell.Restore} }
		r, _, err := interruptedIn(t, ws, func() { require.NoError(t, os.RemoveAll(dir)) })
		require.NoError(t, err)
		require.Equal(t, dir+"/sub", r.Place.Dir)
		require.Equal(t, dir, git(t, dir+"/sub", "rev-parse", "--show-toplevel"))
	})
	t.Run("the directory alone is gone", func(t *testing.T) {
		_, dir := subtree(t)
		ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir + "/sub", OnMismatch: shell.Restore} }
		_, _, err := interruptedIn(t, ws, func() { require.NoError(t, os.RemoveAll(dir+"/sub")) })
		var missing *shell.DirError
		require.ErrorAs(t, err, &missing)
		require.NotContains(t, err.Error(), "worktree add")
		require.NoDirExists(t, dir+"/sub")
	})
	t.Run("the branch of now does not have it", func(t *testing.T) {
		_, dir := subtree(t)
		ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir + "/sub", OnMismatch: shell.Restore} }
		r, _, err := interruptedIn(t, ws, func() {
			require.NoError(t, os.Remove(dir+"/sub/made"))
			git(t, dir, "switch", "-q", "--detach", "HEAD~1")
		})
		require.NoError(t, err)
		require.Equal(t, "work", git(t, dir, "branch", "--show-current"))
		require.Equal(t, dir+"/sub", r.Place.Dir)
	})
	t.Run("the advice", func(t *testing.T) {
		repo, dir := subtree(t)
		ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir + "/sub"} }
		_, _, err := interruptedIn(t, ws, func() { require.NoError(t, os.RemoveAll(dir)) })
		require.ErrorContains(t, err, "git --git-dir="+repo+"/.git worktree add -f "+dir+" work`")
	})
	t.Run("another work tree is in its place", func(t *testing.T) {
		repo, _ := tree(t)
		dir := repo + "/inner"
		git(t, repo, "worktree", "add", "-q", "-b", "inner", dir)
		ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }
		_, _, err := interruptedIn(t, ws, func() {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o700))
		})
		var m *shell.MismatchError
		require.ErrorAs(t, err, &m)
		require.Contains(t, m.Error(), "belongs to another work tree now: "+repo)
		require.Equal(t, "main", git(t, repo, "branch", "--show-current"), "which is left alone")
	})
}

// A filter that the user names for git runs within the limit of the step.
func TestAFilterOfGitsHoldsTheStepNoLongerThanItsTimeout(t *testing.T) {
	_, dir := tree(t)
	hung := filepath.Join(t.TempDir(), "pid")
	own := filepath.Join(t.TempDir(), "config")
	t.Setenv("GIT_CONFIG_GLOBAL", own)
	git(t, dir, "config", "--file", own, "filter.slow.clean", "echo $$ > "+hung+"; trap '' TERM; sleep 600; cat")
	require.NoError(t, os.WriteFile(dir+"/.gitattributes", []byte("a filter=slow\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/a", []byte("2\n"), 0o600))
	for name, argv := range map[string][]string{
		"before the command": {"true"},
		"after it":           {"sleep", "600"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(hung)
			for limit := 500 * time.Millisecond; ; limit *= 2 {
				began := time.Now()
				_, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
					return (&shell.Workspace{Dir: dir}).Retry(ctx, "s", durable.Policy{MaxAttempts: 1, Timeout: limit}, argv...)
				})
				require.ErrorIs(t, err, durable.ErrAttemptTimeout)
				var stopped *shell.StoppedError
				require.ErrorAs(t, err, &stopped)
				require.Less(t, time.Since(began), limit+time.Minute, "the filter goes on for ten")
				if _, err := os.Stat(hung); err == nil {
					break // else git had not come as far as the filter: the machine is busy
				}
				require.Less(t, limit, time.Minute, "the filter never began")
			}
			gone(t, pid(t, hung))
		})
	}
}

// A work tree of somebody else's is trusted as git trusts it: where the file of the
// system or of the user says so. Where nobody does that is said.
func TestAWorkTreeOfSomebodyElseIsReadWhereTheSystemTrustsIt(t *testing.T) {
	_, dir := tree(t)
	real, err := exec.LookPath("git")
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(bin+"/git", []byte("#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec "+real+" \"$@\"\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	system := filepath.Join(t.TempDir(), "gitconfig")
	t.Setenv("GIT_CONFIG_SYSTEM", system)
	look := func() (shell.Result, *process) {
		r, p, err := run(t, func(ctx context.Context) (shell.Result, error) {
			return (&shell.Workspace{Dir: dir}).Run(ctx, "s", "true")
		})
		require.NoError(t, err)
		return r, p
	}
	require.NoError(t, os.WriteFile(system, nil, 0o600))
	r, p := look()
	require.Nil(t, r.Place.Git)
	require.Contains(t, p.log.String(), "the state of the work tree cannot be read")
	require.Contains(t, p.log.String(), "dubious ownership")

	require.NoError(t, os.WriteFile(system, []byte("[safe]\n\tdirectory = "+dir+"\n"), 0o600))
	r, p = look()
	require.NotNil(t, r.Place.Git)
	require.Equal(t, "work", r.Place.Git.Branch)
	require.NotContains(t, p.log.String(), "cannot be read")
}
