package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// In code, Ref[string, string]("ship") is a call.
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// links returns the targets inside the repository that a page links to, as
// paths from its root.
func links(page, text string) []string {
	var to []string
	for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target == "" || strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
			continue
		}
		to = append(to, path.Join(path.Dir(page), target))
	}
	return to
}

func TestLinksResolve(t *testing.T) {
	pages := files(t, ".md")
	require.NotEmpty(t, pages)
	for _, page := range pages {
		for _, to := range links(page, read(t, page)) {
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, to)
			}
		}
	}
}

func TestLinksAreRelativeToTheirPage(t *testing.T) {
	got := links("docs/a.md", "[x](b.md#part) [y](../README.md) [z](https://example.com) [here](#down)\n```go\nf[int](w)\n```\n")
	require.Equal(t, []string{"docs/b.md", "README.md"}, got)
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what the headings of a page are linked by.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		found[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksToAPartOfAPageFindIt(t *testing.T) {
	parts := 0
	for _, page := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			to, part, ok := strings.Cut(m[1], "#")
			if !ok || strings.Contains(to, "://") {
				continue
			}
			parts++
			target := page
			if to != "" {
				target = path.Join(path.Dir(page), to)
			}
			if !anchors(read(t, target))[part] {
				t.Errorf("%s links to #%s of %s, which has no such heading", page, part, target)
			}
		}
	}
	require.Greater(t, parts, 20)
	require.True(t, anchors("## Who may act, over HTTP?\n")["who-may-act-over-http"])
}

// The index of the decisions has each of them.
func TestEveryDecisionIsInTheIndex(t *testing.T) {
	index := read(t, "docs/adr/README.md")
	for _, page := range files(t, ".md") {
		if name, ok := strings.CutPrefix(page, "docs/adr/"); ok && name != "README.md" {
			if !strings.Contains(index, "]("+name+")") {
				t.Errorf("docs/adr/README.md has no line for %s", name)
			}
		}
	}
}

// A page that no index leads to is a page that no reader finds. Decisions have an
// index of their own.
func TestEveryPageIsInTheIndex(t *testing.T) {
	indexed := map[string]bool{"docs/README.md": true}
	for _, to := range links("docs/README.md", read(t, "docs/README.md")) {
		indexed[to] = true
	}
	for _, page := range files(t, ".md") {
		if strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/adr/") && !indexed[page] {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
}
