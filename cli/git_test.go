package cli_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
	"github.com/holdfast-dev/holdfast/store/sqlite"
)

// inGit runs commands in a work tree, in the store of a desk: one that changes
// nothing, and one that is tried twice, in vain, and leaves a file behind.
func (d *desk) inGit(id, tree string) {
	d.t.Helper()
	st, err := sqlite.Open(filepath.Join(d.dir, "app.db"))
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, st.Close()) }()
	wf := durable.Define("release", func(ctx context.Context, _ int) (int, error) {
		ws := &shell.Workspace{Dir: tree}
		if _, err := ws.Run(ctx, "look", "true"); err != nil {
			return 0, err
		}
		_, err := ws.Retry(ctx, "build", durable.Policy{MaxAttempts: 2, Initial: 1}, "sh", "-c", "echo > made; exit 1")
		return 0, err
	})
	eng, err := durable.Open(context.Background(), st, durable.Options{Workflows: []durable.Definition{wf}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(d.t, err)
	defer func() { require.NoError(d.t, eng.Close()) }()
	ctx := durable.NewContext(context.Background(), eng)
	_, err = durable.Recover(ctx)
	require.NoError(d.t, err)
	run, err := wf.Start(ctx, id, 0)
	require.NoError(d.t, err)
	_, err = run.Wait(ctx)
	require.Error(d.t, err)
}

// gitTree makes a work tree with one commit on branch main, and returns the
// commit.
func gitTree(t *testing.T, dir string) string {
	t.Helper()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("1\n"), 0o600))
	git("add", "a")
	git("commit", "-q", "-m", "first")
	return git("rev-parse", "HEAD")
}

func TestTheWorkTreeOfTheLastCommandIsShown(t *testing.T) {
	d, tree := newDesk(t), t.TempDir()
	head := gitTree(t, tree)
	d.inGit("release-1", tree)
	for _, show := range []string{"sessions show", "runs show"} {
		require.Contains(t, d.ok("durable --store app.db "+show+" release-1").out, ", git main "+head[:7]+" (dirty)", show)
	}
	var run struct {
		Git struct {
			Head, Branch string
			Dirty        bool
		}
		Rows []struct {
			Key            string
			IdempotencyKey string `json:"idempotency_key"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(d.ok("durable --store app.db sessions show release-1 --json").out), &run))
	require.Equal(t, head, run.Git.Head)
	require.Equal(t, "main", run.Git.Branch)
	require.True(t, run.Git.Dirty)
	require.Equal(t, durable.IdempotencyKeyOf("release-1", 0, "build"), run.Rows[1].IdempotencyKey)
}
