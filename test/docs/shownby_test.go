package docs_test

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	namedTest = regexp.MustCompile(`(?:\b([\w/]+)\.)?\b((?:Test|Fuzz|Example)[A-Z]\w*)`)
	testFunc2 = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// testsByName says in which packages there is a test of a name.
func testsByName(t *testing.T) map[string][]string {
	t.Helper()
	in := map[string][]string{}
	for _, f := range files(t, "_test.go") {
		for _, m := range testFunc2.FindAllStringSubmatch(read(t, f), -1) {
			in[m[1]] = append(in[m[1]], path.Dir(f))
		}
	}
	return in
}

// unshown returns the tests that a page names and that are not there, or not in that package.
func unshown(page string, in map[string][]string) (missing []string) {
	for _, m := range namedTest.FindAllStringSubmatch(page, -1) {
		there := false
		for _, dir := range in[m[2]] {
			there = there || m[1] == "" || path.Base(dir) == path.Base(m[1])
		}
		if !there {
			missing = append(missing, m[0])
		}
	}
	return missing
}

// What keeps a fault from coming back is there under the name that the record has.
func TestTheTestsThatTheRecordsOfFaultsNameExist(t *testing.T) {
	in := testsByName(t)
	for _, page := range []string{"docs/internals/faults.md", "docs/internals/found.md", "docs/track-record.md"} {
		for _, name := range unshown(read(t, page), in) {
			t.Errorf("%s names %s, which is not there", page, name)
		}
	}
	require.Equal(t, []string{"sqlite.TestReal", "TestGone"}, unshown("`sqlite.TestReal`, `postgres.TestReal/case`, `TestReal`, `TestGone`", map[string][]string{"TestReal": {"store/postgres"}}))
}

// Every row of the reading says what shows it, and the files that it names are there.
func TestEverySentenceOfTheReadingIsShown(t *testing.T) {
	rows := 0
	for _, line := range strings.Split(read(t, "docs/internals/found.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || !regexp.MustCompile(`^ [A-Z]\d+ `).MatchString(cells[1]) {
			continue
		}
		rows++
		shown := quoted.FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, shown, line)
		for _, m := range shown {
			if strings.Contains(m[1], "/") || strings.HasSuffix(m[1], ".md") {
				require.Empty(t, checkShown(m[1], nil, ""), line)
			}
		}
	}
	require.Greater(t, rows, 75)
}

// Sentences over which readers stumbled are gone from pages and comments.
func TestSentencesThatWereNotUnderstoodAreGone(t *testing.T) {
	gone := []string{
		"for one case: a run that is pinned", "a run that cannot have one is not there", "No end is copied from the log",
		"a status that the act is not for", "no place for the value", "where nobody executes it, what carries",
		"runs started here are not counted out", "is from which length on a wait", "interrupt signal received", "no retry or resume can help",
	}
	for _, f := range append(files(t, ".go"), files(t, ".md")...) {
		if f == "test/docs/shownby_test.go" {
			continue
		}
		text := strings.Join(strings.Fields(strings.ReplaceAll(read(t, f), "//", "")), " ")
		for _, words := range gone {
			if strings.Contains(text, words) {
				t.Errorf("%s: %q", f, words)
			}
		}
	}
}
