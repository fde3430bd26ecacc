package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/cli"
)

var (
	guideCommand = regexp.MustCompile("(?m)(?:^|`)(?:shop )?(durable [a-z][^`#\n]*)")
	guideEvent   = regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")
)

// What docs/guides/resuming.md tells people to type are commands and flags that
// there are, and the events that its table of triggers names are recorded.
func TestTheResumingGuideNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile("../docs/guides/resuming.md")
	require.NoError(t, err)
	require.Greater(t, commandsExist(t, page), 20)

	events, err := os.ReadFile("../store/event.go")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "| trigger |")
	table, _, _ = strings.Cut(table, "\n\n")
	named := guideEvent.FindAllStringSubmatch(table, -1)
	require.Greater(t, len(named), 10)
	for _, m := range named {
		require.Contains(t, string(events), `Type = "`+m[1]+`"`)
	}
}

// So are those of the other pages that have some within their text.
func TestThePagesNameCommandsThatExist(t *testing.T) {
	for _, name := range []string{"guides/troubleshooting.md", "guides/observing.md", "guides/databases.md", "guides/deploying.md", "guides/processes.md", "guides/queues.md", "care.md", "archive.md", "shell.md", "dashboard.md", "recovery.md"} {
		page, err := os.ReadFile("../docs/" + name)
		require.NoError(t, err)
		n := commandsExist(t, page)
		if name == "guides/troubleshooting.md" {
			require.Greater(t, n, 10)
		}
	}
}

// commandsExist checks that there are the commands and flags that a page names, and
// returns how many it names.
func commandsExist(t *testing.T, page []byte) int {
	t.Helper()
	root := cli.Command(nil)
	commands := guideCommand.FindAllStringSubmatch(string(page), -1)
	for _, m := range commands {
		found, rest, err := root.Find(strings.Fields(m[1])[1:])
		require.NoError(t, err, m[1])
		require.NotEqual(t, root, found, m[1])
		require.True(t, found.Runnable(), m[1])
		for _, w := range rest {
			if name, isFlag := strings.CutPrefix(w, "--"); isFlag {
				require.True(t, found.Flags().Lookup(name) != nil || found.InheritedFlags().Lookup(name) != nil, "%s: no flag --%s", m[1], name)
			}
		}
	}
	return len(commands)
}
