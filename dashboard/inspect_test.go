package dashboard_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/dashboard"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
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
	at, err := operate.On(s.eng).CheckpointOf(t.Context(), "r", "make")
	require.NoError(t, err)
	_, err = operate.On(s.eng).Fork(t.Context(), "r", operate.ForkOptions{ID: "copy", At: at})
	require.NoError(t, err)
	require.NotContains(t, s.browse("/runs/copy?step=make").body, "Idempotency key", "it acted under that of the run it was copied from")

	s = &site{t: t, st: st, shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{work(dir)}}, dashboard.Options{})
	for _, page := range []string{"/runs/r", "/runs/r?step=make"} {
		require.NotContains(t, s.browse(page).body, head[:7], "it is user data, as the note it stands in")
	}
}

func TestTheInspectorShowsTheWorkTreeOfACommandThatIsUnderWay(t *testing.T) {
	dir, head := emptyTree(t)
	slow := durable.Define("slow", func(ctx context.Context, _ int) (int, error) {
		_, err := (&shell.Workspace{Dir: dir}).Retry(ctx, "make", durable.Policy{MaxAttempts: 2, Initial: time.Millisecond}, "sh", "-c", "test -e made && sleep 60; echo > made; false")
		return 0, err
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{slow}, Grace: -1}, dashboard.Options{ShowPayloads: true})
	_, err := slow.Start(withEngine(s), "r", 0)
	require.NoError(t, err)
	want := "<dt>Git</dt><dd>main " + head[:7] + " (dirty)</dd>" // as the second attempt has found it
	require.Eventually(t, func() bool { return strings.Contains(s.browse("/runs/r?step=make").body, want) }, 20*time.Second, 10*time.Millisecond)
	page := s.browse("/runs/r?step=make").body
	require.Contains(t, page, "Attempt 1 failed")
	require.NotContains(t, page, "Git after it")
	require.NoError(t, s.eng.Cancel(t.Context(), "r", ""))
	s.until("r", "cancelled")
}

// Payloads are escaped piece by piece, and what is redacted leaves a chip.
func TestAPayloadHasColoursAndChips(t *testing.T) {
	wf := durable.Define("w", func(ctx context.Context, _ int) (int, error) {
		return 0, durable.Do(ctx, "none", func(ctx context.Context) error {
			durable.Note(ctx, "bank", "secret")
			return nil
		})
	})
	made := durable.Define("made", func(ctx context.Context, _ int) (map[string]any, error) {
		return durable.Step(ctx, "make", func(context.Context) (map[string]any, error) {
			return map[string]any{"<b>": 1, "card": "4242 4242", "is": true, "text": "<em>"}, nil
		})
	})
	s := &site{t: t, st: memoryStore(t), shop: new(shop)}
	redact := func(text string) string { return strings.ReplaceAll(text, "4242 4242", "***") }
	s.serve(durable.Options{Workflows: []durable.Definition{wf, made}}, dashboard.Options{ShowPayloads: true, Redact: redact})
	_, err := made.Start(withEngine(s), "r", 0)
	require.NoError(t, err)
	s.until("r", "completed")
	page := s.browse("/runs/r?step=make").body
	for _, piece := range []string{
		`<span class="nn">1</span>`, `<span class="s">&#34;card&#34;</span>: <mark>redacted</mark>`, `<span class="lit">true</span>`,
	} {
		require.Contains(t, page, piece)
	}
	require.NotContains(t, page, "4242")
	require.NotContains(t, page, "<em>")
	require.NotContains(t, page, "<b>:")

	s = &site{t: t, st: memoryStore(t), shop: new(shop)}
	s.serve(durable.Options{Workflows: []durable.Definition{wf}}, dashboard.Options{})
	_, err = wf.Start(withEngine(s), "n", 0)
	require.NoError(t, err)
	s.until("n", "completed")
	require.Contains(t, s.browse("/runs/n?step=none").body, "note bank = <mark>redacted</mark>")
}
