package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
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
