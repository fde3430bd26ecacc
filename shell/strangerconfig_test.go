//go:build linux

package shell_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// strangersConfig is what a repository's configuration may have git run, by key. Each
// $1 is a program that says it was run and fails.
var strangersConfig = [][2]string{
	{"core.fsmonitor", "$1"},
	{"core.hooksPath", "$2"}, // a directory with every hook
	{"core.pager", "$1"},
	{"core.editor", "$1"},
	{"core.askPass", "$1"},
	{"core.sshCommand", "$1"},
	{"core.gitProxy", "$1"},
	{"core.alternateRefsCommand", "$1"},
	{"sequence.editor", "$1"},
	{"credential.helper", "!$1"},
	{"diff.external", "$1"},
	{"diff.evil.command", "$1"},
	{"diff.evil.textconv", "$1"},
	{"merge.evil.driver", "$1"},
	{"mergetool.evil.cmd", "$1"},
	{"difftool.evil.cmd", "$1"},
	{"filter.evil.clean", "$1"},
	{"filter.evil.smudge", "$1"},
	{"filter.evil.required", "true"},
	{"filter.long.process", "$1"},
	{"filter.a=b.clean", "$1"},
	{"gpg.program", "$1"},
	{"gpg.ssh.program", "$1"},
	{"gpg.ssh.defaultKeyCommand", "$1"},
	{"commit.gpgSign", "true"},
	{"log.showSignature", "true"},
	{"trailer.evil.command", "$1"},
	{"trailer.evil.cmd", "$1"},
	{"interactive.diffFilter", "$1"},
	{"man.viewer.cmd", "$1"},
	{"browser.evil.cmd", "$1"},
	{"sendemail.smtpServer", "$1"},
	{"uploadpack.packObjectsHook", "$1"},
	{"alias.status", "!$1"},
	{"alias.cat-file", "!$1"},
	{"alias.for-each-ref", "!$1"},
	{"alias.rev-parse", "!$1"},
	{"submodule.recurse", "true"},
	{"submodule.evil.update", "!$1"},
	{"protocol.allow", "always"},
	{"protocol.ext.allow", "always"},
	{"protocol.ssh.allow", "always"},
	{"protocol.file.allow", "always"},
	// From where objects that are missing are fetched when they are read.
	{"core.repositoryFormatVersion", "1"},
	{"extensions.partialClone", "pack"},
	{"remote.pack.promisor", "true"},
	{"remote.pack.url", "/"},
	{"remote.pack.uploadpack", "$1"},
	{"remote.ssh.promisor", "true"},
	{"remote.ssh.url", "ssh://stranger.invalid/x"},
	{"remote.ext.promisor", "true"},
	{"remote.ext.url", "ext::$1"},
	{"remote.vcs.promisor", "true"},
	{"remote.vcs.url", "x"},
	{"remote.vcs.vcs", "evil"},
	{"url.ssh://stranger.invalid/.insteadOf", "https://"},
	{"gc.auto", "1"},
	{"maintenance.auto", "true"},
}

// plantConfig puts it all into a repository: into its configuration, into a file that
// this includes, and into the one of the work tree. ran lists what of it was run.
func plantConfig(t *testing.T, repo, tree string) (ran func() []string) {
	t.Helper()
	base := t.TempDir()
	said, programs, hooks := base+"/said", base+"/programs", base+"/hooks"
	for _, dir := range []string{said, programs, hooks, repo + "/.git/refs/durable/runs"} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	write := func(file, text string, mode fs.FileMode) {
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
	}
	write(tree+"/b", "1\n", 0o600)
	write(tree+"/c", "1\n", 0o600)
	git(t, tree, "add", "b", "c")
	program := func(file, name string) {
		write(file, "#!/bin/sh\ntouch '"+said+"/"+name+"'\nexit 1\n", 0o700)
	}
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-index-change", "post-merge", "pre-commit", "post-commit", "pre-auto-gc", "fsmonitor-watchman"} {
		program(hooks+"/"+hook, "hook "+hook)
		program(repo+"/.git/hooks/"+hook, "own hook "+hook)
	}
	for _, name := range []string{"a", "b", "c"} {
		write(tree+"/"+name, "2\n", 0o600) // as long as before, so that git must read it
	}
	write(tree+"/.gitattributes", "a filter=evil diff=evil merge=evil\nb filter=long\nc filter=a=b\n", 0o600)
	write(repo+"/.git/refs/durable/runs/missing", strings.Repeat("1234567890", 4)+"\n", 0o600)
	git(t, repo, "config", "extensions.worktreeConfig", "true")
	worktree := git(t, tree, "rev-parse", "--absolute-git-dir") + "/config.worktree"
	included := repo + "/.git/included"
	for i, file := range []string{repo + "/.git/config", included, worktree} {
		var text strings.Builder
		for _, c := range strangersConfig {
			name := strings.ReplaceAll(c[0], "/", "_") + [...]string{"", ", included", ", of the work tree"}[i]
			program(programs+"/"+strings.ReplaceAll(name, " ", "-"), name)
			value := strings.ReplaceAll(strings.ReplaceAll(c[1], "$1", programs+"/"+strings.ReplaceAll(name, " ", "-")), "$2", hooks)
			first, last := strings.IndexByte(c[0], '.'), strings.LastIndexByte(c[0], '.')
			section := c[0][:first]
			if first < last {
				section += fmt.Sprintf(" %q", c[0][first+1:last])
			}
			fmt.Fprintf(&text, "[%s]\n\t%s = %q\n", section, c[0][last+1:], value)
		}
		before, err := os.ReadFile(file)
		require.True(t, err == nil || os.IsNotExist(err))
		if i == 0 {
			fmt.Fprintf(&text, "[include]\n\tpath = %q\n", included)
		}
		write(file, string(before)+text.String(), 0o600)
	}
	return func() (names []string) {
		entries, err := os.ReadDir(said)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}

