package docs_test

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mostWords    = 2000
	mostSentence = 40 // words
)

// These pages may be longer than others, for a reason.
var longPages = map[string]string{
	"docs/requirements.md": "it has a row for each requirement, and a test reads it",
}

// secondary reports whether a page is a list or a record, which no reader is sent through from
// top to bottom.
func secondary(page string) bool {
	dir := path.Dir(page)
	return dir == "docs/internals" || dir == "docs/adr"
}

// pages are those for readers.
func pages(t *testing.T) []string {
	found := []string{"README.md"}
	for _, page := range files(t, ".md") {
		if strings.HasPrefix(page, "docs/") && !secondary(page) {
			found = append(found, page)
		}
	}
	require.Greater(t, len(found), 30)
	return found
}

// written is what a command has written into a page, such as a table of figures.
var written = regexp.MustCompile("(?s)<!-- tried: from here.*<!-- to here -->")

func TestAPageIsReadInOneSitting(t *testing.T) {
	for _, page := range pages(t) {
		words := len(strings.Fields(written.ReplaceAllString(read(t, page), "")))
		if _, ok := longPages[page]; words > mostWords && !ok {
			t.Errorf("%s has %d words, more than %d: move what is another question to another page", page, words, mostWords)
		}
	}
}

var (
	tableLine    = regexp.MustCompile(`(?m)^ *\|.*$`)
	blockBreak   = regexp.MustCompile(`\n[ \t]*\n|\n *(?:[-*]|\d+\.) |\n#`)
	linkTarget   = regexp.MustCompile(`\]\([^)]*\)`)
	inlineCode   = regexp.MustCompile("`[^`]*`")
	sentenceEnds = regexp.MustCompile(`[.!?:]["”)*]*\s+(?:[A-Z*\["“(\d]|CODE)`)
)

// sentences returns those of a page, outside of code, tables and headings. Code in a line
// counts as one word.
func sentences(text string) []string {
	text = tableLine.ReplaceAllString(fenced.ReplaceAllString(text, ""), "\n")
	var all []string
	for _, block := range blockBreak.Split("\n"+text, -1) {
		block = inlineCode.ReplaceAllString(linkTarget.ReplaceAllString(strings.Join(strings.Fields(block), " "), "]"), "CODE")
		for block != "" {
			end := sentenceEnds.FindStringIndex(block)
			if end == nil {
				all = append(all, block)
				break
			}
			stop := strings.LastIndex(block[:end[1]], " ")
			all = append(all, block[:stop])
			block = block[stop+1:]
		}
	}
	return all
}

func TestNoSentenceHasToBeReadTwice(t *testing.T) {
	for _, page := range pages(t) {
		for _, s := range sentences(read(t, page)) {
			if n := len(strings.Fields(s)); n > mostSentence {
				t.Errorf("%s: a sentence of %d words, more than %d: %s", page, n, mostSentence, s)
			}
		}
	}
}

func TestSentencesAreFound(t *testing.T) {
	got := sentences("# Title\n\nOne is `a. B` here. Two (see [x](a.md)) is\nlonger: Three. 4 is one.\n\n```go\nno. No\n```\n| no. | No |\n- five\n- Six. \"Seven.\"\n")
	require.Equal(t, []string{"One is CODE here.", "Two (see [x]) is longer:", "Three.", "4 is one.", "five", "Six.", `"Seven."`}, got[1:])
}

// trimmed is a text without what depends on where it stands.
func trimmed(code string) string {
	lines := strings.Split(strings.ReplaceAll(code, "(mine) ", ""), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// What a page shows as Go is in a file that is compiled: each of its parts, between blank
// lines, in one and the same file.
func TestWhatAPageShowsIsCompiled(t *testing.T) {
	code := map[string]string{}
	for _, file := range files(t, ".go") {
		code[file] = trimmed(read(t, file))
	}
	blocks := 0
	for _, page := range files(t, ".md") {
		for _, m := range goBlock.FindAllStringSubmatch(read(t, page), -1) {
			blocks++
			if missing := missingIn(m[1], code); missing != "" {
				t.Errorf("%s shows code that is in no file that is compiled (test/docs/shown_test.go is for that):\n%s", page, missing)
			}
		}
	}
	require.Greater(t, blocks, 40)
}

// missingIn returns the first part of a block that is not in the file that has most of it;
// empty: a file has all.
func missingIn(block string, code map[string]string) string {
	parts := strings.Split(trimmed(block), "\n\n")
	most, missing := -1, ""
	for _, text := range code {
		have := 0
		for have < len(parts) && strings.Contains(text, parts[have]) {
			have++
		}
		if have == len(parts) {
			return ""
		}
		if have > most {
			most, missing = have, parts[have]
		}
	}
	return missing
}

func TestCodeThatIsNowhereIsFound(t *testing.T) {
	code := map[string]string{"a.go": "a()\n\nb()", "b.go": "c()"}
	require.Empty(t, missingIn("\ta()\n\n\tb()\n", code))
	require.Equal(t, "c()", missingIn("a()\n\nc()\n", code))
}

var shBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// ran are the pages whose commands, or whose program, a test runs, by the function that does.
// Of the others, only programs and targets are shown.
var ran = map[string]string{
	"docs/operating.md":        "TestEveryCommandOfTheOperatingPageWorks",
	"docs/operating-schema.md": "TestTheCommandsOfTheSchemaPage",
	"docs/getting-started.md":  "TestGettingStartedIsRun",
	"docs/guides/deploying.md": "TestTheProgramRunsAndRunsAgain",
	"docs/guides/resuming.md":  "TestTheResumingGuideNamesWhatExists",
	"docs/shell.md":            "TestADaemonWithoutTheMarkIsLeftAlone",
	"docs/guides/observing.md": "",
	"docs/performance.md":      "",
	"README.md":                "",
}

// A command that a page tells people to type is run by a test, or is a program or a target
// that exists.
func TestCommandsOfPagesAreRunOrExist(t *testing.T) {
	tests, makefile := testFuncs(t), read(t, "Makefile")
	for _, page := range pages(t) {
		for _, m := range shBlock.FindAllStringSubmatch(read(t, page), -1) {
			by, ok := ran[page]
			require.True(t, ok, "no test runs the commands of %s", page)
			if by != "" {
				require.True(t, tests[by], by)
				continue
			}
			for _, line := range strings.Split(strings.TrimSpace(m[1]), "\n") {
				line, _, _ = strings.Cut(line, "  #")
				if at := strings.Index(line, "go run ./"); at >= 0 {
					line = line[at:]
				}
				switch {
				case strings.HasPrefix(line, "go get "):
				case strings.HasPrefix(line, "go run ./bench"), strings.HasPrefix(line, "go run ./examples/"), strings.HasPrefix(line, "make "):
					require.Empty(t, checkShown(strings.TrimSpace(line), nil, makefile), fmt.Sprint(page, ": ", line))
				default:
					t.Errorf("%s: nothing checks %q", page, line)
				}
			}
		}
	}
}
