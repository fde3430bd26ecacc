package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the guides tell people to write is code that is compiled.
func TestGuidesShowTheExamples(t *testing.T) {
	for page, c := range map[string]struct {
		code   string
		blocks int
	}{
		"docs/rules.md":                {"durable/example_state_test.go", 3},
		"docs/guides/testing.md":       {"durable/durabletest/example_test.go", 7},
		"docs/guides/transactions.md":  {"durable/example_transact_test.go", 2},
		"docs/guides/changing-code.md": {"durable/example_guide_test.go", 2},
		"docs/guides/processes.md":     {"dashboard/example_clients_test.go", 2},
		"docs/guides/coming-from.md":   {"durable/example_coming_test.go", 1},
		"docs/guides/queues.md":        {"durable/example_queue_test.go", 1},
	} {
		blocks := goBlock.FindAllStringSubmatch(read(t, page), -1)
		require.Len(t, blocks, c.blocks, page)
		code := read(t, c.code)
		for _, b := range blocks {
			require.True(t, strings.Contains(code, b[1]), "this block of %s is not in %s:\n%s", page, c.code, b[1])
		}
	}
}

// Who looks for what to do with an interrupted run finds it.
func TestResumingIsExplained(t *testing.T) {
	for page, parts := range map[string][]string{
		"README.md":                      {"## Resuming Interrupted Workflows", "--resume"},
		"docs/guides/troubleshooting.md": {"| symptom | cause | command |", "## Common scenarios", "Session not found", "already in progress"},
		"docs/architecture.md":           {"## A run, its id and its checkpoints", "## The fence"},
		"AGENTS.md":                      {"Options.Archive", "in the background", "hydration", "/runs/history", "BuildSnapshot", "begin to wait", "/resume/", "State flows through steps"},
		"docs/terminal.md":               {"sessions ls", "resume-last"},
	} {
		text := read(t, page)
		for _, part := range parts {
			require.Contains(t, text, part, page)
		}
	}
}

var codeConstant = regexp.MustCompile(`(?m)^\s*(?:const )?Code\w+\s*=\s*"([a-z_]+)"`)

// Who has the code of a run that does not continue finds what to do about it.
func TestTheGuideToTroublesHasEveryCode(t *testing.T) {
	page := read(t, "docs/guides/troubleshooting.md")
	_, codes, found := strings.Cut(page, "## By code")
	require.True(t, found)
	n := 0
	for _, file := range []string{"durable/codes.go", "internal/stuck/stuck.go", "internal/history/reason.go", "internal/claims/act.go", "store/executor.go"} {
		for _, m := range codeConstant.FindAllStringSubmatch(read(t, file), -1) {
			n++
			require.Contains(t, codes, "`"+m[1]+"`", "%s has this code", file)
		}
	}
	require.Greater(t, n, 20)
}
