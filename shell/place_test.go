//go:build linux

package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// tree makes a repository, and a linked work tree of it on branch "work".
func tree(t *testing.T) (repo, dir string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	repo, dir = base+"/repo", base+"/tree"
	require.NoError(t, os.Mkdir(repo, 0o700))
	git(t, repo, "init", "-q", "-b", "main")
	require.NoError(t, os.WriteFile(repo+"/a", []byte("1\n"), 0o600))
	git(t, repo, "add", "a")
	git(t, repo, "commit", "-q", "-m", "first")
	git(t, repo, "worktree", "add", "-q", "-b", "work", dir)
	return repo, dir
}

// inTree runs a command, waits, and runs another one, in a work tree.
func inTree(ws func() *shell.Workspace) func(ctx context.Context) (shell.Result, error) {
	return func(ctx context.Context) (shell.Result, error) {
		w := ws()
		if _, err := w.Run(ctx, "prepare", "sh", "-c", "cat a > made"); err != nil {
			return shell.Result{}, err
		}
		if _, err := durable.Await[int](ctx, "go on"); err != nil {
			return shell.Result{}, err
		}
		return w.Run(ctx, "use", "sh", "-c", "cat made; git log --oneline | wc -l")
	}
}

// interruptedIn runs the first command in a work tree, ends the process, lets
// something happen to the tree, and goes on in another process.
func interruptedIn(t *testing.T, ws func() *shell.Workspace, meanwhile func()) (shell.Result, *process, error) {
	t.Helper()
	st := memory.Open()
	p := boot(t, st.Handle(), inTree(ws))
	p.start(t)
	eventually(t, "it waits", func() bool {
		evs := p.events(t)
		return evs[len(evs)-1].Type == store.WaitRequested
	})
	require.NoError(t, p.Close())
	meanwhile()
	p = boot(t, st.Handle(), inTree(ws))
	require.NoError(t, durable.Signal(p.ctx, "r", "go on", 1))
	r, err := p.start(t).Wait(p.ctx)
	return r, p, err
}

func TestTheWorkTreeIsRecordedAndFoundAgainWithItsUncommittedFiles(t *testing.T) {
	repo, dir := tree(t)
	ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir} }
	r, p, err := interruptedIn(t, ws, func() {})
	require.NoError(t, err)
	require.Equal(t, "1\n1\n", r.Stdout.Text, "what the first command has made is there")
	require.Equal(t, &shell.GitState{Head: git(t, dir, "rev-parse", "HEAD"), Branch: "work", Dirty: true, Repository: repo + "/.git", Tree: dir}, r.Place.Git)
	require.NotContains(t, p.log.String(), "is not as it was")
}

func TestAWorkTreeThatHasMovedIsAWarningAnErrorOrPutBackAsAsked(t *testing.T) {
	commit := func(t *testing.T, dir string) func() {
		return func() {
			git(t, dir, "switch", "-q", "-c", "other")
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
		}
	}
	t.Run("warn", func(t *testing.T) {
		_, dir := tree(t)
		r, p, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir} }, commit(t, dir))
		require.NoError(t, err)
		require.Equal(t, "1\n2\n", r.Stdout.Text)
		require.Contains(t, p.log.String(), "the branch was work and is other")
		require.Contains(t, p.log.String(), "HEAD was ")
	})
	t.Run("refuse", func(t *testing.T) {
		_, dir := tree(t)
		_, _, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Refuse} }, commit(t, dir))
		var m *shell.MismatchError
		require.ErrorAs(t, err, &m)
		require.Contains(t, m.Error(), "the branch was work and is other")
		require.Contains(t, m.Error(), "durable resume r --reset-failures")
	})
	t.Run("restore", func(t *testing.T) {
		_, dir := tree(t)
		r, _, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }, commit(t, dir))
		require.NoError(t, err)
		require.Equal(t, "1\n1\n", r.Stdout.Text, "and the file that was not committed is still there")
		require.Equal(t, "work", git(t, dir, "branch", "--show-current"))
	})
	t.Run("restore would lose something", func(t *testing.T) {
		_, dir := tree(t)
		_, _, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }, func() {
			git(t, dir, "switch", "-q", "-c", "other")
			require.NoError(t, os.WriteFile(dir+"/a", []byte("2\n"), 0o600))
			git(t, dir, "commit", "-q", "-a", "-m", "second")
			require.NoError(t, os.WriteFile(dir+"/a", []byte("precious\n"), 0o600))
		})
		var m *shell.MismatchError
		require.ErrorAs(t, err, &m)
		b, readErr := os.ReadFile(dir + "/a")
		require.NoError(t, readErr)
		require.Equal(t, "precious\n", string(b))
	})
	t.Run("the branch itself has moved", func(t *testing.T) {
		_, dir := tree(t)
		_, _, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }, func() {
			git(t, dir, "commit", "-q", "--allow-empty", "-m", "second")
		})
		require.ErrorContains(t, err, "branch work has moved from")
	})
}

