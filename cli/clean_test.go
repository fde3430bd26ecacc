package cli_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/durable"
	"github.com/holdfast-dev/holdfast/operate"
	"github.com/holdfast-dev/holdfast/store"
	"github.com/holdfast-dev/holdfast/store/memory"
)

// While a person thinks about it, a run is deleted and another one takes its id.
func TestWhatIsRemovedIsWhatWasListed(t *testing.T) {
	for name, ask := range map[string]struct {
		line, question, kept string
		code                 int
	}{
		"ended":  {"durable --store shop.db sessions clean --older-than 0d", "Remove 1 session for good? [y/N]", "Kept n: it was started again or has gone on since it was listed.", 0},
		"all":    {"durable --store shop.db sessions clean --all", "Remove 1 session for good? [y/N]", "Kept n: it was started again or has gone on since it was listed.", 0},
		"by id":  {"durable --store shop.db checkpoints delete n", "for good? [y/N]", "n was started again or has gone on since; nothing was deleted.", 4},
		"nobody": {"durable --store shop.db sessions clean --all", "Remove 1 session for good? [y/N]", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.ok("shop durable run count --id n --input 1")
			s := d.terminal(ask.line)
			s.until(ask.question)
			if ask.kept != "" {
				d.ok("durable --store shop.db checkpoints delete n --yes")
				d.ok("shop durable run count --id n --input 2")
			}
			s.press("y\n")
			require.Equal(t, ask.code, s.end(), plain(s.seen))
			if ask.kept == "" {
				require.Contains(t, plain(s.seen), "Removed 1 session.")
				require.Equal(t, 3, d.sh("durable --store shop.db sessions show n").code)
				return
			}
			require.Contains(t, plain(s.seen), ask.kept)
			require.Contains(t, d.ok("durable --store shop.db sessions ls").out, "n\tcount\tcompleted")
		})
	}
}

// With an archive, what it lacks stays, whether it has ended or not, and the command
// says so; only --force removes it.
func TestCleanKeepsWhatNoArchiveHasUnlessItIsForced(t *testing.T) {
	d := newDesk(t)
	d.ok("shop durable run count --id ended --input 1")
	interrupted(d)
	kept := "Kept: 2 sessions that the archive does not have yet, or would bring back. With --force they are removed all the same.\n"
	for _, what := range []string{"--all", "--older-than 0d"} {
		a := d.ok("durable --store shop.db sessions clean " + what + " --only-archived --yes")
		require.Equal(t, "Removed 0 sessions.\n", a.out)
		if what == "--all" {
			require.Equal(t, kept, a.err)
		}
	}
	require.Equal(t, 2, d.sh("durable --store shop.db sessions clean --all --only-archived --force").code)
	require.Contains(t, d.ok("durable --store shop.db sessions clean --all --only-archived --dry-run --json").out, `"kept_unarchived":2`)
	require.Equal(t, "Removed 2 sessions.\n", d.ok("durable --store shop.db sessions clean --all --force --yes").out)
}

// Of each workflow the runs that were started last stay, and failed ones if so asked.
func TestCleanRemovesByNumberAndKeepsTheFailed(t *testing.T) {
	d := newDesk(t)
	for _, id := range []string{"a", "b", "c"} {
		d.ok("shop durable run count --id " + id + " --input 1")
	}
	require.Equal(t, 1, d.with("SHOP_FAIL=add").sh("shop durable run count --id failed --input 1").code)
	listed := func(flags string) string {
		return d.ok("durable --store shop.db sessions clean --dry-run " + flags).out
	}
	would := func(n string, ids ...string) string {
		lines := ""
		for _, id := range ids {
			lines += id + "\n"
		}
		return lines + "Dry run: nothing changed. " + n + " would be removed.\n"
	}
	require.Equal(t, would("2 sessions", "b", "a"), listed("--keep 2"))
	require.Equal(t, would("2 sessions", "b", "a"), listed("--keep 1 --keep-failed"))
	require.Equal(t, would("4 sessions", "failed", "c", "b", "a"), listed("--keep 1 --older-than 0d"), "either of the two")
	require.Equal(t, would("3 sessions", "c", "b", "a"), listed("--older-than 0d --keep-failed"))
	require.Equal(t, would("0 sessions"), listed("--older-than 0d --workflow checkout"))
	require.Equal(t, would("3 sessions", "c", "b", "a"), listed("--keep 1 --workflow checkout --workflow count"))
	require.Equal(t, would("0 sessions"), listed("--keep 4"))
	for _, wrong := range []string{"--keep 0", "--keep -1", "--all --keep 3", "--all --keep-failed", "--all --older-than 3d"} {
		require.Equal(t, 2, d.sh("durable --store shop.db sessions clean --yes "+wrong).code, wrong)
	}
	require.Equal(t, "Removed 2 sessions.\n", d.ok("durable --store shop.db sessions clean --keep 1 --keep-failed --yes").out)
	for id, code := range map[string]int{"a": 3, "b": 3, "c": 0, "failed": 0} {
		require.Equal(t, code, d.sh("durable --store shop.db sessions show "+id).code, id)
	}
}

