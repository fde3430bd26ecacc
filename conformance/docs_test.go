package conformance_test

import (
	"cmp"
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-dev/holdfast/conformance"
)

const (
	casesPage   = "../docs/internals/store-cases.md"
	clausesPage = "../docs/internals/store-clauses.md"
)

var updateCases = flag.Bool("update-cases", false, "write docs/internals/store-cases.md anew")

// docs/internals/store-cases.md lists under each clause the cases that check it.
func TestThePageOfCasesListsTheCases(t *testing.T) {
	page, err := os.ReadFile(casesPage)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(page), "\n## ")
	checkedBy := make(map[string][]string)
	for _, c := range conformance.Cases() {
		for _, clause := range clausesOf(c) {
			checkedBy[clause] = append(checkedBy[clause], c.Section+": "+c.Name)
		}
	}
	var clauses []string
	for clause := range checkedBy {
		clauses = append(clauses, clause)
	}
	slices.SortFunc(clauses, func(a, b string) int { return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b)) })
	want := head
	for _, clause := range clauses {
		want += "\n## " + clause + "\n\n- " + strings.Join(checkedBy[clause], "\n- ") + "\n"
	}
	if *updateCases {
		require.NoError(t, os.WriteFile(casesPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "go test ./conformance -run %s -update-cases writes it", t.Name())
}

// number is that of a clause; capabilities come after the clauses.
func number(clause string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(clause, "S"))
	if err != nil {
		return 1000
	}
	return n
}

// Every clause of the contract is on the page, in the words of package store, and so is
// what each capability is checked by.
func TestThePagesOfTheContractListTheClauses(t *testing.T) {
	page, err := os.ReadFile(clausesPage)
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
	contract, err := os.ReadFile("../docs/store-contract.md")
	require.NoError(t, err)
	for _, c := range conformance.Cases() {
		for _, clause := range clausesOf(c) {
			if number(clause) == 1000 && clause != "declared" {
				require.Contains(t, string(contract), "\n### "+clause+"\n", "capability %s", clause)
			}
		}
	}
}