func TestAWorkTreeThatWasDeletedIsNeverReplacedByAnotherDirectory(t *testing.T) {
	repo, dir := tree(t)
	st := memory.Open()
	ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir} }
	p := boot(t, st, inTree(ws))
	p.start(t)
	eventually(t, "it waits", func() bool {
		evs := p.events(t)
		return evs[len(evs)-1].Type == store.WaitRequested
	})
	require.NoError(t, p.Close())
	require.NoError(t, os.RemoveAll(dir))
	p = boot(t, st.Handle(), inTree(ws))
	require.NoError(t, durable.Signal(p.ctx, "r", "go on", 1))
	_, err := p.start(t).Wait(p.ctx)
	var missing *shell.DirError
	require.ErrorAs(t, err, &missing)
	require.Contains(t, err.Error(), "the working directory "+dir+" does not exist any more, and the command was not run anywhere else")
	require.Contains(t, err.Error(), "git --git-dir="+repo+"/.git worktree add -f "+dir+" work")
	require.Contains(t, err.Error(), "`durable resume r`")

	// As the message says.
	git(t, repo, "--git-dir="+repo+"/.git", "worktree", "add", "-q", "-f", dir, "work")
	require.NoError(t, os.WriteFile(dir+"/made", []byte("again\n"), 0o600))
	_, err = operate.On(p.Engine).Resume(p.ctx, "r", operate.ResumeOptions{})
	require.NoError(t, err)
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "again\n1\n", r.Stdout.Text)
}

func TestAWorkTreeThatWasDeletedIsMadeAgainWhenThatIsAsked(t *testing.T) {
	for name, detach := range map[string]bool{"of a branch": false, "of a commit": true} {
		t.Run(name, func(t *testing.T) {
			_, dir := tree(t)
			if detach {
				git(t, dir, "switch", "-q", "--detach")
			}
			head := git(t, dir, "rev-parse", "HEAD")
			ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }
			r, _, err := interruptedIn(t, ws, func() { require.NoError(t, os.RemoveAll(dir)) })
			require.NoError(t, err)
			require.Equal(t, "1\n", r.Stdout.Text)
			require.Contains(t, r.Stderr.Text, "made", "it was made again as it was committed")
			require.Equal(t, head, git(t, dir, "rev-parse", "HEAD"))
		})
	}
}

func TestTwoRunsDoNotWorkInOneWorkTree(t *testing.T) {
	_, dir := tree(t)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	p := boot(t, memory.Open(), inTree(func() *shell.Workspace { return &shell.Workspace{Dir: dir} }))
	opts, err := shell.Worktree(dir)
	require.NoError(t, err)
	p.start(t, opts...)
	id, err := shell.RunIn(p.ctx, p.Engine, link)
	require.NoError(t, err)
	require.Equal(t, "r", id, "the directory leads to the run")
	info, err := p.Get(p.ctx, "r")
	require.NoError(t, err)
	require.Equal(t, dir, info.Attributes[shell.Attribute], "and the run to the directory")

	opts, err = shell.Worktree(link)
	require.NoError(t, err)
	_, err = workflow(nil2).Start(p.ctx, "second", 1, opts...)
	require.ErrorIs(t, err, durable.ErrOccupied)
	require.ErrorContains(t, err, "r")
	require.NoError(t, durable.Signal(p.ctx, "r", "go on", 1))
	_, err = p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	id, err = shell.RunIn(p.ctx, p.Engine, dir)
	require.NoError(t, err)
	require.Equal(t, "r", id, "the latest one, when none is at it")
	id, err = shell.RunIn(p.ctx, p.Engine, t.TempDir()+"/never")
	require.NoError(t, err)
	require.Empty(t, id)
}

func TestVariablesThatChangedAreToldOnResume(t *testing.T) {
	_, dir := tree(t)
	t.Setenv("STAGE", "green")
	t.Setenv("GONE", "x")
	ws := func() *shell.Workspace { return &shell.Workspace{Dir: dir, Env: []string{"STAGE", "GONE"}} }
	_, p, err := interruptedIn(t, ws, func() {
		t.Setenv("STAGE", "blue")
		require.NoError(t, os.Unsetenv("GONE"))
	})
	require.NoError(t, err)
	require.Contains(t, p.log.String(), `STAGE was`)
	require.Contains(t, p.log.String(), "GONE was set and is not")
}

func TestWhatAnInterruptedCommandHasChangedItselfIsNoMismatch(t *testing.T) {
	_, dir := tree(t)
	fn := func(ctx context.Context) (shell.Result, error) {
		ws := &shell.Workspace{Dir: dir, OnMismatch: shell.Refuse}
		return ws.Run(ctx, "build", "sh", "-c", "if test -e half; then echo whole; else echo half > half; sleep 600; fi")
	}
	st := memory.Open()
	p := boot(t, st.Handle(), fn)
	p.start(t)
	eventually(t, "half of it is done", func() bool { _, err := os.Stat(dir + "/half"); return err == nil })
	require.NoError(t, p.Close()) // the command is ended, and its step is not recorded
	p = boot(t, st.Handle(), fn)
	r, err := p.start(t).Wait(p.ctx)
	require.NoError(t, err)
	require.Equal(t, "whole\n", r.Stdout.Text)
}
