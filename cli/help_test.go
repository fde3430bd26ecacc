package cli_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
	"github.com/holdfast-dev/holdfast/durable"
)

// each calls f with every command of the tree.
func each(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		each(sub, f)
	}
}

func TestEveryHelpTextHasExamplesThatAreCommandsOfThisTree(t *testing.T) {
	root := cli.Command(nil)
	line := regexp.MustCompile(`^  durable ([a-z -]+)`)
	about := map[string]bool{"run": true, "resume": true, "resume-last": true, "sessions": true, "ls": true, "show": true, "clean": true}
	each(root, func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		require.NotEmpty(t, cmd.Long, cmd.CommandPath())
		require.NotEmpty(t, cmd.Example, cmd.CommandPath())
		if about[cmd.Name()] && cmd.Parent() != nil && cmd.Parent().Name() != "archive" && cmd.Parent().Name() != "checkpoints" && cmd.Parent().Name() != "queues" && cmd.Parent().Name() != "schedules" {
			require.Regexp(t, `durable (resume|run \w+ --resume)`, cmd.Example, "%s shows how to resume", cmd.CommandPath())
		}
		for _, l := range strings.Split(cmd.Example, "\n") {
			m := line.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			found, rest, err := root.Find(strings.Fields(l)[1:])
			require.NoError(t, err, l)
			require.NotEqual(t, root, found, l)
			flags := []string{}
			for _, w := range rest {
				if name, isFlag := strings.CutPrefix(w, "--"); isFlag {
					flags = append(flags, strings.SplitN(name, "=", 2)[0])
				}
			}
			for _, name := range flags {
				require.True(t, found.Flags().Lookup(name) != nil || found.InheritedFlags().Lookup(name) != nil, "%s: no flag --%s", l, name)
			}
		}
	})
}

func TestExamplesAreShownAsTheyAreTyped(t *testing.T) {
	d := newDesk(t)
	require.Contains(t, d.ok("shop durable resume --help").out, "\n  shop durable resume order-42 --dry-run\n")
	require.Contains(t, d.ok("durable resume --help").out, "\n  durable resume order-42 --dry-run\n")
}

func TestWrongUsageExitsWithTwoAndSaysHowItIsUsed(t *testing.T) {
	d := newDesk(t)
	for _, line := range []string{"resume a b", "sessions", "cancel", "sessions ls --nope", "nope", "signal order-42", "sessions ls --status nope", "run checkout --resume a --id b", "run checkout --input '{'", "resume --limit 3", "sessions clean --older-than soon"} {
		a := d.sh("shop durable " + line)
		if line == "sessions" {
			require.Zero(t, a.code)
			require.Contains(t, a.out, "  shop durable sessions ls --resumable", "a group prints its help")
			continue
		}
		require.Equal(t, 2, a.code, "%s: %s%s", line, a.out, a.err)
		require.Contains(t, a.err, "Usage: shop durable", line)
		require.NotContains(t, a.err, "Error:")
	}
}

func TestTheReleaseIsShownByACommandAndByAFlagOfEveryProgram(t *testing.T) {
	d := newDesk(t)
	line := d.ok("shop durable version").out
	require.Regexp(t, `^holdfast `+regexp.QuoteMeta(durable.Release())+`, go1\.`, line)
	require.Equal(t, line, d.ok("shop durable --version").out)
	require.Equal(t, line, d.ok("durable --version").out, "without a store")
	require.Contains(t, d.ok("durable version --json").out, `{"release":"`+durable.Release()+`","go":"go1.`)
}

func TestTheShellCompletesCommandsIdsAndStatuses(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	for line, want := range map[string]string{
		"__complete durable resume ''":                   "order-42\tcheckout interrupted\n",
		"__complete durable run ''":                      "checkout\ncount\nhostile\n",
		"__complete durable run checkout --resume ''":    "order-42\tcheckout interrupted\n",
		"__complete durable sessions ls --status inter":  "interrupted\n",
		"__complete durable checkpoints validate order-": "order-42\tcheckout interrupted\n",
	} {
		require.Contains(t, d.ok("shop "+line).out, want, line)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, d.ok("durable completion "+shell).out, "durable")
	}
	require.Zero(t, d.sh("shop durable completion bash | bash -n").code)
}

func TestRunsIsAnotherWordForSessions(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	for _, args := range []string{"ls", "show order-42 --verbose | head -1", "clean --dry-run"} {
		require.Equal(t, d.ok("shop durable sessions "+args).out, d.ok("shop durable runs "+args).out)
	}
}

func TestTenThousandRunsAreListedInASecond(t *testing.T) {
	d := newDesk(t)
	require.Contains(t, d.ok("shop many 10000").out, "10000")
	ls := d.ok("durable --store shop.db sessions ls")
	require.Len(t, strings.Split(strings.TrimSpace(ls.out), "\n"), 100)
	require.Equal(t, "100 of 10000 shown; more with --limit\n", ls.err)
	// All of them: within a second on the two cores of a small machine. What it takes of
	// the processors is counted, so that what else runs here does not.
	cmd := exec.Command(filepath.Join(bin, "durable"), "--store", "shop.db", "sessions", "ls", "--limit", "0")
	cmd.Dir, cmd.Env = d.dir, d.env
	all, err := cmd.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	require.Len(t, lines, 10000)
	for i, line := range lines {
		require.True(t, strings.HasPrefix(line, fmt.Sprintf("run-%06d\telsewhere\tpending\t", 9999-i)), "%d: %s", i, line)
	}
	require.Less(t, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), 2*time.Second)
}

func TestARunThatCannotBeReadIsListedAsCorruptBesideTheOthers(t *testing.T) {
	d := newDesk(t)
	interrupted(d)
	d.ok("shop durable run count --id fine --input 1")
	damage(d, "charge", 2)
	out := d.ok("shop durable sessions ls").out
	require.Contains(t, out, "order-42\tcheckout\tinterrupted (corrupt)\t")
	require.Contains(t, out, "fine\tcount\tcompleted\t")
	require.NotContains(t, out, "resumable")
	a := d.sh("shop durable resume order-42")
	require.Equal(t, 4, a.code)
	require.Empty(t, a.out, "it is not said to be resumed")
	require.Contains(t, a.err, "Mend: shop durable checkpoints repair order-42 --dry-run")
}
