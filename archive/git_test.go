package archive_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/archive"
	"github.com/holdfast-dev/holdfast/store"
)

func TestPlainGitReadsAnArchivedRun(t *testing.T) {
	dir := repository(t)
	g := openGit(t, dir)
	file := export(t, "order-42", 0)
	require.NoError(t, g.Store(t.Context(), "order-42", file))

	require.Equal(t, "refs/durable/runs/order-42", git(t, dir, "for-each-ref", "--format=%(refname)", "refs/durable/"))
	require.Equal(t, "run order-42 of checkout: completed", git(t, dir, "show", "-s", "--format=%s", "refs/durable/runs/order-42"))
	var run map[string]any
	require.NoError(t, json.Unmarshal([]byte(git(t, dir, "show", "refs/durable/runs/order-42:run.json")), &run))
	require.Equal(t, "order-42", run["run_id"])
	require.Equal(t, "checkout", run["workflow_id"])
	require.Equal(t, map[string]any{"ID": "order-42", "Total": 0.0}, run["input"])
	require.Equal(t, "paid 0", run["output"])
	require.Contains(t, run, "duration_ms")
	var trace []map[string]any
	require.NoError(t, json.Unmarshal([]byte(git(t, dir, "show", "refs/durable/runs/order-42:trace.json")), &trace))
	var names []string
	for _, e := range trace {
		names = append(names, e["name"].(string))
	}
	require.Equal(t, []string{"workflow_created", "workflow_started", "step_complete", "workflow_completed"}, names)
	require.Equal(t, strings.TrimSuffix(string(file), "\n"), git(t, dir, "show", "refs/durable/runs/order-42:run.hfrun"))
}

func TestAFailedRunIsArchivedWithoutAnOutput(t *testing.T) {
	dir := repository(t)
	g := openGit(t, dir)
	require.NoError(t, g.Store(t.Context(), "r", export(t, "r", -1)))
	var run map[string]any
	require.NoError(t, json.Unmarshal([]byte(git(t, dir, "show", "refs/durable/runs/r:run.json")), &run))
	require.NotContains(t, run, "output")
	require.Equal(t, "failed", run["status"])
	require.Contains(t, run["error"], "out of stock")
	trace, err := g.Trace(t.Context(), "r")
	require.NoError(t, err)
	require.Equal(t, store.WorkflowFailed, trace[len(trace)-1].Type)
}

func TestTheRestOfTheRepositoryIsLeftAlone(t *testing.T) {
	dir := repository(t)
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, dir, "worktree", "add", "-q", linked, "side")
	// A hook that would be run, and variables that would lead elsewhere.
	require.NoError(t, os.WriteFile(dir+"/.git/hooks/reference-transaction", []byte("#!/bin/sh\ntouch "+dir+"/hooked\nexit 1\n"), 0o700))
	t.Setenv("GIT_DIR", "/nowhere")
	t.Setenv("GIT_INDEX_FILE", dir+"/strange-index")
	state := func() string {
		os.Unsetenv("GIT_DIR")
		os.Unsetenv("GIT_INDEX_FILE")
		defer os.Setenv("GIT_DIR", "/nowhere")
		defer os.Setenv("GIT_INDEX_FILE", dir+"/strange-index")
		var b strings.Builder
		for _, d := range []string{dir, linked} {
			b.WriteString(git(t, d, "status", "--porcelain=v2", "--branch") + git(t, d, "diff", "--cached") + git(t, d, "diff") + git(t, d, "rev-parse", "HEAD"))
		}
		b.WriteString(git(t, dir, "for-each-ref", "refs/heads", "refs/tags") + git(t, dir, "worktree", "list") + git(t, dir, "reflog"))
		index, err := os.ReadFile(dir + "/.git/index")
		require.NoError(t, err)
		return b.String() + string(index)
	}
	before := state()
	for i, at := range []string{dir, linked} {
		g := openGit(t, at)
		for _, total := range []int{5, 0, -1} {
			id := []string{"a", "b"}[i] + []string{"failed", "done", "waiting"}[total%2+1]
			require.NoError(t, g.Store(t.Context(), id, export(t, id, total)))
		}
	}
	require.Equal(t, before, state())
	require.NoFileExists(t, dir+"/hooked")
	require.NoFileExists(t, dir+"/strange-index")
	os.Unsetenv("GIT_DIR")
	os.Unsetenv("GIT_INDEX_FILE")
	require.Len(t, listed(t, openGit(t, dir)), 6, "one archive, from whatever work tree")
	git(t, dir, "fsck", "--strict", "--no-dangling")
}

func TestAnArchiveIsOpenedOnAnyKindOfRepository(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) string{
		"empty": func(t *testing.T) string { d := t.TempDir(); git(t, d, "init", "-q"); return d },
		"bare":  func(t *testing.T) string { d := t.TempDir(); git(t, d, "init", "-q", "--bare"); return d },
		"sha256": func(t *testing.T) string {
			d := t.TempDir()
			git(t, d, "init", "-q", "--object-format=sha256")
			return d
		},
		"linked": func(t *testing.T) string {
			d := filepath.Join(t.TempDir(), "x y")
			git(t, repository(t), "worktree", "add", "-q", d, "side")
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := make(t)
			g := openGit(t, dir)
			require.Empty(t, listed(t, g))
			_, err := g.Get(t.Context(), "r")
			require.ErrorIs(t, err, archive.ErrNotFound)
			file := export(t, "r", 5)
			require.NoError(t, g.Store(t.Context(), "r", file))
			require.Equal(t, []string{"r"}, listed(t, g))
			e, err := g.Get(t.Context(), "r")
			require.NoError(t, err)
			require.Equal(t, file, e.File)
			require.Equal(t, "approve", e.ResumeAt)
			require.Equal(t, "Ship r?", e.Prompt)
			git(t, dir, "fsck", "--strict")
		})
	}
}
