package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	quoted   = regexp.MustCompile("`([^`]+)`")
	testName = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)\w*(/.+)?$`)
	target   = regexp.MustCompile(`(?m)^([a-z-]+):`)
)

type row struct {
	line   int
	id     string
	shown  []string // what is in backquotes
	remark string   // what else stands there
	// differs: it holds in another way than its words have it, as remark says.
	differs bool
}

func requirementRows(page string) []row {
	var rows []row
	for i, line := range strings.Split(page, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "id" {
			continue
		}
		r := row{line: i + 1, remark: quoted.ReplaceAllString(cells[2], "")}
		r.id, r.differs = strings.CutSuffix(strings.TrimSpace(cells[1]), " (differs)")
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			r.shown = append(r.shown, m[1])
		}
		rows = append(rows, r)
	}
	return rows
}

// checkShown says what is wrong with one thing that a row names, or nothing.
func checkShown(shown string, tests map[string]bool, makefile string) string {
	switch {
	case testName.MatchString(shown):
		if name, _, _ := strings.Cut(shown, "/"); !tests[name] {
			return "there is no test function " + name
		}
	case strings.HasPrefix(shown, "go run ./"):
		dir, _, _ := strings.Cut(strings.TrimPrefix(shown, "go run ./"), " ")
		if _, err := os.Stat(filepath.Join(root, dir, "main.go")); err != nil {
			return "there is no program in " + dir
		}
	case strings.HasPrefix(shown, "make "):
		name := strings.TrimPrefix(shown, "make ")
		for _, m := range target.FindAllStringSubmatch(makefile, -1) {
			if m[1] == name {
				return ""
			}
		}
		return "the Makefile has no target " + name
	default:
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(shown))); err != nil {
			return "there is no file " + shown
		}
	}
	return ""
}

// problems returns what is wrong with the page.
func problems(page string, ids, tests map[string]bool, makefile string) []string {
	var found []string
	seen := map[string]bool{}
	for _, r := range requirementRows(page) {
		say := func(format string, args ...any) {
			found = append(found, fmt.Sprintf("line %d, %s: ", r.line, r.id)+fmt.Sprintf(format, args...))
		}
		if !ids[r.id] {
			say("is not a requirement")
		}
		if seen[r.id] {
			say("stands here twice")
		}
		seen[r.id] = true
		if len(r.shown) == 0 {
			say("names nothing that shows it")
		}
		if r.differs && len(strings.Trim(r.remark, " ,;")) < 20 {
			say("does not say in which way it differs")
		}
		for _, s := range r.shown {
			if why := checkShown(s, tests, makefile); why != "" {
				say("%s", why)
			}
		}
	}
	if len(seen) == 0 {
		found = append(found, "the page has no rows")
	}
	return found
}

func requirementIDs(t *testing.T) map[string]bool {
	ids := map[string]bool{}
	for _, id := range strings.Fields(read(t, "test/docs/testdata/requirement_ids.txt")) {
		ids[id] = true
	}
	require.NotEmpty(t, ids)
	return ids
}

func TestRequirementsNameWhatExists(t *testing.T) {
	for _, p := range problems(read(t, "docs/requirements.md"), requirementIDs(t), testFuncs(t), read(t, "Makefile")) {
		t.Error("docs/requirements.md: " + p)
	}
}

func TestRequirementsCheckFindsFaults(t *testing.T) {
	ids := map[string]bool{"R1": true, "R2": true}
	tests := map[string]bool{"TestReal": true}
	for line, want := range map[string]string{
		"| R1 | `TestReal` |\n| R1 | `TestReal` |": "twice",
		"| R9 | `TestReal` |":                      "not a requirement",
		"| R1 | `TestGone` |":                      "no test function",
		"| R1 | `TestGone/with a subtest` |":       "no test function",
		"| R1 | trust us |":                        "names nothing",
		"| R1 | `docs/gone.md` |":                  "no file",
		"| R1 | `go run ./gone` |":                 "no program",
		"| R1 | `make gone` |":                     "no target",
		"no table at all":                          "no rows",
	} {
		got := problems(line, ids, tests, "test: ## x\n")
		require.Len(t, got, 1, line)
		require.Contains(t, got[0], want)
	}
	require.Empty(t, problems("| R1 | `TestReal/case` and `docs/README.md`, `make test` |", ids, tests, "test: ## x\n"))
}