// Whoever has made a repository has also written its configuration, which names
// programs of many kinds. None of our own calls of git runs one.
func TestNoProgramThatARepositoryNamesIsRun(t *testing.T) {
	ctx := t.Context()
	// The archive, with a run to write and one that is missing.
	t.Run("archive", func(t *testing.T) {
		repo, dir := tree(t)
		ran := plantConfig(t, repo, dir)
		p := boot(t, memory.Open(), func(context.Context) (shell.Result, error) { return shell.Result{}, nil })
		_, err := p.start(t).Wait(p.ctx)
		require.NoError(t, err)
		var file bytes.Buffer
		require.NoError(t, operate.On(p.Engine).Export(ctx, "r", &file))
		for _, at := range []string{repo, dir} {
			g, err := archive.OpenGit(ctx, at, archive.GitOptions{})
			require.NoError(t, err)
			require.NoError(t, g.Store(ctx, "r", file.Bytes()))
			n := 0
			for range g.List(ctx) {
				n++
			}
			require.Equal(t, 2, n)
			_, err = g.Get(ctx, "r")
			require.NoError(t, err)
			_, err = g.Trace(ctx, "r")
			require.NoError(t, err)
			_, err = g.Get(ctx, "missing")
			require.Error(t, err)
		}
		require.Empty(t, ran())
	})
	// A command in a work tree, whose state is read before it and after it.
	t.Run("command", func(t *testing.T) {
		repo, dir := tree(t)
		ran := plantConfig(t, repo, dir)
		r, _, err := run(t, func(ctx context.Context) (shell.Result, error) {
			return (&shell.Workspace{Dir: dir}).Run(ctx, "s", "true")
		})
		require.NoError(t, err)
		require.Equal(t, "work", r.Place.Git.Branch)
		require.True(t, r.Place.Git.Dirty)
		require.Empty(t, ran())
		// And what was planted does run where git is called without care.
		for _, args := range [][]string{{"-c", "core.fsmonitor=false", "status"}, {"status"}, {"cat-file", "-p", "refs/durable/runs/missing"}} {
			careless(dir, args...)
		}
		all := strings.Join(ran(), "; ")
		for _, part := range []string{"filter.evil.clean", "core.fsmonitor", "remote.pack.uploadpack", "core.sshCommand", "remote.ext.url"} {
			require.Contains(t, all, part, "it can be run")
		}
	})
	// A work tree that a resumed run finds elsewhere, or not at all.
	t.Run("restore", func(t *testing.T) {
		for name, move := range map[string]func(t *testing.T, dir string){
			"moved":   func(t *testing.T, dir string) { git(t, dir, "switch", "-q", "-c", "other") },
			"missing": func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) },
		} {
			t.Run(name, func(t *testing.T) {
				repo, dir := tree(t)
				var ran func() []string
				_, _, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }, func() {
					git(t, repo, "branch", "spare")
					move(t, dir)
					at := dir
					if name == "missing" {
						at = filepath.Join(filepath.Dir(dir), "other")
						git(t, repo, "worktree", "add", "-q", at, "spare")
					}
					ran = plantConfig(t, repo, at)
				})
				var m *shell.MismatchError
				require.ErrorAs(t, err, &m)
				require.Contains(t, m.Error(), "names the filter")
				require.Empty(t, ran())
			})
		}
	})
}

// A repository that names programs, but no filter, is put back all the same.
func TestAWorkTreeIsPutBackWithoutTheProgramsOfItsRepository(t *testing.T) {
	all := strangersConfig
	defer func() { strangersConfig = all }()
	strangersConfig = nil
	for _, c := range all {
		if !strings.HasPrefix(c[0], "filter.") {
			strangersConfig = append(strangersConfig, c)
		}
	}
	repo, dir := tree(t)
	var ran func() []string
	_, _, err := interruptedIn(t, func() *shell.Workspace { return &shell.Workspace{Dir: dir, OnMismatch: shell.Restore} }, func() {
		git(t, dir, "switch", "-q", "-c", "other")
		ran = plantConfig(t, repo, dir)
		require.NoError(t, os.WriteFile(dir+"/a", []byte("1\n"), 0o600))
	})
	require.NoError(t, err)
	require.Equal(t, "work", branchOf(t, repo, dir))
	require.Empty(t, ran())
}

// branchOf reads what is checked out without git.
func branchOf(t *testing.T, repo, dir string) string {
	t.Helper()
	b, err := os.ReadFile(repo + "/.git/worktrees/" + filepath.Base(dir) + "/HEAD")
	require.NoError(t, err)
	return strings.TrimSpace(strings.TrimPrefix(string(b), "ref: refs/heads/"))
}

// careless calls git as anybody would; what it answers does not matter.
func careless(dir string, args ...string) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	_ = cmd.Run()
}
