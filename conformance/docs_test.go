package conformance_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
)

// docs/store-contract.md lists under each clause the cases that check it.
func TestContractPageListsTheCases(t *testing.T) {
	page, err := os.ReadFile("../docs/store-contract.md")
	require.NoError(t, err)
	listed := make(map[string][]string)
	heading := regexp.MustCompile(`^### (\w+)$`)
	clause := ""
	for _, line := range strings.Split(string(page), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			clause = m[1]
		} else if strings.HasPrefix(line, "That the declared capabilities") {
			clause = "declared"
		} else if name, ok := strings.CutPrefix(line, "- "); ok && clause != "" {
			listed[clause] = append(listed[clause], name)
		}
	}
	want := make(map[string][]string)
	for _, c := range conformance.Cases() {
		for _, clause := range clausesOf(c) {
			want[clause] = append(want[clause], c.Section+": "+c.Name)
		}
	}
	for clause := range want {
		slices.Sort(want[clause])
		slices.Sort(listed[clause])
		require.Equal(t, want[clause], listed[clause], "the cases of %s", clause)
	}
	require.Len(t, listed, len(want), "no clause has cases that do not exist")
}

// Every clause of the contract is on the page, in the words of package store.
func TestContractPageListsTheClauses(t *testing.T) {
	page, err := os.ReadFile("../docs/store-contract.md")
	require.NoError(t, err)
	clauses := make(map[string]bool)
	for _, file := range []string{"store.go", "change.go", "executor.go", "queue.go", "schedule.go", "transact.go", "request.go", "loader.go"} {
		source, err := os.ReadFile("../store/" + file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\bS[0-9]+\b`).FindAllString(string(source), -1) {
			clauses[m] = true
		}
	}
	require.Len(t, clauses, 43)
	for clause := range clauses {
		require.Contains(t, string(page), "\n### "+clause+"\n", "clause %s", clause)
	}
}