// lostStore deletes one run, and is then gone.
type lostStore struct {
	store.Store
	deletes int
}

func (s *lostStore) Delete(ctx context.Context, d store.Deletion) (int, error) {
	if s.deletes++; s.deletes > 1 {
		return 0, errors.New("connection refused")
	}
	return s.Store.Delete(ctx, d)
}

// A job that cleans every night must not read success while the store fills.
func TestACleanThatLosesTheStoreFailsAndSaysHowFarItGot(t *testing.T) {
	st := &lostStore{Store: memory.Open()}
	nothing := durable.Define("nothing", func(context.Context, int) (int, error) { return 0, nil })
	eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{nothing}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	for _, id := range []string{"a", "b", "c"} {
		run, err := nothing.Start(durable.NewContext(t.Context(), eng), id, 1)
		require.NoError(t, err)
		_, err = run.Wait(t.Context())
		require.NoError(t, err)
	}
	var out, said bytes.Buffer
	root := cli.Command(eng)
	root.SetOut(&out)
	root.SetErr(&said)
	root.SetArgs([]string{"sessions", "clean", "--all", "--yes"})
	require.Equal(t, cli.ExitUnreachable, cli.ExitCode(root.Execute()), "%s%s", &out, &said)
	require.Equal(t, "Removed 1 session.\n", out.String())
	require.Contains(t, said.String(), "connection refused")
	require.Equal(t, 2, st.deletes, "what is gone is not asked about each run")
}

// resumedStore has a run resumed just before it is deleted.
type resumedStore struct {
	store.Store
	resume func(id string)
	asked  []string
}

func (s *resumedStore) Delete(ctx context.Context, d store.Deletion) (int, error) {
	s.asked = append(s.asked, d.RunIDs...)
	if s.resume != nil {
		s.resume(d.RunIDs[0])
	}
	return s.Store.Delete(ctx, d)
}

func TestAChildStaysWhoseParentHasGoneOnSinceItWasListed(t *testing.T) {
	st := &resumedStore{Store: memory.Open()}
	child := durable.Define("child", func(context.Context, int) (int, error) { return 0, durable.Permanent(errors.New("no")) })
	parent := durable.Define("parent", func(ctx context.Context, _ int) (int, error) {
		run, err := child.Start(ctx, durable.AutoID, 1)
		if err != nil {
			return 0, err
		}
		return run.Wait(ctx)
	})
	eng, err := durable.Open(t.Context(), st, durable.Options{Workflows: []durable.Definition{child, parent}, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = eng.Close() })
	ctx := durable.NewContext(t.Context(), eng)
	run, err := parent.Start(ctx, "p", 1)
	require.NoError(t, err)
	_, err = run.Wait(ctx)
	require.Error(t, err)
	st.resume = func(id string) {
		st.resume = nil
		require.Equal(t, "p", id)
		_, err := operate.On(eng).Resume(ctx, "p", operate.ResumeOptions{})
		require.NoError(t, err)
		_, err = run.Wait(ctx)
		require.Error(t, err)
	}
	var out, said bytes.Buffer
	root := cli.Command(eng)
	root.SetOut(&out)
	root.SetErr(&said)
	root.SetArgs([]string{"sessions", "clean", "--all", "--yes"})
	require.NoError(t, root.Execute())
	require.Equal(t, "Removed 0 sessions.\n", out.String())
	require.Equal(t, []string{"p"}, st.asked)
	require.Contains(t, said.String(), "its parent p stays")
}
