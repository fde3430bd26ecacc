package dashboard_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/shell"
)

// work is a workflow of one command, in a work tree, that leaves a file behind.
func work(dir string) *durable.Workflow[int, int] {
	return durable.Define("work", func(ctx context.Context, _ int) (int, error) {
		_, err := (&shell.Workspace{Dir: dir}).Run(ctx, "make", "sh", "-c", "echo > made")
		return 0, err
	})
}

// emptyTree makes a work tree with one commit on branch main.
func emptyTree(t *testing.T) (dir, head string) {
	t.Helper()
	dir = t.TempDir()
	for _, args := range []string{"init -q -b main", "-c user.name=a -c user.email=a@example.com commit -q --allow-empty -m first", "rev-parse HEAD"} {
		cmd := exec.Command("git", strings.Fields(args)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %s: %s", args, out)
		head = strings.TrimSpace(string(out))
	}
	return dir, head
}

func TestTheInspectorSaysByWhichKeyAStepActedAndInWhichWorkTree(t *testing.T) {
	dir, head := emptyTree(t)
	st := memoryStore(t)
	s := &site{t: t, st: st, shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{work(dir), s.shop.workflow()}}, dashboard.Options{ShowPayloads: true})
	_, err := work(dir).Start(withEngine(s), "r", 0)
	require.NoError(t, err)
	s.until("r", "completed")

	step := s.browse("/runs/r?step=make").body
	require.Contains(t, step, `<dt>Idempotency key</dt><dd class="mono">`+durable.IdempotencyKeyOf("r", 0, "make")+"</dd>")
	require.Contains(t, step, "<dt>Git</dt><dd>main "+head[:7]+"</dd>")
	require.Contains(t, step, "<dt>Git after it</dt><dd>main "+head[:7]+" (dirty)</dd>")
	require.Contains(t, s.browse("/runs/r").body, "<dt>Git</dt><dd>main "+head[:7]+" (dirty)</dd>", "of the run: what its last command has left")

	s.asks("asks")
	wait := s.browse("/runs/asks?step=approve").body
	require.NotContains(t, wait, "Idempotency key", "a wait acts on nobody")
	at, err := s.eng.CheckpointOf(t.Context(), "r", "make")
	require.NoError(t, err)
	_, err = s.eng.Fork(t.Context(), "r", durable.ForkOptions{ID: "copy", At: at})
	require.NoError(t, err)
	require.NotContains(t, s.browse("/runs/copy?step=make").body, "Idempotency key", "it acted under that of the run it was copied from")

	s = &site{t: t, st: st, shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{work(dir)}}, dashboard.Options{})
	for _, page := range []string{"/runs/r", "/runs/r?step=make"} {
		require.NotContains(t, s.browse(page).body, head[:7], "it is user data, as the note it stands in")
	}
}
